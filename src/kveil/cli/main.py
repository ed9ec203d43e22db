"""`kveil`: how a command is run, and how an error becomes one paragraph, or one JSON object, and an exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from kveil._version import __version__
from kveil.cli.door import Door
from kveil.cli.state import logging_to_stderr, state
from kveil.errors import BudgetError, KveilError, NotVerified

# Tracebacks with local variables would print rows.
app = typer.Typer(
    name="kveil",
    cls=Door,
    help="Private cluster centres of data about people, with a guarantee that can be checked.",
    epilog="Begin with `kveil demo`. Every command has --help, and those that answer have --json.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def door(version: Annotated[bool, typer.Option("--version", help="show the version and exit", is_eager=True)] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


BAD_INPUT, BUDGET_REFUSED, NOT_VERIFIED, UNFORESEEN, INTERRUPTED, TERMINATED = 2, 3, 4, 1, 130, 143
UsageProblem: Any = typer.BadParameter.__mro__[2]  # click's own root of errors, whichever click typer uses


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 unforeseen, 2 bad usage or input, 3 budget refused, 4 not verified or violated,
    5 mostly noise, 130 interrupted, 143 terminated."""
    ended = _Ended()
    state.reset()
    try:
        with ended, logging_to_stderr(), _warnings_as_notes():
            sys.exit(app(standalone_mode=not _wants_json()))  # with --json errors of usage come here, too
    except KveilError as error:
        codes = ((BudgetError, BUDGET_REFUSED), (NotVerified, NOT_VERIFIED), (KveilError, BAD_INPUT))
        _refuse(error, type(error).__name__, next(code for kind, code in codes if isinstance(error, kind)))
    except (SystemExit, KeyboardInterrupt) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            raise
        word, code = ("Terminated", TERMINATED) if ended.by_signal else ("Interrupted", INTERRUPTED)
        _end(
            word,
            f"{word.lower()}. What was reserved on a ledger stays spent; `kveil ledger show` tells whether it was charged.",
            (),
            code,
        )
    except typer.Abort:
        _end("Aborted", "nothing was done, because a question was not answered with yes.", (), UNFORESEEN)
    except UsageProblem as error:
        _end("UsageError", error.format_message(), (), error.exit_code)
    except Exception as error:
        if os.environ.get("KVEIL_TRACEBACK") == "1":  # for developers: a traceback may show data
            raise
        told = f"unforeseen trouble ({type(error).__name__}). Set KVEIL_TRACEBACK=1 to see where; the trace may quote data."
        _end("Unforeseen", told, (), UNFORESEEN)


def _wants_json() -> bool:
    """Whether a script is listening: known from what was typed, before it is understood."""
    typed = sys.argv[1:]
    return "--json" in (typed[: typed.index("--")] if "--" in typed else typed) or state.options.get("--json") is True


def _refuse(error: KveilError, kind: str, code: int) -> NoReturn:
    message, *notes = map(_in_shell_words, (str(error), *getattr(error, "__notes__", ())))
    _end(kind, message, notes, code)


def _in_shell_words(text: str) -> str:
    from kveil.cli.wording import in_shell_words

    return in_shell_words(text, () if state.context is None else state.context.command.params)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Warnings of kveil as one paragraph, without a line of source; others as they are."""
    usual = warnings.showwarning

    def told(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__ != "kveil.errors":
            usual(message, category, *where, **more)
        elif not state.quiet:
            _say(f"note: {_in_shell_words(str(message))}")

    warnings.showwarning = told
    try:
        yield
    finally:
        warnings.showwarning = usual


def _end(kind: str, message: str, notes: Any, code: int) -> NoReturn:
    """Say it, as an object on stdout if a script is listening, and leave."""
    if _wants_json():
        told = {"error": kind, "message": message, "notes": list(notes), "exit_code": code, **state.tell_config()}
        typer.echo(json.dumps(told))
    else:
        _say(message)
        for note in notes:
            _say(f"note: {note}")
    sys.exit(code)


class _Ended:
    """SIGTERM, as service managers and `kill` send it, ends a command as Ctrl-C does: with a word, and nothing half written."""

    def __init__(self) -> None:
        self.by_signal = False
        self._before: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():  # no other may set a handler
            self._before = signal.signal(signal.SIGTERM, self._interrupt)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _interrupt(self, *_: object) -> NoReturn:
        self.by_signal = True
        raise KeyboardInterrupt


def _say(text: str) -> None:
    """One paragraph on stderr. It may quote names of files and columns, and these must not steer a terminal."""
    from rich.console import Console

    from kveil.release.words import printable

    Console(stderr=True, highlight=False, emoji=False).print(f"kveil: {printable(text, len(text))}", markup=False, soft_wrap=True)
