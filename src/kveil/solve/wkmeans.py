"""A thorough weighted k-means for small tables of released points: several starts, then swaps of centres that matter least.

Not scikit-learn's: hundreds of runs on few points, each of which it checks for longer than it computes, and its threads wait for
each other. Equal results within chance, in a quarter of the time and 20 MB less of memory.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.solve import _lloyd_kernels as _kernels
from kveil.solve.swaps import Run, swapped

MANY, PER_CENTER = 2**14, 64  # points: of more, groups of neighbours are clustered before all of them are
FEW = 2**10  # points: of so many, distances between all of them are worked out once for all starts
CURVE_BITS, MOST_TURNS = 12, 4  # halvings of a column, for the order of neighbours, and how many columns are halved


def thorough_kmeans(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """`n_clusters` centres of released points. Fewer points than clusters: all of them, and copies with a public jitter."""
    points, weights = present(points, weights)
    if len(points) <= n_clusters:
        return padded(points, n_clusters, rng)
    points, still = np.ascontiguousarray(points, dtype=np.float64), 1e-6 * float(points.var(axis=0).mean())
    if len(points) > max(MANY, PER_CENTER * n_clusters):
        start = thorough_kmeans(*joined(points, weights, max(MANY, PER_CENTER * n_clusters)), n_clusters, rng)
        _kernels.lloyd(points, weights, start, 50, still)
        return start

    def lloyd(start: Floats, steps: int) -> Run:
        centers = start.copy()
        return centers, float(_kernels.lloyd(points, weights, centers, steps, still))

    apart = _distances(points)
    starts = (lloyd(_greedy(points, weights, n_clusters, rng, apart), 12) for _ in range(6))
    best = min(starts, key=lambda run: run[1])
    best = swapped(points, weights, best, "sqeuclidean", lambda start: lloyd(start, 8), rng)
    return lloyd(best[0], 50)[0]


def quick_kmeans(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """`n_clusters` centres of more released points, by one start and few steps."""
    points, weights = present(points, weights)
    if len(points) <= n_clusters:
        return padded(points, n_clusters, rng)
    points = np.ascontiguousarray(points, dtype=np.float64)
    centers = _greedy(points, weights, n_clusters, rng, None)
    _kernels.lloyd(points, weights, centers, 12, 1e-6 * float(points.var(axis=0).mean()))
    return centers


def present(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Points of positive weight; all, alike, if there are none."""
    weights = np.maximum(weights, 0.0)
    if not weights.any():
        weights = np.ones(len(points))
    return points[weights > 0], weights[weights > 0]


def joined(points: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Means and weights of `most` groups of neighbours, as many points in each: where they lie close, there are many groups.

    Points are put in the order of a curve that halves the columns in turn, at medians of some of them. A run of them is a group.
    """
    some = np.sort(points[:: max(1, len(points) >> CURVE_BITS)], axis=0)
    ranks = [np.searchsorted(edges, column) for edges, column in zip(some.T[:MOST_TURNS], points.T, strict=False)]
    places = [np.minimum((rank << CURVE_BITS) // len(some), (1 << CURVE_BITS) - 1) for rank in ranks]
    codes = np.zeros(len(points), dtype=np.int64)
    for bit in reversed(range(CURVE_BITS)):
        for place in places:
            codes = codes << 1 | (place >> bit & 1)
    order = np.argsort(codes, kind="stable")
    first = np.arange(most) * len(points) // most
    mass = np.add.reduceat(weights[order], first)
    return np.add.reduceat((points * weights[:, None])[order], first) / mass[:, None], mass


def padded(points: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    """All points, and copies of them with a public jitter."""
    extra = n_clusters - len(points)
    copies = points[np.arange(extra) % len(points)]
    jitter = 1e-3 * max(float(np.abs(points).max(initial=0.0)), 1e-300) * rng.uniform(-1, 1, size=copies.shape)
    return np.concatenate([points, copies + jitter])


def _distances(points: Floats) -> Floats | None:
    """Squared distances between all points, if they are few."""
    return cdist(points, points, "sqeuclidean") if len(points) <= FEW else None


def _greedy(points: Floats, weights: Floats, n_clusters: int, rng: np.random.Generator, table: Floats | None) -> Floats:
    """k-means++ that tries several candidates a round and keeps the best, as scikit-learn does. `table`: all distances."""
    n_trials, last = 2 + int(np.log(n_clusters)), len(points) - 1
    centers, best = np.empty((n_clusters, points.shape[1])), np.ones(len(points))
    for t in range(n_clusters):
        below = np.cumsum(weights * best)
        if not below[-1] > 0:  # fewer distinct points than clusters
            centers[t:] = centers[0]
            break
        picks = np.minimum(np.searchsorted(below, rng.random(n_trials if t else 1) * below[-1], side="right"), last)
        apart = cdist(points[picks], points, "sqeuclidean") if table is None else table[picks]
        near = np.minimum(best, apart) if t else apart
        kept = int(np.argmin(near @ weights))
        centers[t], best = points[picks[kept]], near[kept]
    return centers
