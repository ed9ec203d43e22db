"""From noisy counts of cells to masses that are not negative: what stands out of the noise is kept, at three scales.

Ordinary post-processing of released values. A cell is kept if its own count is significant; what is left is judged group by
group of neighbouring cells, then all together, and spread over its cells by their size. Where noise could hide much of the
demand no single cell can be judged, and where it could hide half of it the demand is taken as spread like the universe.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats

Branch = Literal["public", "projected", "kept"]

HOPELESS, FAINT = 1 / 2, 1 / 10  # shares of the demand that noise could hide
SIGNIFICANT = 2.0  # standard deviations of a sum of cells that is told from noise


class Denoised(NamedTuple):
    """Masses of the cells (m,), which branch they took, and the share of the demand that noise could hide."""

    masses: Floats
    branch: Branch
    hidden: float


def denoised(counts: Floats, sizes: NDArray[np.int64], groups: NDArray[np.int32], scale: float) -> Denoised:
    """Masses from noisy `counts`, whose noise has standard deviation sqrt(2) `scale`; `sizes` and `groups` of the cells are
    public.

    >>> cells = np.array([1, 1, 2]), np.array([0, 0, 0])
    >>> denoised(np.array([90.0, 0.4, -1.0]), *cells, scale=1.0).masses.tolist()
    [90.0, 0.0, 0.0]
    """
    total = float(counts.sum())
    hidden = SIGNIFICANT * _deviation(len(counts), scale) / total if total > 0 else np.inf
    if hidden > HOPELESS:
        return Denoised(sizes / sizes.sum(), "public", float(hidden))
    if hidden > FAINT:
        return Denoised(_projected(counts, total), "projected", hidden)
    masses = _kept(counts, sizes, groups, scale)
    return Denoised(masses, "kept", hidden) if masses.any() else Denoised(sizes / sizes.sum(), "public", hidden)


def _deviation(n_cells: int, scale: float) -> float:
    """Of the noise in a sum over so many cells."""
    return scale * sqrt(2 * n_cells)


def _projected(counts: Floats, total: float) -> Floats:
    """The nearest masses that are not negative and add up to `total`: every count less one amount, or 0."""
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(counts - excess[last], 0.0))


def _kept(counts: Floats, sizes: NDArray[np.int64], groups: NDArray[np.int32], scale: float) -> Floats:
    masses = np.where(counts > scale * log(len(counts)), counts, 0.0) if len(counts) > 1 else np.maximum(counts, 0.0)
    n_groups = int(groups.max()) + 1
    for group in range(n_groups):
        left = np.flatnonzero((groups == group) & (masses == 0))
        _share_out(masses, counts, sizes, left, scale, max(SIGNIFICANT, sqrt(2 * log(n_groups))))
    _share_out(masses, counts, sizes, np.flatnonzero(masses == 0), scale, SIGNIFICANT)
    return masses


def _share_out(
    masses: Floats, counts: Floats, sizes: NDArray[np.int64], cells: NDArray[np.intp], scale: float, significant: float
) -> None:
    """Give cells that were not kept what they hold together, by their size, if that is more than noise explains."""
    together = float(counts[cells].sum())
    if together > significant * _deviation(len(cells), scale):
        masses[cells] = together * sizes[cells] / sizes[cells].sum()
