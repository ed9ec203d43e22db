"""Noisy counts of every node of a public tree, with a budget for each node that adds up to the whole along every path."""

from __future__ import annotations

from math import isqrt, lcm

import numpy as np
from numpy.typing import NDArray

from kveil.partition.hst import Hst
from kveil.privatise.pool import Pool

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def noisy_tree_counts(pool: Pool, tree: Hst, raw_counts: Integers, share: float) -> Floats:
    """Noisy counts (nodes,) of all nodes but the root, empty ones too, from raw counts (n,) of points. The root's is 0.

    Private:      the raw counts.  Public: the tree.
    Sensitivity:  a node's count is multiplied by a whole weight before noise of one width is added, and divided by it after. A row
                  is in the nodes of one path, whose weights (whose squares, for Gaussian noise) add up to at most `path`: it
                  moves the weighted counts by at most `path` in L1 (L2), and q rows by q times that, replace-one by twice that.
    Cost:         the share, in epsilon or rho. The noise of a node is as wide as its own part of it says: the weight over `path`.
    """
    weights, path = _weights(tree, is_squared=pool.kind == "zcdp")
    weighted = (weights * tree.sums(raw_counts))[None, 1:]  # secret; the root is not asked for
    release = pool.vectors if pool.kind == "zcdp" else pool.coordinates
    noisy = release("tree", weighted, path, share)[0]  # public, charged
    return np.concatenate([[0.0], noisy / weights[1:]])


def _weights(tree: Hst, *, is_squared: bool) -> tuple[Integers, int]:
    """Whole weights of the nodes, and what they, or their squares, add up to on a path: `path`, or its square."""
    height = max(1, tree.height)
    path = lcm(*range(1, height + 1)) << 10
    parts = np.where(tree.n_children > 0, 1, height - tree.depth + 1)  # of the height: an inner node one, a leaf all that is left
    if not is_squared:
        return parts * (path // height), path
    return np.array([isqrt(part * path * path // height) for part in parts.tolist()], dtype=np.int64), path
