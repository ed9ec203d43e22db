"""Seeds from a 2-HST: a subtree search finds k cells that matter, a leaf search finds a point in each.

Counts and scores are handed in, so that noisy ones may be: whatever is done here is then post-processing. The descent uses the
counts it is given and no others; a true count there would be a leak.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.partition.hst import Hst
from kveil.solve import _tree_kernels
from kveil.space.universe import Space, check_universe

Numbers = NDArray[np.float64] | NDArray[np.int64]
Objective = Literal["k-median", "k-means"]


def hst(
    space: Space,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    objective: Objective = "k-median",
    levels: int = 8,
    random_state: int | np.random.Generator | None = None,
) -> Integers:
    """`n_clusters` seeds, points of a universe by index, by the 2-HST of "k-Median Clustering via Metric Embedding". Not private.

    weights: one per point, >= 0; all 1 unless given. levels: how often the tree halves the radii of its cells.

    >>> from kveil.space.vectors import Euclidean
    >>> shops = Euclidean([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]])
    >>> sorted(int(seed) // 3 for seed in hst(shops, 2, random_state=0))
    [0, 1]
    """
    check_universe(space)
    mass = np.ones(space.n_points, dtype=np.int64) if weights is None else np.asarray(weights)
    _check(space, n_clusters, mass, objective)
    mass = mass.astype(np.int64 if mass.dtype.kind in "biu" else np.float64)
    return hst_seeds(space, n_clusters, mass, np.random.default_rng(random_state), objective=objective, levels=levels)


def hst_seeds(
    space: Space, k: int, weights: Numbers, rng: np.random.Generator, *, objective: Objective = "k-median", levels: int = 8
) -> Integers:
    """`k` distinct seeds by a fresh tree and these weights, one per point of the space."""
    tree = Hst.of(space, levels=levels, random_state=rng)
    return seeds_from_counts(tree, tree.sums(weights), k, rng, objective=objective)


def seeds_from_counts(
    tree: Hst, counts: Numbers, k: int, rng: np.random.Generator | None = None, *, objective: Objective = "k-median"
) -> Integers:
    """`k` distinct points by subtree search and leaf search on counts, noisy or not, one per node; the root's is not looked at.

    rng: public choices, needed where the tree has fewer than `k` leaves.
    """
    power = 1 if objective == "k-median" else 2
    leaves = tree.leaves
    if len(leaves) <= k:
        return _filled(tree, leaves, counts, k, np.random.default_rng(rng))
    found = leaf_search(tree, counts, subtree_search(tree, counts * tree.gap**power, k))
    return np.asarray(tree.representative[found])


def subtree_search(tree: Hst, scores: Numbers, k: int) -> Integers:
    """Up to `k` nodes, none above another: the lowest ones of the shortest prefix, by falling score, that has k of them.

    Equals the paper's loop that adds the best nodes left and drops their ancestors. Ties go to the node made first.
    """
    order = 1 + np.argsort(-scores[1:], kind="stable")
    return np.flatnonzero(_tree_kernels.prefix_minima(tree.parent, order, k))


def leaf_search(tree: Hst, counts: Numbers, nodes: Integers) -> Integers:
    """The leaf below each node that is reached by going to the child with the largest count, ties to the first child."""
    return np.asarray(_tree_kernels.descend(tree.first_child, tree.n_children, counts.astype(np.float64), nodes))


def _filled(tree: Hst, leaves: Integers, counts: Numbers, k: int, rng: np.random.Generator) -> Integers:
    """All leaves' representatives, then members of leaves that hold more locations, by k-median++ with the leaf's count spread
    over its members; when those are used up, any points."""
    space = tree.space
    chosen = tree.representative[leaves].tolist()
    mass = np.maximum(counts[leaves], 0) / (tree.stop - tree.start)[leaves]
    share = np.zeros(space.n_points)
    share[tree.members] = mass[np.searchsorted(leaves, tree.leaf[tree.members])]
    best = np.full(space.n_points, space.diameter + 1, dtype=np.int32)
    owner = np.full(space.n_points, -1, dtype=np.int32)
    for label, site in enumerate(chosen):
        space.claim(site, label, best, owner)
    is_location = np.zeros(space.n_points, dtype=np.bool_)
    is_location[tree.members] = True
    while len(chosen) < k:
        scores = share * best
        scores = scores if scores.any() else np.where(is_location, best, 0).astype(np.float64)
        if not scores.any():
            spare = np.setdiff1d(np.arange(space.n_points), chosen)
            return np.concatenate([chosen, rng.permutation(spare)[: k - len(chosen)]]).astype(np.int64)
        chosen.append(int(rng.choice(space.n_points, p=scores / scores.sum())))
        space.claim(chosen[-1], len(chosen) - 1, best, owner)
    return np.asarray(chosen, dtype=np.int64)


def _check(space: Space, n_clusters: object, mass: NDArray[np.generic], objective: object) -> None:
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, int | np.integer) or not 1 <= n_clusters <= space.n_points:
        raise InvalidValue(f"n_clusters must be a whole number from 1 to {space.n_points}, the number of points of the universe.")
    if objective not in ("k-median", "k-means"):
        raise InvalidValue('objective must be "k-median" or "k-means".')
    if mass.shape != (space.n_points,) or mass.dtype.kind not in "biuf":
        raise InvalidValue("weights must be one number a point of the universe.")
    if not np.isfinite(mass).all() or (mass < 0).any() or not (mass > 0).any():  # type: ignore[operator]
        raise InvalidValue("weights must be finite and >= 0, not all of them 0.")
