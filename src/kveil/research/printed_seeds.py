"""Seeds of the HST paper with the noise it prints, to draw its figures. Never used by a model.

Drawn in floating point by a seeded generator, so they promise nothing. Levels are numbered so that there is least noise, and then
the printed scales cost more than their epsilon (`printed_hst`).
"""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.partition.hst import Hst
from kveil.research.printed_hst import printed_first_level_is_l
from kveil.solve.hst import seeds_from_counts


def printed_seeds(tree: Hst, counts: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """Algorithm 6 on a demand of so many people at each point (n,), with the first partition as level L: noise of scale 1, 2, 4,
    ... over epsilon from there down.

    A cell that stays whole on several levels is counted once, on the first of them, with the least noise.
    """
    noisy = tree.sums(counts).astype(np.float64)
    noisy[1:] += rng.laplace(scale=1 / rates(tree, epsilon))
    return seeds_from_counts(tree, noisy, k, rng)


def printed_seeds_cost(tree: Hst, epsilon: float) -> float:
    """What they cost in truth for rows added or removed: the sum of 1 / scale along the worst path."""
    paid = np.concatenate([[0.0], rates(tree, epsilon)])
    for node in range(1, tree.n_nodes):  # parents come before children
        paid[node] += paid[tree.parent[node]]
    return float(paid.max())


def rates(tree: Hst, epsilon: float) -> Floats:
    """1 / scale of the noise of every node but the root."""
    by_depth = np.array([depth.rate for depth in printed_first_level_is_l(tree.n_levels, epsilon)])
    cut = np.rint(np.log2(tree.factor * tree.diameter / tree.gap[1:])).astype(np.int64)  # 1 for the first partition
    return np.asarray(by_depth[cut - 1])
