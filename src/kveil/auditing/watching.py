"""A run under glass: what it asks the vault and what it says, with names and days that are the same in every run.

Noise inside is scripted, so every guarantee made inside is invalid. Nothing but audits and tests may use it.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime
from typing import Any, NoReturn, Protocol
from unittest import mock

from kveil.errors import TicketError
from kveil.kernel import exact, gate, ledger
from kveil.progress import ReadListener, listen
from kveil.release import release
from kveil.testing import ScriptedEntropy

ALONE = threading.RLock()


class Watcher(Protocol):
    """What stands in for the gate, and hears what is said."""

    said: list[str]  # progress, warnings, log lines and prints

    def run(self, measurement: Any, secret: Any, account: Any) -> Any: ...

    def secret_words(self, n: int) -> Any: ...

    def fault(self, text: str) -> NoReturn: ...


@contextmanager
def watched(tape: Watcher) -> Iterator[None]:
    """Everything that a run inside says and draws goes to the tape. Noise drawn beside the gate is an error.

    The gate is the process's own: a fit in another thread meanwhile is refused, since its source of noise has changed. So are
    secret words there; tokens and days of other threads are real.
    """
    out, err, logs = io.StringIO(), io.StringIO(), Lines(tape.said)
    log = logging.getLogger("kveil")
    level = log.level
    with ExitStack() as stack:
        stack.enter_context(ALONE)
        for thing, name, value in (
            (gate, "run", tape.run),
            (gate, "secret_words", _inside(tape.secret_words, _refused)),
            (exact.SystemEntropy, "words", Shut(tape).words),  # threads do not see what is installed
            (exact.SystemEntropy, "bits", Shut(tape).words),
            *_pinned_names(),
        ):
            stack.enter_context(mock.patch.object(thing, name, value))
        stack.enter_context(drawing_from(Shut(tape)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(listen(lambda label, number, total: tape.said.append(f"{label} {number}/{total}"), _passes(tape)))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # comes when garbage is collected, which may be that of another fit
        log.addHandler(logs)
        log.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            log.removeHandler(logs)
            log.setLevel(level)
    tape.said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    tape.said += [out.getvalue(), err.getvalue()]


def _passes(tape: Watcher) -> ReadListener:
    """That a pass over the rows begins is public. How much there is to read is not: a neighbour's file is longer."""

    def heard(done: int, total: int, unit: str) -> None:
        if not done:
            tape.said.append("a pass begins")

    return heard


class Shut:
    """The source of noise outside the gate."""

    secure = False

    def __init__(self, tape: Watcher) -> None:
        self._tape = tape

    def words(self, *_: Any) -> Any:
        self._tape.fault("noise was drawn beside the gate")

    bits = words


class Lines(logging.Handler):
    """Log lines, as they would be written."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(f"{record.levelname}: {record.getMessage()}")


class Today(datetime):
    """One day for both runs."""

    @classmethod
    def now(cls, tz: Any = None) -> Today:
        return super().now(tz) if exact.entropy().secure else cls(2000, 1, 1, tzinfo=tz)


@contextmanager
def drawing_from(source: Any) -> Iterator[None]:
    token = exact._installed.set(source)
    try:
        yield
    finally:
        exact._installed.reset(token)


def scripted_words(n: int, place: int) -> Any:
    """Secret words, the same in every run at the same place."""
    with drawing_from(ScriptedEntropy(10**6 + place)):
        return GATE_WORDS(n)


def _pinned_names() -> Iterator[tuple[Any, str, Any]]:
    """Tokens, ids of runs and names of files are random and not about rows: the same in every run, so that bytes compare."""
    count = itertools.count()

    def name(n: int | None = None) -> bytes:
        return hashlib.shake_128(f"name {next(count)}".encode()).digest(n or 32)

    yield ledger, "os", Os(_inside(name, os.urandom))
    yield secrets, "token_bytes", _inside(name, secrets.token_bytes)
    yield secrets, "token_hex", _inside(lambda n=None: name(n).hex(), secrets.token_hex)
    yield release, "datetime", Today


def _inside(scripted: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """What is scripted for the run, and for nobody else in the process: whoever could foresee a token could send it."""
    return lambda *args, **named: (real if exact.entropy().secure else scripted)(*args, **named)


def _refused(n: int) -> NoReturn:
    raise TicketError("an audit in another thread holds the gate of this process. Nothing was drawn: fit again after it.")


class Os:
    """The module `os`, but for its random bytes; others, such as compilers, go on with the real ones."""

    def __init__(self, urandom: Callable[[int], bytes]) -> None:
        self.urandom = urandom

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


GATE_RUN, GATE_WORDS = gate.run, gate.secret_words
