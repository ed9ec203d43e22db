"""How large epsilon is at the least, if an event came up so often on one table and so often on the other.

If a release is (epsilon, delta)-private, then for every event and both tables P(event) <= e^epsilon Q(event) + delta, and the
same for its complement. Clopper-Pearson gives p <= P and Q <= q, each but for half of `error`. Both statements then say how
large epsilon is at the least:

    log((p - delta) / q)    and    log((1 - q - delta) / (1 - p)).

Both rest on the same two limits, so that taking the larger one costs no confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom

from kveil.arrays import Floats
from kveil.errors import InvalidValue

CERTAIN = 0.9  # how probably `power` speaks of being seen


@dataclass(frozen=True)
class Bound:
    """An event's counts on two tables, and what follows from them.

    hits, runs: how often it came up on the table that makes it likelier, of how many fits. It was fixed before they were made.
    other_hits, other_runs: the same for the other table.
    delta: of the promise. error: with what probability the bound may be wrong.

    >>> round(Bound(731, 1000, 269, 1000, error=1e-3).epsilon, 2)
    0.77
    """

    hits: int
    runs: int
    other_hits: int
    other_runs: int
    delta: float = 0.0
    error: float = 1e-3

    def __post_init__(self) -> None:
        if not (0 <= self.hits <= self.runs and 0 <= self.other_hits <= self.other_runs):
            raise InvalidValue("an event comes up at most once per fit. Pass hits <= runs, neither negative.")
        if not (0 <= self.delta < 1 and 0 < self.error < 1):
            raise InvalidValue("delta must be from 0 up to, and error strictly between, 0 and 1.")

    @property
    def epsilon(self) -> float:
        """The lower bound, 0 or more; wrong with a probability of at most `error`."""
        return float(lower_epsilons(self.hits, self.runs, self.other_hits, self.other_runs, self.delta, self.error))

    def power(self, epsilon: float) -> float | None:
        """A bug that makes the log odds of the event this many times as large would have been seen; None if none would.

        Seen: with so many fits the bound passes `epsilon` with probability 0.9. Where one noisy count decides the event, the
        factor is that of too narrow noise: 2 is noise of half the width. It is 1 if the event passes `epsilon` as it is.
        """
        logits = [np.log((k + 0.5) / (n - k + 0.5)) for k, n in ((self.hits, self.runs), (self.other_hits, self.other_runs))]
        middle, half = (logits[0] + logits[1]) / 2, (logits[0] - logits[1]) / 2
        if half <= 0:
            return None
        factors = np.geomspace(1, 64, 200)
        chances = 1 / (1 + np.exp(-(middle + np.outer((1, -1), factors) * half)))
        unlucky = (1 - CERTAIN) / 2
        few = binom.ppf(unlucky, self.runs, chances[0]).astype(int)
        many = binom.ppf(1 - unlucky, self.other_runs, chances[1]).astype(int)
        seen = lower_epsilons(few, self.runs, many, self.other_runs, self.delta, self.error) > epsilon
        return float(factors[np.argmax(seen)]) if seen.any() else None


def lower_epsilons(hits: object, runs: int, other_hits: object, other_runs: int, delta: float, error: float) -> Floats:
    """Lower bounds of epsilon for arrays of counts: see `Bound`."""
    k, j = np.asarray(hits), np.asarray(other_hits)
    low = np.where(k > 0, beta.ppf(error / 2, np.maximum(k, 1), runs - k + 1), 0.0)
    high = np.where(j < other_runs, beta.ppf(1 - error / 2, j + 1, np.maximum(other_runs - j, 1)), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        event, complement = np.log(np.maximum(low - delta, 0) / high), np.log(np.maximum(1 - high - delta, 0) / (1 - low))
    found: Floats = np.maximum(np.maximum(event, complement), 0.0)
    return found


def best_possible(runs: int, delta: float, error: float) -> float:
    """The bound of an event that always comes up on one table and never on the other: what so many fits can show at the most."""
    return float(lower_epsilons(runs, runs, 0, runs, delta, error))
