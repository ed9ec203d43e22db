"""The clip radius of a step, read off released distances: noise grows with it, and what clipping cuts off shrinks."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.solve.synopsis import Distances

MIDMOST = 0.85  # of the rows are not clipped in a step, where noise does not say more
PER_OCTAVE, OCTAVES = 8, 10  # radii that are tried, from the outermost rows inwards
LEAST_KEPT = 0.25  # of a row's length: less is noise in the counts of distances


def quantile(distances: Distances, q: float) -> float | None:
    """The outer edge of the bin that holds a noisy quantile; None if no bin stands out."""
    counts = np.where(distances.counts < 2 * distances.deviation, 0.0, distances.counts)
    if not counts.sum() > 0:
        return None
    return float(distances.outer[int(np.argmax(np.cumsum(counts) > (1 - q) * counts.sum()))])


def balanced(distances: Distances, noise: float) -> float | None:
    """The radius r with the least (noise r)² + excess(r)²; None if no bin shows rows.

    noise: root mean squared length of the noise in a mean, for a radius of 1. excess(r) is the mean of what rows are longer
    than r: clipping moves a mean by at most that. Where noise is as long as the radius, no radius makes a mean worth much, and
    a short one cuts off what is left of it: then it is the radius that holds most rows.

    >>> far = Distances(np.eye(1, 40, 8).ravel() * 100, 1.0, 8.0 * 2.0 ** (-np.arange(40) / 4), True)
    >>> round(balanced(far, 0.01), 2), balanced(far, 2.0)  # 100 rows at a distance between 1.68 and 2
    (1.83, 2.0)
    """
    first = distances.outermost
    if first is None or noise >= 1:
        return quantile(distances, MIDMOST)
    radii = distances.outer[first] * 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES) / PER_OCTAVE)
    return float(radii[np.argmin((noise * radii) ** 2 + excess(distances, radii) ** 2)])


def kept_part(distances: Distances, radius: float) -> float:
    """How much of a row's length clipping leaves, on average over rows: 1 if it cuts nothing, or if no bin shows rows.

    A sum of clipped rows divided by this part of their number is their mean, long ones counting less. Divided by their number it
    would be too short.
    """
    first = distances.outermost
    counts, middles = distances.counts[first:], distances.middles[first:]
    n = float(counts.sum())
    if first is None or n <= 0:
        return 1.0
    return float(np.clip(np.minimum(1.0, radius / middles) @ counts / n, LEAST_KEPT, 1.0))


def excess(distances: Distances, radii: Floats) -> Floats:
    """How far, on average, rows lie beyond each of these radii; 0 if no bin shows rows."""
    first = distances.outermost
    counts, middles = distances.counts[first:], distances.middles[first:]
    n = float(counts.sum())
    if first is None or n <= 0:
        return np.zeros(len(radii))
    return np.asarray(np.maximum(np.maximum(middles - radii[:, None], 0.0) @ counts / n, 0.0))
