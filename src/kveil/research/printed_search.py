"""Private k-median of the HST paper with the constants it prints, to draw its figures. Never used by a model.

Drawn in floating point by a seeded generator, so nothing here promises anything, whatever the constants. Of those the noise of
the seeds is not sound (`printed_hst`); the exponent of the search is, and half of what it may be where rows are added or removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.partition.hst import Hst
from kveil.research.printed_hst import printed_first_level_is_l
from kveil.solve.hst import seeds_from_counts
from kveil.solve.local_search import Swaps

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STEPS = 20  # T


class Walk(NamedTuple):
    """What a printed search came to: the centres it would release, and what its figure and its failure are made of."""

    centers: Integers
    iterates: float  # mean cost of the centres after every step, which the paper plots
    pull: float  # at the first step: how many times e the best swap is likelier than one of mean cost, in the logarithm


def printed_seeds(tree: Hst, raw_counts: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """Algorithm 6 with the first partition as level L: noise of scale 1, 2, 4, ... over epsilon from there down.

    A cell that stays whole on several levels is counted once, on the first of them, with the least noise.
    """
    counts = tree.sums(raw_counts).astype(np.float64)
    counts[1:] += rng.laplace(scale=1 / _rates(tree, epsilon))
    return seeds_from_counts(tree, counts, k, rng)


def printed_seeds_cost(tree: Hst, epsilon: float) -> float:
    """What those seeds cost in truth for rows added or removed: the sum of 1 / scale along the worst path."""
    paid = np.concatenate([[0.0], _rates(tree, epsilon)])
    for node in range(1, tree.n_nodes):  # parents come before children
        paid[node] += paid[tree.parent[node]]
    return float(paid.max())


def printed_walk(swaps: Swaps, start: Integers, epsilon: float, rng: np.random.Generator, n_steps: int = STEPS) -> Walk:
    """Algorithm 7: swaps, then one of all sets on the way, each drawn with weight exp(-cost epsilon / (4 diameter (T + 1))).

    It claims epsilon / 2. For rows added or removed it costs epsilon / 4: all costs move one way, by at most the diameter.
    """
    rate = epsilon / (4 * swaps.space.diameter * (n_steps + 1))
    sets, costs, pull = [start], [swaps.cost(start)], 0.0
    for step in range(n_steps):
        after = swaps.costs(sets[-1])
        free = np.setdiff1d(np.arange(swaps.space.n_points), sets[-1])
        offered = after[:, free].ravel()
        if step == 0:
            pull = rate * float(offered.mean() - offered.min())
        x, y = divmod(_drawn(offered, rate, rng), len(free))
        sets.append(np.concatenate([np.delete(sets[-1], x), free[y : y + 1]]))
        costs.append(int(after[x, free[y]]))
    last = _drawn(np.array(costs), rate, rng)
    return Walk(sets[last], float(np.mean(costs[1:])), pull)


def _rates(tree: Hst, epsilon: float) -> Floats:
    """1 / scale of the noise of every node but the root."""
    by_depth = np.array([depth.rate for depth in printed_first_level_is_l(tree.n_levels, epsilon)])
    cut = np.rint(np.log2(tree.factor * tree.diameter / tree.gap[1:])).astype(np.int64)  # 1 for the first partition
    return np.asarray(by_depth[cut - 1])


def _drawn(costs: Integers, rate: float, rng: np.random.Generator) -> int:
    """An index with probability ~ exp(-rate cost)."""
    heights = np.cumsum(np.exp(-rate * (costs - costs.min())))
    return int(np.searchsorted(heights, heights[-1] * rng.random(), side="right"))
