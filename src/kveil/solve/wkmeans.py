"""A thorough weighted k-means for small tables of released points: several starts, then swaps of centres that matter least."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from kveil.solve.swaps import swapped

Floats = NDArray[np.float64]


def thorough_kmeans(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """`n_clusters` centres of released points. Fewer points than clusters: all of them, and copies with a public jitter."""
    import sklearn.cluster  # noqa: F401, before its threads can be limited
    from threadpoolctl import threadpool_limits

    points, weights = present(points, weights)
    if len(points) <= n_clusters:
        return padded(points, n_clusters, rng)
    with threadpool_limits(1):  # on so few points threads wait for each other ten times as long as they work
        starts = (_lloyd(points, weights, _greedy(points, weights, n_clusters, rng), 12) for _ in range(6))
        best = min(starts, key=lambda run: run[1])
        best = swapped(points, weights, best, "sqeuclidean", lambda start: _lloyd(points, weights, start, 8), rng)
        return _lloyd(points, weights, best[0], 50)[0]


def present(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Points of positive weight; all, alike, if there are none."""
    weights = np.maximum(weights, 0.0)
    if not weights.any():
        weights = np.ones(len(points))
    return points[weights > 0], weights[weights > 0]


def padded(points: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """All points, and copies of them with a public jitter."""
    extra = n_clusters - len(points)
    copies = points[np.arange(extra) % len(points)]
    jitter = 1e-3 * max(float(np.abs(points).max(initial=0.0)), 1e-300) * rng.uniform(-1, 1, size=copies.shape)
    return np.concatenate([points, copies + jitter])


def _greedy(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """k-means++ that tries several candidates a round and keeps the best, as scikit-learn does."""
    from sklearn.cluster import kmeans_plusplus

    seed = int(rng.integers(2**31))
    return np.asarray(kmeans_plusplus(points, n_clusters, sample_weight=weights, random_state=seed)[0])


def _lloyd(points: Floats, weights: Floats, start: Floats, steps: int) -> tuple[Floats, float]:
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters is fine here
        run = KMeans(len(start), init=start, n_init=1, max_iter=steps, tol=1e-6).fit(points, sample_weight=weights)
    return np.asarray(run.cluster_centers_), float(run.inertia_)
