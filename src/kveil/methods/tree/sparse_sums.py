"""How noisy sums of sparse rows will be: which noise is narrower, and a threshold that leaves columns where rows stand out."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt, log, sqrt
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.desk.base import PoolDesk
from kveil.kernel.grid import per_person
from kveil.questions.cells import TOP, Residuals
from kveil.solve.placed import Placed
from kveil.solve.shrink import within

FALSE_COLUMNS = 0.05  # how many columns without rows pass the threshold, expected, in a sum


class SparseSums(NamedTuple):
    """Sums (cells, d) of integer vectors of L2 norm at most `length` and at most s entries that are not 0, with exact noise.

    Private:      the sums, and which columns are empty.  Public: s, d, `length`, the share of the budget, the law, the cutoff.
    Neighbours:   those of the pool's plan; a person has at most m rows.
    Sensitivity:  a row lies in one cell and adds a vector of L2 norm at most `length`, as in `Pool`: that is all that Gaussian
                  and K-norm noise need. Of its entries at most s are not 0, so its L1 norm is at most sqrt(s) times its L2
                  norm (Cauchy-Schwarz), and, a whole number, at most isqrt(s length**2), which Laplace noise needs.
    Cost:         the share. Noise is on ALL columns, so which of them are kept afterwards is post-processing.
    Not covered:  whether s is true of the rows: `Frame` makes it so, by dropping the smallest entries of a row.
    Reference:    it replaces Algorithm 5 of Balcan, Dick, Liang, Mou, Zhang (2017), which pays for choosing columns.
    """

    desk: PoolDesk
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
        return self.desk.kind == "pure" and 2 * self.l1_length**2 < (self.n_columns + 1) * self.length**2

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in one coordinate of a sum."""
        if not self.is_laplace:
            return sqrt(self.desk.spread(self.n_columns, self.length, self.share) / self.n_columns)
        m, relation = self.desk.unit.max_rows_per_person, self.desk.relation
        return sqrt(2) * per_person(self.l1_length, m, relation) / (float(self.desk.total) * self.share)

    @property
    def cutoff(self) -> float:
        """What noise alone passes in about `FALSE_COLUMNS` columns of a sum. A coordinate of K-norm noise is nearly normal."""
        tail = log(self.n_columns / FALSE_COLUMNS)
        return self.deviation * (tail / sqrt(2) if self.is_laplace else sqrt(2 * tail))

    def ask(self, question: Residuals, of_counts: float) -> tuple[Floats, Floats]:
        """Noisy counts (cells,), 0 where they may be noise alone, and noisy sums (cells, d) whose unit is a radius divided by
        TOP. Public, charged."""
        asked = replace(question, by_coordinates=self.is_laplace, in_steps=False)
        (counts, deviation), sums = self.desk.ask(asked, of_counts, self.share)
        return np.where(counts < max(2 * deviation, 0.5), 0.0, counts), sums.values


def standing_out(sums: Floats, cutoffs: Floats | float) -> Floats:
    """Released sums with 0 in every column that noise alone could explain."""
    return np.where(np.abs(sums) > np.asarray(cutoffs), sums, 0.0)


def standing_means(counts: Floats, sums: Floats, n_cells: Floats, law: SparseSums, radius: float) -> Placed:
    """What stands out of sums over `n_cells` cells each, divided by counts; a cluster without rows is at 0."""
    kept = standing_out(sums, law.cutoff * np.sqrt(n_cells)[:, None])
    kept[counts == 0] = 0.0
    unit = radius / TOP / np.maximum(counts, 1.0)
    noise = law.deviation * np.sqrt(n_cells * np.count_nonzero(kept, axis=1)) * unit
    return Placed(within(kept * unit[:, None], radius), counts, np.where((counts > 0) & kept.any(axis=1), noise, radius))
