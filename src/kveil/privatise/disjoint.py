"""Noisy counts and vector sums of disjoint public cells, every cell with noise of its own width, one charge for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.kernel import gate
from kveil.kernel.exact import Entropy
from kveil.kernel.grid import per_person
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Measurement, PrivacyUnit, Relation
from kveil.kernel.noise import discrete_gaussian, discrete_laplace, gaussian_noise, k_norm, k_norm_noise, laplace_noise

Integers = NDArray[np.int64]
Measured = Measurement[Integers, Integers]


@dataclass(frozen=True)
class DisjointCells:
    """Releases over cells of which every row is in at most one.

    Private:      the raw values.  Public: the cells, `lengths`, labels and budgets.
    Neighbours:   add or remove everything one person contributed, at most m rows; or replace it.
    Sensitivity:  a row adds 1 to the count of one cell and a vector no longer (L2) than that cell's `length` to its sum. Counts:
                  m in L1 and L2 (replace-one: 2 m and ceil(sqrt(2) m)). Sums: divided by its own length, every cell's sum moves
                  by at most 1 a row, so m over all cells together (replace-one: 2 m); noise in cell c is as wide as
                  length_c times what sensitivity m asks for, which is that release, scaled back.
    Cost:         `budget`, in epsilon (discrete Laplace; K-norm for vectors) or in rho (discrete Gaussian).
    Not covered:  running time.
    """

    kind: Literal["pure", "zcdp"]
    relation: Relation
    unit: PrivacyUnit

    def counts(self, label: str, budget: Fraction) -> Measured:
        """Counts of any number of cells."""
        noise = laplace_noise if self.kind == "pure" else gaussian_noise
        return noise(label, self._counted, budget, reason="a row is in at most one cell")

    def sums(self, label: str, lengths: Integers, budget: Fraction, longest: int) -> Measured:
        """Vector sums (cells, columns); `longest` bounds all lengths and is what the charge names, whichever cells are asked."""
        if lengths.size and not 1 <= lengths.min() <= lengths.max() <= longest:  # a length of 0 would mean no noise
            raise AssertionError("every length is at least 1, and none above the one that the charge names")
        noise = k_norm_noise if self.kind == "pure" else gaussian_noise
        reason = "a row adds a vector to at most one cell, no longer than that cell's own bound, which sets the noise there"
        charge = noise(label, longest * self._moved, budget, reason=reason).charge
        return Measurement(charge, lambda source, raw: raw + self._noise(source, raw.shape, lengths, budget))

    def count_deviation(self, budget: Fraction) -> float:
        """Standard deviation of one noisy count."""
        return sqrt(2) * self._counted / float(budget) if self.kind == "pure" else self._counted / sqrt(2 * float(budget))

    def sum_spread(self, columns: int, length: Any, budget: Fraction) -> Any:
        """Expected squared norm of the noise on a vector sum of a cell whose vectors are no longer than `length`."""
        reach, loss = np.asarray(length, dtype=np.float64) * self._moved, float(budget)
        return columns * (columns + 1) * (reach / loss) ** 2 if self.kind == "pure" else columns * reach**2 / (2 * loss)

    @property
    def _counted(self) -> int:
        """How far a person moves the counts: in L1, or in L2 where noise is Gaussian."""
        m = self.unit.max_rows_per_person
        return self._moved if self.kind == "pure" or self.relation == "add-remove" else isqrt(2 * m * m - 1) + 1

    @property
    def _moved(self) -> int:
        return per_person(1, self.unit.max_rows_per_person, self.relation)

    def _noise(self, source: Entropy, shape: tuple[int, ...], lengths: Integers, budget: Fraction) -> Integers:
        """Noise of every cell, the cells of one length together, in ascending order of lengths."""
        if lengths.shape != shape[:1]:  # a cell without a length would get no noise
            raise AssertionError("every cell needs a length of its own, and every length a cell")
        noise = np.zeros(shape, dtype=np.int64)
        for length in np.unique(lengths).tolist():
            which = np.flatnonzero(lengths == length)
            n_numbers, reach = len(which) * shape[1], length * self._moved
            if self.kind == "zcdp":
                drawn = discrete_gaussian(source, reach**2 / (2 * budget), n_numbers)
            elif shape[1] == 1:
                drawn = discrete_laplace(source, budget / reach, n_numbers)
            else:
                drawn = k_norm(source, reach / budget, len(which), shape[1])
            noise[which] = drawn.reshape(len(which), shape[1])
        return noise


def drawn(measurements: Sequence[Measured], raw: Sequence[Integers], ticket: Ticket) -> list[Integers]:
    """Each raw array with the noise of its measurement, paid from the reservation that lists their charges."""
    return [gate.run(measurement, part, ticket)[0] for measurement, part in zip(measurements, raw, strict=True)]
