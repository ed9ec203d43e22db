"""Ordinary weighted k-means on public points: k-variates++ seeds, Lloyd steps from scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.libraries import few_threads
from kveil.solve.seeding import seed


def weighted_kmeans(
    points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator, *, n_starts: int = 3, max_steps: int = 50
) -> Floats:
    """The best of `n_starts` runs of weighted k-means; always `n_clusters` centres, duplicates if points are too few."""
    from sklearn.cluster import KMeans

    best: Any = None
    for _ in range(n_starts):
        start = seed(points, n_clusters, weights=weights, random_state=rng).centers
        if len(points) < n_clusters:
            return start
        with warnings.catch_warnings(), few_threads(points.size * n_clusters):
            warnings.simplefilter("ignore")  # fewer distinct points than clusters is fine here
            run = KMeans(n_clusters, init=start, n_init=1, max_iter=max_steps).fit(points, sample_weight=weights)
        if best is None or run.inertia_ < best.inertia_:
            best = run
    return np.asarray(best.cluster_centers_, dtype=np.float64)
