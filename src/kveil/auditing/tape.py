"""The privacy of a whole run: one table is fitted, and a neighbour is given the same noisy answers.

The vault's laws are tested in its own room. What methods do beside it is looked at here. A run on a table is noted: every charge,
every raw value that reached the gate, every noisy answer, every secret word. Then the run is made again on a neighbour, and the
gate gives the noted answers. If both runs ask the same questions with the same noise, if no raw value moves by more than its
charge says, and if everything that leaves is equal to the byte, then nothing but noisy answers decided what left: the argument of
adaptive composition, with its premises looked at instead of believed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from kveil.auditing.moving import Draw, Spied, moved
from kveil.auditing.watching import GATE_RUN, Watcher, drawing_from, scripted_words, watched
from kveil.kernel import ledger
from kveil.kernel.loss import Measurement
from kveil.testing import ScriptedEntropy

Act = Callable[[Any], Mapping[str, Any]]  # runs on a table and returns, by name, everything that leaves


class Diverged(AssertionError):
    """The neighbour's run did something that the first one did not."""


@dataclass
class Tape(Watcher):
    """What one run asked the vault and let out. With `first`, the answers are those of that run."""

    first: Tape | None = None
    draws: list[Draw] = field(default_factory=list)
    words: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
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
            words = scripted_words(n, len(self.words))
        else:
            words = self._next(self.words, self.first.words, "secret words")
            if len(words) != n:
                self.fault("another number of secret words was asked for")
        self.words.append(words.copy())
        return words.copy()

    def fault(self, text: str) -> NoReturn:
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


def play(act: Act, table: Any, neighbours: Iterable[Any], *, may_raise: tuple[type[Exception], ...] = ()) -> Tape:
    """Run `act` on a table, and again on each neighbour with the same answers; returns the first tape, or raises `Diverged`.

    act: makes everything anew from the table it is given, and returns what leaves, by name.
    may_raise: errors that count as something that leaves; every other one is raised.
    """
    first = _played(Tape(), act, table, may_raise)
    if not first.draws:
        raise Diverged("nothing was drawn, so nothing was tested")
    for number, neighbour in enumerate(neighbours):
        again = _played(Tape(first), act, neighbour, may_raise)
        differ = [name for name in {**first.left, **again.left} if differs(again.left.get(name), first.left.get(name))]
        for is_equal, what in (
            (len(again.draws) == len(first.draws), "fewer draws were made"),
            (len(again.words) == len(first.words), "fewer secret words were asked for"),
            (again.said == first.said, "other progress, warnings, log lines or prints"),
            (again.left.keys() == first.left.keys(), "other things leave"),
            (not differ, f"what leaves depends on rows: {', '.join(differ)}"),
        ):
            if not is_equal:
                raise Diverged(f"neighbour {number}: {what}")
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
    if tape.faults:
        raise Diverged(*tape.faults)
    return tape
