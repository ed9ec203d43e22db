"""Few columns: one partition with noisy counts, and what it tells of centres beyond the cells that stand out.

Cells whose count does not stand out are cut before clustering, or noise would draw centres. But rows in them are real, and
cutting them is a bias where clusters overlap. Summed over a cluster the noise of single cells averages out: so centres are
moved once more with raw counts, negative ones too, of all cells in blocks that stand out together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.libraries import few_threads
from kveil.solve.wkmeans import thorough_kmeans

N_MOVES = 3


class Histogram(NamedTuple):
    """Cells that rows may be in, of any sizes. Released: a noisy count each, of one deviation.

    weights: what ordinary clustering sees: the count of a cell that stands out, an even share of the sum where several stand out
        together, and 0 for the others.
    widths: root mean squared distance of a row from the middle of its cell, if rows lie evenly.
    """

    points: Floats
    counts: Floats
    weights: Floats
    deviation: float
    widths: Floats

    def centers(self, k: int, rng: np.random.Generator) -> Floats:
        """k centres: ordinary clustering of the cells that stand out, then moves that use the others, too."""
        centers = thorough_kmeans(self.points, self.weights, k, rng)
        for _ in range(N_MOVES):
            owner, rows, n_cells = self._owned(centers)
            sums = np.stack([np.bincount(owner, self.counts * column, minlength=k) for column in self.points.T], axis=1)
            is_clear = rows > 4 * self.deviation * np.sqrt(n_cells) + 1
            centers = np.where(is_clear[:, None], sums / np.where(is_clear, rows, 1.0)[:, None], centers)
        return centers

    def squared_errors(self, centers: Floats) -> Floats:
        """Expected squared distance of each centre from the mean it stands for: noise of counts, and rows off the middles of
        their cells, which average out over as many cells as a cluster fills."""
        k = len(centers)
        owner, rows, _ = self._owned(centers)
        rows, positive = np.maximum(rows, 1.0), np.maximum(self.counts, 0.0)
        levers = np.bincount(owner, ((self.points - centers[owner]) ** 2).sum(axis=1), minlength=k)
        total, off = (np.bincount(owner, part, minlength=k) for part in (positive, (positive * self.widths) ** 2))
        off_middles = np.where(total > 0, off / np.maximum(total, 1e-9) ** 2, (self.widths**2).max())
        return np.asarray(self.deviation**2 * levers / rows**2 + off_middles)

    def _owned(self, centers: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The nearest centre of every cell, and noisy rows and number of cells of each centre."""
        from sklearn.metrics import pairwise_distances_argmin  # here, since loading it takes longer than most fits

        with few_threads(len(self.points) * len(centers)):
            owner = np.asarray(pairwise_distances_argmin(self.points, centers), dtype=np.int64)
        rows = np.bincount(owner, self.counts, minlength=len(centers)).astype(np.float64)
        return owner, rows, np.bincount(owner, minlength=len(centers)).astype(np.float64)
