"""A stream of overlapping Gaussians, batch by batch, in any order or sorted by the first column."""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri


def batches(rows: int, columns: int, batch: int, clusters: int, is_sorted: bool) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(clusters, columns))
    for start in range(0, rows, batch):
        if is_sorted:  # quantiles of x0 are drawn in order; the cluster of a row then follows from x0 as in the mixture
            x0 = 0.9 * np.sqrt(2) * ndtri((start + np.sort(rng.random(batch)) * batch) / rows)
            near = np.exp(-((x0[:, None] - places[:, 0]) ** 2) / 0.32)
            chance = np.cumsum(near, axis=1)
            owner = (rng.random((batch, 1)) * chance[:, -1:] > chance).sum(axis=1)
            block = places[np.minimum(owner, clusters - 1)] + 0.4 * rng.standard_normal((batch, columns))
            block[:, 0] = x0
        else:
            block = places[rng.integers(clusters, size=batch)] + 0.4 * rng.standard_normal((batch, columns))
        yield block
