"""Noisy counts of a tree made consistent: children add up to their parent, and nothing is negative. All post-processing.

Bottom-up, a node's own count and the sum of its children's are averaged by their variances. Top-down, the children of a node are
moved to add up to it, the less certain ones more: the nearest such counts, in units of their deviations.
"""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.partition.hst import Hst
from kveil.solve import _tree_kernels

LEAST_MASS = 2.0  # times 1/epsilon of the node: lighter nodes cannot be told from empty ones


def consistent_counts(
    tree: Hst, noisy: Floats, variances: Floats, *, total: float | None = None, may_be_negative: bool = False
) -> Floats:
    """Counts (nodes,) that add up along the tree, from noisy counts with these variances, both (nodes,).

    The root's entries are not looked at: its count is `total`, where that is public, or the sum of its children's.
    may_be_negative: leave out the sign, which gives the weighted least squares fit.
    """
    pooled, spread = _pooled(tree, noisy, variances)
    counts = pooled.copy()
    counts[0] = pooled[0] if total is None else total
    if not may_be_negative:
        counts[0] = max(0.0, counts[0])
    _tree_kernels.settle(tree.first_child, tree.n_children, spread, may_be_negative, counts)
    return counts


def point_weights(tree: Hst, counts: Floats, budgets: Floats) -> Floats:
    """Weights (n_points,) of the points, from consistent counts: a node passes mass on to children that clearly have some, and
    spreads the rest evenly over its other members.

    budgets: epsilon of every node. A child with less than LEAST_MASS / epsilon is not told from an empty one.
    """
    sizes = tree.sums(np.ones(tree.space.n_points))
    stands_out = counts * budgets >= LEAST_MASS
    stands_out[0] = True
    rest, room, lowest = counts.copy(), sizes.copy(), np.arange(tree.n_nodes)
    for depth in range(1, tree.height + 1):
        nodes = np.flatnonzero(tree.depth == depth)
        stands_out[nodes] &= stands_out[tree.parent[nodes]]
        kept, others = nodes[stands_out[nodes]], nodes[~stands_out[nodes]]
        np.subtract.at(rest, tree.parent[kept], counts[kept])
        np.subtract.at(room, tree.parent[kept], sizes[kept])
        lowest[others] = lowest[tree.parent[others]]
    density = np.maximum(rest, 0.0) / np.where(room > 0, room, np.inf)  # a full node has nothing left but rounding
    return np.asarray(density[lowest[tree.leaf]])


def _pooled(tree: Hst, noisy: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Bottom-up: the best estimate of every node from its subtree, and its variance. The root is not measured."""
    pooled, spread = noisy.astype(np.float64), variances.astype(np.float64)
    pooled[0], spread[0] = 0.0, np.inf
    for depth in range(tree.height, 0, -1):
        nodes = np.flatnonzero(tree.depth == depth)
        sums, sum_spread = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
        np.add.at(sums, tree.parent[nodes], pooled[nodes])
        np.add.at(sum_spread, tree.parent[nodes], spread[nodes])
        above = np.unique(tree.parent[nodes])
        precision = 1 / spread[above] + 1 / sum_spread[above]
        pooled[above] = (pooled[above] / spread[above] + sums[above] / sum_spread[above]) / precision
        spread[above] = 1 / precision
    return pooled, spread
