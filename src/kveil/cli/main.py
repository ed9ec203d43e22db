"""`kveil`: the commands, and how an error becomes one paragraph and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from kveil._version import __version__
from kveil.cli import (
    after,
    audit,
    bounds,
    collect,
    compare,
    demo,
    describe,
    evaluate,
    federate,
    fit,
    guarantee,
    keys,
    ledger,
    plan,
    reproduce,
    verdict,
    verify,
)
from kveil.errors import BudgetError, KveilError

# Tracebacks with local variables would print rows.
app = typer.Typer(
    name="kveil",
    help="Clustering that keeps people's secrets: private cluster centres, with a guarantee that can be checked.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def door(version: Annotated[bool, typer.Option("--version", help="show the version and exit", is_eager=True)] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command("fit")(fit.fit)
app.command("bounds")(bounds.bounds)
app.command("demo")(demo.demo)
app.command("guarantee")(guarantee.guarantee)
app.command("verify")(verify.verify)
app.command("card")(verify.card)
app.command("verdict")(verdict.verdict)
app.command("evaluate")(evaluate.evaluate)
app.command("describe")(describe.describe)
app.command("recluster")(after.recluster)
app.command("curve")(after.curve)
app.command("sample")(after.sample)
app.command("audit")(audit.audit)
app.command("plan")(plan.plan)
app.command("compare")(compare.compare)
app.add_typer(ledger.app, name="ledger", help="Budgets that several fits draw on.")
app.add_typer(keys.app, name="keys", help="Keys to sign releases with.")
app.add_typer(federate.app, name="federate", help="Centres of rows that several parties hold and keep to themselves.")
app.add_typer(collect.app, name="collect", help="Campaigns in which nobody is trusted: every device randomises its own report.")
app.add_typer(reproduce.app, name="reproduce", help="Published figures, drawn anew with calibrations that hold.")

BAD_INPUT, BUDGET_REFUSED, UNFORESEEN, INTERRUPTED, TERMINATED = 2, 3, 1, 130, 143


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 unforeseen, 2 bad usage or input, 3 budget refused, 4 not verified or violated,
    5 mostly noise, 130 interrupted, 143 terminated."""
    ended = _Ended()
    try:
        with ended:
            app()
    except KveilError as error:
        _say(str(error))
        sys.exit(BUDGET_REFUSED if isinstance(error, BudgetError) else BAD_INPUT)
    except (SystemExit, KeyboardInterrupt) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            raise
        _say(f"{'terminated' if ended.by_signal else 'interrupted'}. What was reserved on a ledger stays spent.")
        sys.exit(TERMINATED if ended.by_signal else INTERRUPTED)
    except Exception as error:
        if os.environ.get("KVEIL_TRACEBACK") == "1":  # for developers: a traceback may show data
            raise
        _say(f"unforeseen trouble ({type(error).__name__}). Set KVEIL_TRACEBACK=1 to see where; the trace may quote data.")
        sys.exit(UNFORESEEN)


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
    from kveil.release.words import printable

    Console(stderr=True, highlight=False, emoji=False).print(f"kveil: {printable(text, len(text))}", markup=False, soft_wrap=True)
