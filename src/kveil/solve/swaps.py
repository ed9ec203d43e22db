"""Swaps of centres that matter least, on small tables of released points: what k-means and k-median do alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats

Run = tuple[Floats, float]  # centres and their cost

MOST_DISTANCES = 2**24  # beyond it a table of all distances would fill the memory, and swaps bring little
MOST_SWAPS = 60


def swapped(
    points: Floats, weights: Floats, best: Run, metric: str, improved: Callable[[Floats], Run], rng: np.random.Generator
) -> Run:
    """Drop a centre whose removal costs least, add a point drawn by its cost, improve, and keep what is cheaper.

    `metric`: what a point costs at a centre, as scipy calls it. `improved`: a few ordinary steps from given centres.
    """
    k, failures = len(best[0]), 0
    for _ in range(MOST_SWAPS if k > 1 and len(points) * k <= MOST_DISTANCES else 0):
        apart = cdist(points, best[0], metric)
        two = np.partition(apart, 1, axis=1)
        loss = np.bincount(apart.argmin(axis=1), weights * (two[:, 1] - two[:, 0]), minlength=k)
        gone = int(rng.choice(np.argsort(loss)[: max(3, k // 8)]))
        score = weights * two[:, 0]
        if not score.sum() > 0:
            break
        new = points[rng.choice(len(points), p=score / score.sum())]
        trial = improved(np.vstack([np.delete(best[0], gone, axis=0), new]))
        failures = 0 if trial[1] < best[1] * (1 - 1e-9) else failures + 1
        if failures == 0:
            best = trial
        elif failures > 12 + k // 4:
            break
    return best
