"""What a broken twin is: a bug planted on purpose beside the same code without it, and what catches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kveil.audit import Attack, Neighbours, Verdict, check, replay
from kveil.auditing.exact import Walks, compared
from kveil.auditing.verdict import Outcome

EPSILON, RUNS, CONFIDENCE = 1.0, 2000, 0.999
ROOM = 1 + 1e-9
LARGEST = 300.0  # seconds until a twin must be caught

NOBODY = "planted, nobody named"


@dataclass(frozen=True, eq=False)
class Twin:
    """name, bug: what is wrong, in a few words and in one sentence. had: who had it, with a source.

    make: with True the twin, with False the same code without the bug: a function of a table that returns what leaves. With
        catcher "contract" a function without arguments that tells whether the contract is kept.
    path: outcomes of its draws, with catcher "exact"; without one paths are drawn.
    """

    name: str
    bug: str
    had: str
    catcher: Literal["audit", "replay", "exact", "contract"]
    make: Callable[[bool], Any]
    pair: Neighbours
    path: tuple[Any, ...] = ()

    def verdict(
        self, *, is_broken: bool = True, runs: int = RUNS, attack: Attack | None = None, confidence: float = CONFIDENCE
    ) -> Verdict:
        """What its catcher says of it. runs, attack, confidence: of an audit."""
        start, model = time.monotonic(), self.make(is_broken)
        if self.catcher == "audit":
            return check(
                model, epsilon=EPSILON, relation=self.pair.relation, pairs=[self.pair], runs=runs,
                confidence=confidence, name=self.name, seconds=LARGEST, attack=attack,
            )  # fmt: skip
        lower, n, reason = {"replay": self._replayed, "exact": self._walked, "contract": self._held}[self.catcher](model)
        outcome: Outcome = "violated" if lower > EPSILON * ROOM else "consistent"
        promise = (EPSILON, 0.0, self.pair.relation, 1.0)
        return Verdict(outcome, *promise, lower, None, self.pair.name, "", n, time.monotonic() - start, reason, self.name)

    def _replayed(self, model: Any) -> tuple[float, int, str]:
        found = replay(model, *self.pair.tables())
        if found.outcome == "unknown":
            raise AssertionError(found.reason)
        return (np.inf if found.is_violated else 0.0), 2, found.reason

    def _walked(self, model: Any) -> tuple[float, int, str]:
        one, other = self.pair.tables()
        walks = Walks(model, most_outcomes=0, samples=8)
        paths = [walks.along(self.path, one)] if self.path else walks.of(one)
        loss, _, _ = compared(paths, walks, other)
        return loss, walks.runs, f"a path loses {loss:.3g}."

    def _held(self, contract: Any) -> tuple[float, int, str]:
        return (0.0, 1, "the contract is kept.") if contract() else (np.inf, 1, "the contract is broken.")
