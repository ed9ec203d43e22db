"""The privacy of a whole run, looked at from outside: one table is fitted, and a neighbour is given the same noisy answers.

The vault's laws are tested in its own room. What methods do beside it is tested here. A run on a table is noted: every charge,
every raw value that reached the gate, every noisy answer, every secret word. Then the run is made again on a neighbour, and the
gate gives the noted answers. If both runs ask the same questions with the same noise, if no raw value moves by more than its
charge says, and if everything that leaves is equal to the byte, then nothing but noisy answers decided what left: the argument of
adaptive composition, with its premises looked at instead of believed.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import os
import pickle
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from moving import Draw, Spied, moved

from kveil.kernel import exact, gate, ledger
from kveil.kernel.loss import Measurement
from kveil.progress import listen
from kveil.release import release
from kveil.testing import ScriptedEntropy

Act = Callable[[Any], Mapping[str, Any]]  # runs on a table and returns, by name, everything that leaves


class Diverged(AssertionError):
    """The neighbour's run did something that the first one did not."""


@dataclass
class Tape:
    """What one run asked the vault and let out. With `first`, the answers are those of that run."""

    first: Tape | None = None
    draws: list[Draw] = field(default_factory=list)
    words: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # progress, warnings, log lines and prints
    left: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # also kept here, since a party swallows what its answers raise

    def run(self, measurement: Measurement[Any, Any], secret: Any, account: Any) -> Any:
        """In place of the gate's own: the same charge and receipt, and the noted answer if there is one."""
        if isinstance(account, ledger.Ledger):  # the gate reserves, and comes back with a ticket
            return GATE_RUN(measurement, secret, account)
        law = zip(measurement.draw.__code__.co_freevars, measurement.draw.__closure__ or (), strict=True)
        draw = Draw(
            measurement.charge, {name: spelled(cell.cell_contents) for name, cell in law},
            Spied(secret) if hasattr(secret, "at") else deepcopy(secret), account.plan.unit.max_rows_per_person,
        )  # fmt: skip
        made = measurement.draw if self.first is None else self._noted(draw)
        with drawing_from(ScriptedEntropy(len(self.draws))):
            noisy, receipt = GATE_RUN(Measurement(draw.charge, made), draw.raw, account)
        draw.noisy = deepcopy(noisy)
        self.draws.append(draw)
        return noisy, receipt

    def secret_words(self, n: int) -> Any:
        """In place of the gate's own: the noted words if there are some."""
        if self.first is None:
            with drawing_from(ScriptedEntropy(10**6 + len(self.words))):
                words = GATE_WORDS(n)
        else:
            words = self._next(self.words, self.first.words, "secret words")
            if len(words) != n:
                self.fault("another number of secret words was asked for")
        self.words.append(words.copy())
        return words.copy()

    def fault(self, text: str) -> None:
        self.faults.append(text)
        raise Diverged(text)

    def _noted(self, draw: Draw) -> Callable[[Any, Any], Any]:
        assert self.first is not None
        then = self._next(self.draws, self.first.draws, f'a draw of "{draw.charge.label}"')
        if draw.charge != then.charge:
            self.fault(f"charged as {draw.charge}, and before as {then.charge}")
        if draw.law != then.law:
            names = sorted(name for name in draw.law if draw.law[name] != then.law[name])
            self.fault(f'"{draw.charge.label}" has other noise: {", ".join(names)} differ')
        if isinstance(draw.raw, Spied):
            draw.raw.at(then.raw.asked)
        for text in moved(then, draw):
            self.fault(f'"{draw.charge.label}", {draw.charge.mechanism}: {text}')
        return lambda source, raw: deepcopy(then.noisy)

    def _next(self, mine: list[Any], theirs: list[Any], what: str) -> Any:
        if len(mine) >= len(theirs):
            self.fault(f"{what} too many")
        return theirs[len(mine)]


def replay(act: Act, table: Any, neighbours: Iterable[Any], *, may_raise: tuple[type[Exception], ...] = ()) -> Tape:
    """Run `act` on a table, and again on each neighbour with the same answers; returns the first tape.

    act: makes everything anew from the table it is given, and returns what leaves, by name.
    may_raise: errors that count as something that leaves; every other one is raised.
    """
    first = _played(Tape(), act, table, may_raise)
    assert first.draws, "nothing was drawn, so nothing was tested"
    for number, neighbour in enumerate(neighbours):
        again = _played(Tape(first), act, neighbour, may_raise)
        which = f"neighbour {number}"
        assert len(again.draws) == len(first.draws), f"{which}: fewer draws"
        assert len(again.words) == len(first.words), f"{which}: fewer secret words"
        assert again.said == first.said, which
        assert again.left.keys() == first.left.keys(), which
        differ = {name: (again.left[name], value) for name, value in first.left.items() if differs(again.left[name], value)}
        assert not differ, f"{which}: what leaves depends on rows: {differ}"
    return first


def spelled(value: Any) -> bytes:
    """A value as bytes that are equal for equal values."""
    if isinstance(value, np.ndarray):
        return pickle.dumps((value.dtype.str, value.shape, value.tobytes() if value.dtype != object else value.tolist()))
    return value if isinstance(value, bytes) else pickle.dumps(value)


def differs(one: Any, other: Any) -> bool:
    return spelled(one) != spelled(other)


def _played(tape: Tape, act: Act, table: Any, may_raise: tuple[type[Exception], ...]) -> Tape:
    with watched(tape):
        try:
            tape.left = dict(act(table))
        except may_raise as error:
            tape.left = {"raised": (type(error).__name__, str(error))}
    assert not tape.faults, tape.faults
    return tape


@contextmanager
def watched(tape: Tape) -> Iterator[None]:
    """Everything that a run inside says and draws goes to the tape. Noise drawn beside the gate is an error."""
    out, err, logs = io.StringIO(), io.StringIO(), Lines(tape.said)
    log = logging.getLogger("kveil")
    level = log.level
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(gate, "run", tape.run)
        patch.setattr(gate, "secret_words", tape.secret_words)
        patch.setattr(exact.SystemEntropy, "words", Shut(tape).words)  # threads do not see what is installed
        patch.setattr(exact.SystemEntropy, "bits", Shut(tape).words)
        _pin_names(patch)
        stack.enter_context(drawing_from(Shut(tape)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(listen(lambda label, number, total: tape.said.append(f"{label} {number}/{total}")))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        log.addHandler(logs)
        log.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            log.removeHandler(logs)
            log.setLevel(level)
    tape.said += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    tape.said += [out.getvalue(), err.getvalue()]


class Shut:
    """The source of noise outside the gate."""

    secure = False

    def __init__(self, tape: Tape) -> None:
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
        return cls(2000, 1, 1, tzinfo=tz)


@contextmanager
def drawing_from(source: Any) -> Iterator[None]:
    token = exact._installed.set(source)
    try:
        yield
    finally:
        exact._installed.reset(token)


def _pin_names(patch: pytest.MonkeyPatch) -> None:
    """Tokens, ids of runs and names of files are random and not about rows: the same in every run, so that bytes compare."""
    count = itertools.count()

    def name(n: int | None = None) -> bytes:
        return hashlib.shake_128(f"name {next(count)}".encode()).digest(n or 32)

    patch.setattr(ledger, "os", Os(name))
    patch.setattr(secrets, "token_bytes", name)
    patch.setattr(secrets, "token_hex", lambda n=None: name(n).hex())
    patch.setattr(release, "datetime", Today)


class Os:
    """The module `os`, but for its random bytes; others, such as compilers, go on with the real ones."""

    def __init__(self, urandom: Callable[[int], bytes]) -> None:
        self.urandom = urandom

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


GATE_RUN, GATE_WORDS = gate.run, gate.secret_words
