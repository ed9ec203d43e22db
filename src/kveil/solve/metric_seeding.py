"""k-median++ on the points of a universe: each next centre by its distance to those before, times its weight.

Distances come from `Space.claim`, which on a graph searches only where the new centre is nearest: no matrix, and about
n ln k vertices visited in all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.solve.demand import Demand
from kveil.solve.loss import OBJECTIVES, Loss, Objective
from kveil.space.universe import Space, check_universe

BATCH = 64  # draws from one table of scores


def kmedian_plusplus(
    space: Space,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    objective: Objective = "k-median",
    random_state: int | np.random.Generator | None = None,
) -> Integers:
    """`n_clusters` distinct seeds, points of a universe by index, by (weighted) k-median++. Not private.

    weights: one per point, >= 0; all 1 unless given. objective="k-means" draws by squared distances: k-means++.

    >>> from kveil import Precomputed
    >>> sorted(kmedian_plusplus(Precomputed([[0, 0, 9], [0, 0, 9], [9, 9, 0]]), 2, random_state=0).tolist())[1]
    2
    """
    if objective not in OBJECTIVES:
        raise InvalidValue(f"objective must be one of {', '.join(map(repr, OBJECTIVES))}, got {objective!r}.")
    demand = demanded(space, n_clusters, weights)
    loss = Loss.within(space.diameter, objective, demand.total)
    return spread(space, demand, loss, int(n_clusters), np.random.default_rng(random_state))


def demanded(space: Space, n_clusters: object, weights: ArrayLike | None, name: str = "weights") -> Demand:
    """The demand that weights of all points stand for, once they and `n_clusters` are known to make sense."""
    check_universe(space)
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, int | np.integer) or not 1 <= n_clusters <= space.n_points:
        raise InvalidValue(
            f"n_clusters must be a whole number from 1 to {space.n_points}, the points of this universe; got {n_clusters!r}."
        )
    if weights is None:
        return Demand.of(np.arange(space.n_points))
    mass = np.asarray(weights)
    if mass.dtype.kind not in "biuf" or mass.shape != (space.n_points,):
        raise InvalidValue(f"{name} must be numbers, one for every point of the universe.")
    if not np.isfinite(mass).all() or (mass < 0).any() or not mass.any():
        raise InvalidValue(f"{name} must be finite and >= 0, and not all of them 0.")
    return Demand.weighted(mass)


def spread(space: Space, demand: Demand, loss: Loss, n_sites: int, rng: np.random.Generator) -> Integers:
    """`n_sites` distinct points: the first by weight, the next by weight times loss. When no loss is left, any points.

    Draws come in batches from one table of scores; a draw whose score has shrunk since is kept with probability new over old.
    So the law is that of one draw after another, and in whole numbers exactly so.
    """
    best, owner = np.full(space.n_points, space.diameter + 1, dtype=np.int32), np.full(space.n_points, -1, dtype=np.int32)
    sites: list[int] = []
    scores = demand.weights  # before the first site no point is nearer than another
    while len(sites) < n_sites and scores.any():
        cumulative = np.cumsum(scores)
        draws = np.searchsorted(cumulative, rng.integers(cumulative[-1], size=BATCH if sites else 1), side="right")
        for place, height in zip(draws.tolist(), rng.integers(scores[draws]).tolist(), strict=True):
            point = int(demand.indices[place])
            if len(sites) < n_sites and (not sites or height < demand.weights[place] * loss.of(best[point])):
                space.claim(point, len(sites), best, owner)
                sites.append(point)
        scores = demand.weights * loss.of(best[demand.indices])
    others = np.setdiff1d(np.arange(space.n_points), sites)
    return np.concatenate([sites, rng.permutation(others)[: n_sites - len(sites)]]).astype(np.int64)
