"""Released centres, what they weigh and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.solve.wkmeans import thorough_kmeans


class Placed(NamedTuple):
    """Released centres with their noisy counts and the noise in them."""

    centers: Floats
    counts: Floats
    errors: Floats


Clustering = Callable[[Floats, Floats, int, np.random.Generator], Floats]  # of released points with weights


def merged(cells: Placed, k: int, rng: np.random.Generator, clustered: Clustering = thorough_kmeans) -> Placed:
    """k centres of released cells: post-processing, and the noise of cells that go together is averaged."""
    strong = cells.counts > 0
    if not strong.any():
        return Placed(np.zeros((k, cells.centers.shape[1])), np.zeros(k), np.full(k, cells.errors.max()))
    points, counts, errors = cells.centers[strong], cells.counts[strong], cells.errors[strong]
    centers = clustered(points, counts, k, rng)
    owner = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    total = np.bincount(owner, counts, minlength=k).astype(np.float64)
    noise = np.sqrt(np.bincount(owner, (errors * counts) ** 2, minlength=k))
    return Placed(centers, total, np.where(total > 0, noise / np.maximum(total, 1.0), cells.errors.max()))
