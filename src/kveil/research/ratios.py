"""How small the cost of some points can be beside that of others, over all sets of k centres anywhere in space."""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.research.partitions import group_means, least_cost, partitions

STARTS = 3


class Range(NamedTuple):
    """Between which numbers a value lies; both ends may be it."""

    low: float
    high: float


def potential(rows: Floats, centers: Floats) -> float:
    """The sum of squared distances to the nearest centre."""
    return float(((rows[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum())


def least_ratio(some: Floats, others: Floats, owner: NDArray[np.int64], n_centers: int) -> Range:
    """The least potential(some; C) / potential(others; C), over all sets C of at most so many centres.

    owner: for each of the others, one of `some`; the nearer, the better the bound.

    Low, proved: let every other point go to the centre of its owner. By the triangle inequality in the space of all rows,
    sqrt(potential(others)) <= sqrt(r potential(some)) + sqrt(s), with r the most that one point owns and s the squared distances
    to owners; and potential(some) is at least its least cost. High: the best of many sets, improved by a local search, and
    centres infinitely far away, where the ratio is that of the numbers of points.
    """
    spread = float(((others - some[owner]) ** 2).sum())
    most, floor = int(np.bincount(owner).max()), least_cost(some, n_centers)
    beyond = 0.0 if spread == 0 else spread / floor if floor else inf
    low = 1 / (sqrt(most) + sqrt(beyond)) ** 2
    return Range(low, max(low, _searched(some, others, n_centers)))


def _searched(some: Floats, others: Floats, n_centers: int) -> float:
    from scipy.optimize import minimize

    def ratio(flat: Floats) -> float:
        centers = flat.reshape(n_centers, -1)
        below = potential(others, centers)
        return potential(some, centers) / below if below > 0 else np.inf

    means, _ = group_means(some, partitions(len(some), n_centers), n_centers)
    starts = sorted((ratio(start.ravel()), place) for place, start in enumerate(means))[:STARTS]
    best = min(len(some) / len(others), starts[0][0])
    if best == 0:
        return 0.0
    outwards = 2 * means - others.mean(axis=0)
    for _, place in starts:
        for start in (means[place], outwards[place]):
            found = minimize(ratio, start.ravel(), method="Nelder-Mead", options={"maxiter": 2000, "xatol": 1e-9, "fatol": 1e-12})
            best = min(best, float(found.fun))
    return best
