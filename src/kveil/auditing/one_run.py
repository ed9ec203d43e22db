"""One fit with many canaries: a lower bound of epsilon for models that are too slow to fit a thousand times.

Every canary is put into the table with probability 1/2. The auditor guesses which of them were, and may abstain. If the model
is private then right guesses are rare. "Privacy Auditing with One (1) Training Run" (Steinke, Nasr, Jagielski, NeurIPS 2023),
Corollary 5.4 and the program in Appendix D (arXiv, version 1): with m canaries, r guesses and W a sum of r coins that are right
with probability e^epsilon / (1 + e^epsilon), at least v right guesses come up with probability at most

    P(W >= v) + 2 m delta max over i = 1..m of P(v > W >= v - i) / i.

Neighbours add or remove one canary. The number of guesses must be fixed before the fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from kveil.arrays import Floats
from kveil.auditing.fitting import fitted
from kveil.errors import InvalidValue

LARGEST = 64.0  # epsilon that is looked for


@dataclass(frozen=True)
class OneRun:
    """Guesses of one fit. canaries: m. guesses: r, the others were abstained from. right: v.

    >>> round(OneRun(canaries=1000, guesses=100, right=75, delta=1e-4).lower(confidence=0.95), 3)
    0.673
    """

    canaries: int
    guesses: int
    right: int
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.guesses <= self.canaries:
            raise InvalidValue("right guesses are guesses, and there is at most one guess per canary.")
        if not 0 <= self.delta < 1:
            raise InvalidValue("delta must be from 0 up to 1.")

    def p_value(self, epsilon: float) -> float:
        """How probable so many right guesses are at the most, if the model is (epsilon, delta)-private."""
        chance = 1 / (1 + math.exp(-epsilon))
        pure = float(binom.sf(self.right - 1, self.guesses, chance))
        if not self.delta or not self.right:
            return min(1.0, pure)
        below = np.cumsum(binom.pmf(np.arange(self.right - 1, -1, -1), self.guesses, chance))  # P(v > W >= v - i), i = 1, ..., v
        return min(1.0, pure + 2 * self.canaries * self.delta * float((below / np.arange(1, self.right + 1)).max()))

    def lower(self, confidence: float = 0.999) -> float:
        """The largest epsilon that these guesses rule out at this confidence; 0 if none."""
        error = 1 - confidence
        if self.p_value(0.0) >= error:
            return 0.0
        if self.p_value(LARGEST) < error:
            return LARGEST
        return float(brentq(lambda epsilon: self.p_value(epsilon) - error, 0.0, LARGEST, xtol=1e-9))


def one_run(
    model: Any, table: Any, canaries: Any, *, guesses: int, score: Callable[[Any, Any], Floats] | None = None, delta: float = 0.0,
    random_state: Any = None,
) -> OneRun:  # fmt: skip
    """Fit once, with every canary in or out, and guess which ones were in: half of the guesses say "in", for the highest scores.

    table, canaries: rows, as arrays.
    score: of a fitted model and canaries, a number per canary, higher for those that seem to be in; default `nearness`.
    random_state: of the coins that put canaries in. They are not private.
    """
    coins = np.random.default_rng(random_state).integers(2, size=len(canaries)).astype(bool)
    if not 2 <= guesses <= len(canaries):
        raise InvalidValue("guesses must be at least 2, and at most one per canary.")
    seen = fitted(model, np.vstack([table, np.asarray(canaries)[coins]]))
    order = np.argsort((score or nearness)(seen, canaries), kind="stable")
    low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return OneRun(len(coins), guesses, int(coins[high].sum() + (~coins[low]).sum()), delta)


def nearness(seen: Any, canaries: Any) -> Floats:
    """Minus the distance of every canary to the nearest centre."""
    rows, centers = np.asarray(canaries, dtype=float), np.asarray(seen.cluster_centers_)
    found: Floats = -np.sqrt(((rows[:, None] - centers[None]) ** 2).sum(axis=2)).min(axis=1)
    return found
