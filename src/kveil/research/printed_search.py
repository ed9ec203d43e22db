"""Private local search as printed, for figures alone: draws come from a seeded generator, which hides nothing.

"k-Median Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy", Algorithm 7: half of epsilon
for the start, and swaps weighed by exp(-epsilon cost / (4 diameter (T + 1))). That is sound, for both relations, and blunter than
it need be: under add-remove costs move one way only, a row adds at most the distance to the second nearest centre, and a public
start costs nothing (`kveil.methods.universe.search` has all three).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers
from kveil.desk.walk import PlaceCosts
from kveil.solve.loss import Loss, Objective
from kveil.space.universe import Space


class Walk(NamedTuple):
    """All centres on the way, the start first (steps + 1 of them), and which of them is released."""

    sets: list[Integers]
    chosen: int


def printed_local_search(
    space: Space,
    counts: Integers,
    start: ArrayLike,
    rng: np.random.Generator,
    *,
    epsilon: float,
    n_steps: int = 20,
    objective: Objective = "k-median",
) -> Walk:
    """Algorithm 7 on a demand of so many people at each point (n,), from given centres. `epsilon`: of it all, start included."""
    loss = Loss.within(space.diameter, objective, int(counts.sum()))
    costs = PlaceCosts(space, counts, np.arange(space.n_points), loss)
    rate = epsilon / (4 * max(1, int(loss.of(space.diameter))) * (n_steps + 1))
    sets = [np.array(start, dtype=np.int64)]
    for _ in range(n_steps):
        centers = sets[-1]
        free = np.setdiff1d(np.arange(space.n_points), centers)
        if not len(free):
            break
        x, y = divmod(_drawn(costs.swaps(centers)[:, free].ravel(), rate, rng), len(free))
        sets.append(np.append(np.delete(centers, x), free[y]))
    return Walk(sets, _drawn(costs.sets(sets), rate, rng))


def _drawn(costs: Integers, rate: float, rng: np.random.Generator) -> int:
    """An index with probability ~ exp(-rate cost), by the largest of scores with Gumbel noise."""
    return int(np.argmax(rng.gumbel(size=len(costs)) - rate * (costs - costs.min())))
