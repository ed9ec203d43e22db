"""k-variates++ by its other names, for public points: k-means++, k-means‖, Forgy, k-means++ of a synopsis. None is private."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.solve.divergences import Divergence, SquaredEuclidean
from kveil.solve.seeding import First, Nearest, as_points, as_weights, check_clusters, draw_index, kvariates, seed

Rng = np.random.Generator


def kmeans_plusplus(
    points: ArrayLike, n_clusters: int, *, weights: ArrayLike | None = None, random_state: int | Rng | None = None
) -> Floats:
    """Centres by (weighted) k-means++: k-variates++ with the anchor itself as centre. Not private.

    >>> kmeans_plusplus([[0.0], [9.0]], 2, random_state=0).shape
    (2, 1)
    """
    return kvariates(points, n_clusters, weights=weights, random_state=random_state).centers


def skmeans_plusplus(
    synopsis: ArrayLike,
    weights: ArrayLike,
    n_clusters: int,
    *,
    first: First = "weighted",
    divergence: Divergence = SquaredEuclidean(),
    random_state: int | Rng | None = None,
) -> Floats:
    """Centres of a long table by k-means++ of its synopsis: points, each weighted by how many rows it stands for. Not private.

    Its expected cost is at most (2 + ln k)((10 + 4 eta) least + 4 s), s the squared distances of rows to their points. With
    another `divergence`, as for `kvariates`, no bound is stated.
    """
    found = kvariates(synopsis, n_clusters, weights=weights, first=first, divergence=divergence, random_state=random_state)
    return found.centers


def forgy(
    points: ArrayLike, n_clusters: int, *, weights: ArrayLike | None = None, random_state: int | Rng | None = None
) -> Floats:
    """Rows drawn by weight alone, without putting them back; with them back once there are fewer than clusters. Not private."""
    rows, rng = as_points(points), np.random.default_rng(random_state)
    mass = as_weights(weights, rows)
    check_clusters(n_clusters)
    left, picks = mass.copy(), np.empty(n_clusters, dtype=np.int64)
    for t in range(n_clusters):
        picks[t] = draw_index(left if left.any() else mass, rng)
        left[picks[t]] = 0.0
    return rows[picks]


def kmeans_parallel(
    points: ArrayLike,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    oversampling: float = 2.0,
    n_rounds: int = 5,
    random_state: int | Rng | None = None,
) -> Floats:
    """Centres by k-means‖: few rounds that each draw about `oversampling` k rows, then k-means++ of what was drawn. Not private.

    Every round takes a row with probability oversampling k w D / sum(w D), on its own; a drawn row weighs as much as the rows
    it is nearest to. Bahmani, Moseley, Vattani, Kumar, Vassilvitskii, "Scalable k-means++" (2012).
    """
    rows, rng = as_points(points), np.random.default_rng(random_state)
    mass = as_weights(weights, rows)
    check_clusters(n_clusters)
    if not (np.isfinite(oversampling) and oversampling > 0 and isinstance(n_rounds, int) and n_rounds >= 1):
        raise InvalidValue("oversampling must be a number above 0 and n_rounds a whole number of at least 1.")
    drawn, nearest = [draw_index(mass, rng)], Nearest(len(rows))
    nearest.add(rows, rows[drawn[0]], 0)
    for _ in range(n_rounds):
        scores = mass * nearest.best
        total = scores.sum()
        if not total > 0:
            break
        found = np.flatnonzero(rng.random(len(rows)) * total < oversampling * n_clusters * scores).tolist()
        for index, row in enumerate(found, start=len(drawn)):
            nearest.add(rows, rows[row], index)
        drawn += found
    owned = np.bincount(nearest.owner, mass, minlength=len(drawn))
    return seed(rows[drawn], n_clusters, weights=owned, random_state=rng).centers
