"""The best event there is, where the law of a model can be enumerated: what it would show after so many fits.

`ideal_bound` takes every draw for randomised response. The exponential mechanism shows less than that; how much less, the exact
law of what leaves says.
"""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.auditing.bound import lower_epsilons


def best_event(law: Floats, *, runs: int, error: float = 5e-4) -> float:
    """The lower bound that the best event would give, with expected counts in so many fits of each table.

    law: the probability of everything that can leave, (outcomes, 2): on either table. By the lemma of Neyman and Pearson the best
    event takes outcomes in the order of their likelihood ratio, up to some place.

    >>> round(best_event(np.array([[0.73, 0.27], [0.27, 0.73]]), runs=2500), 2)
    0.84
    """
    law = law[(law > 0).any(axis=1)]
    found = 0.0
    for side in (0, 1):
        order = np.argsort(-law[:, side] / law.sum(axis=1), kind="stable")
        shares = np.cumsum(law[order], axis=0)
        mine, theirs = (np.minimum(np.rint(runs * shares[:, one]), runs).astype(int) for one in (side, 1 - side))
        found = max(found, float(lower_epsilons(mine, runs, theirs, runs, 0.0, error).max()))
    return found
