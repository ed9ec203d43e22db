"""Noisy sums of sparse rows: noise on all columns, and a threshold that leaves those where rows stand out from it."""

from __future__ import annotations

from math import isqrt, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.grid import per_person
from kveil.privatise.pool import Pool

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

FALSE_COLUMNS = 0.05  # how many columns without rows pass the threshold, expected, in a sum


class SparseSums(NamedTuple):
    """Sums (cells, d) of integer vectors of L2 norm at most `length` and at most s entries that are not 0, with exact noise.

    Private:      the sums, and which columns are empty.  Public: s, d, `length`, the share of the budget, the law, the cutoff.
    Neighbours:   those of the pool's plan; a person has at most m rows.
    Sensitivity:  a row lies in one cell and adds a vector of L2 norm at most `length`, as in `Pool`: that is all that Gaussian
                  and K-norm noise need. Of its entries at most s are not 0, so its L1 norm is at most sqrt(s) times its L2
                  norm (Cauchy-Schwarz), and, a whole number, at most isqrt(s length**2), which Laplace noise needs.
    Cost:         the share. Noise is on ALL columns, so which of them are kept afterwards is post-processing.
    Not covered:  whether s is true of the rows: the summary makes it so, by dropping the smallest entries of a row.
    Reference:    it replaces Algorithm 5 of Balcan, Dick, Liang, Mou, Zhang (2017), which pays for choosing columns.
    """

    pool: Pool
    length: int
    n_columns: int
    nonzeros: int  # s
    share: float

    @property
    def l1_length(self) -> int:
        return isqrt(min(self.nonzeros, self.n_columns) * self.length**2)

    @property
    def is_laplace(self) -> bool:
        """Whether Laplace noise on every coordinate is narrower than one K-norm vector: 2 s < d + 1, but for rounding."""
        return self.pool.kind == "pure" and 2 * self.l1_length**2 < (self.n_columns + 1) * self.length**2

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in one coordinate of a sum."""
        if not self.is_laplace:
            return sqrt(self.pool.spread(self.n_columns, self.length, self.share) / self.n_columns)
        m, relation = self.pool.unit.max_rows_per_person, self.pool.relation
        return sqrt(2) * per_person(self.l1_length, m, relation) / (float(self.pool.total) * self.share)

    @property
    def cutoff(self) -> float:
        """What noise alone passes in about `FALSE_COLUMNS` columns of a sum. A coordinate of K-norm noise is nearly normal."""
        tail = log(self.n_columns / FALSE_COLUMNS)
        return self.deviation * (tail / sqrt(2) if self.is_laplace else sqrt(2 * tail))

    def release(self, label: str, raw: Integers) -> Floats:
        """The noisy sums, in all columns."""
        if self.is_laplace:
            return self.pool.coordinates(label, raw, self.l1_length, self.share)
        return self.pool.vectors(label, raw, self.length, self.share)


def standing_out(sums: Floats, cutoffs: Floats | float) -> Floats:
    """Released sums with 0 in every column that noise alone could explain."""
    return np.where(np.abs(sums) > np.asarray(cutoffs), sums, 0.0)
