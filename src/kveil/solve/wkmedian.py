"""A thorough weighted k-median for small tables of released points: several starts, then swaps of centres that matter least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kveil.arrays import Floats
from kveil.solve.seeding import seed
from kveil.solve.swaps import swapped
from kveil.solve.wkmeans import padded, present


class Distance:
    """The Euclidean distance itself, not its square: k-median++ draws seeds by it."""

    def to_center(self, points: Floats, center: Floats) -> Floats:
        return np.asarray(np.linalg.norm(points - center, axis=1))


def thorough_kmedian(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """`n_clusters` centres of released points with a low weighted sum of distances; always that many, as in `thorough_kmeans`."""
    points, weights = present(points, weights)
    if len(points) <= n_clusters:
        return padded(points, n_clusters, rng)
    starts = (seed(points, n_clusters, weights=weights, divergence=Distance(), random_state=rng).centers for _ in range(6))
    best = min((_alternated(points, weights, start, 12) for start in starts), key=lambda run: run[1])
    best = swapped(points, weights, best, "euclidean", lambda start: _alternated(points, weights, start, 8), rng)
    return _alternated(points, weights, best[0], 50)[0]


def owners(points: Floats, centers: Floats) -> tuple[NDArray[np.intp], Floats]:
    """The nearest centre of every point, and its distance."""
    owner = np.asarray(((centers**2).sum(1) - 2 * points @ centers.T).argmin(axis=1))
    return owner, np.asarray(np.linalg.norm(points - centers[owner], axis=1))


def _alternated(points: Floats, weights: Floats, start: Floats, rounds: int) -> tuple[Floats, float]:
    """Nearest centres, then one Weiszfeld step in every cluster, in turn; and the cost at the end."""
    centers, tiny = start.copy(), 1e-9 * (float(np.abs(points).max()) or 1.0)
    for _ in range(rounds):
        owner, apart = owners(points, centers)
        pull = weights / np.maximum(apart, tiny)
        members = csr_array((pull, (owner, np.arange(len(points)))), shape=(len(centers), len(points)))
        total = np.asarray(members.sum(axis=1)).ravel()
        moved = np.asarray(members @ points) / np.where(total > 0, total, 1.0)[:, None]
        centers = np.where(total[:, None] > 0, moved, centers)
    return centers, float(weights @ owners(points, centers)[1])
