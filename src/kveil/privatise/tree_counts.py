"""Noisy counts of every node of a public tree, with a budget for each node that adds up to the whole along every path.

A node's count is multiplied by a whole weight, noise of one width is added to all, and the sum is divided by the weight again:
one release of one stated sensitivity, in which the noise of a node is as narrow as its part of the budget says.
"""

from __future__ import annotations

from math import isqrt, lcm

import numpy as np
from numpy.typing import NDArray

from kveil.partition.budgets import path_shares
from kveil.partition.hst import Hst
from kveil.privatise.pool import Pool

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LEVELS = 8  # of a tree, at most
PATH = lcm(*range(1, LEVELS + 1))  # divisible by the height of any such tree


def tree_weights(tree: Hst, *, is_squared: bool) -> Integers:
    """Whole weights (nodes,) of a tree of at most `LEVELS` levels; the root, which is not asked for, has 0.

    Along every path from the root they add up to PATH, or their squares to at most PATH squared.
    """
    shares, total = path_shares(tree)
    if not is_squared:
        return shares * (PATH // total)
    roots = [isqrt(share * PATH * PATH // total) for share in range(total + 1)]
    return np.array(roots, dtype=np.int64)[shares]


def noisy_tree_counts(pool: Pool, tree: Hst, raw_counts: Integers, share: float) -> Floats:
    """Noisy counts (nodes,) of all nodes but the root, empty ones too, from raw counts (n,) of points. The root's is 0.

    Private:      the raw counts.  Public: the tree.
    Sensitivity:  a row is in the nodes of one path, so it moves the weighted counts by at most PATH in L1 (for Gaussian noise
                  PATH in L2), and q rows by q times that, replace-one by twice that.
    Cost:         the share, in epsilon or rho.
    """
    if tree.n_nodes == 1:
        return np.zeros(1)
    weights = tree_weights(tree, is_squared=pool.kind == "zcdp")[1:]
    weighted = weights * tree.sums(raw_counts)[1:]  # secret
    release = pool.vectors if pool.kind == "zcdp" else pool.coordinates
    noisy = release("tree", weighted[None, :], PATH, share)[0]  # public, charged
    return np.concatenate([[0.0], noisy / weights])
