"""Noisy counts of the cells of a public partition, and before them, where nobody knows it, a noisy number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from kveil.kernel import gate
from kveil.kernel.grid import per_person
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge, Measurement, PrivacyUnit, Relation, floor_rho
from kveil.kernel.noise import gaussian_noise, laplace_noise

Integers = NDArray[np.int64]
Noise = Measurement[Integers, Integers]

OF_SIZE = Fraction(1, 20)  # of the budget, where the number of rows has to be paid for


@dataclass(frozen=True)
class NoisyCellCounts:
    """Counts of disjoint cells of a public universe with integer noise; empty cells too.

    Private:      the rows and their number.  Public: the parameters, and the cells, whose number follows from the released or
                  declared number of rows alone.
    Neighbours:   those of the relation; a person has at most q rows.
    Sensitivity:  a row adds 1 to the count of one cell, so q rows move the counts by at most q in L1 and L2 (replace-one: 2 q
                  and ceil(sqrt(2) q)); `weight` times that for the weighted counts of `tree_counts`. The number of rows is
                  between 0 and q a person before and after, so it moves by at most q, under replace-one too.
    Cost:         epsilon (or rho) in all: a twentieth for the number of rows if it is asked for, the rest for the counts.
                  The cells depend on the first release only: adaptive composition.
    Not covered:  running time.
    """

    size: Noise | None  # of the number of rows
    counts: Noise
    scale: float  # of the noise in a count of weight 1: its standard deviation over sqrt(2); public

    @classmethod
    def pure(
        cls, epsilon: Fraction, relation: Relation, unit: PrivacyUnit, *, asks_size: bool, weight: int = 1
    ) -> NoisyCellCounts:
        """Discrete Laplace noise."""
        q = unit.max_rows_per_person
        of_size = epsilon * OF_SIZE if asks_size else Fraction(0)
        moved = per_person(weight, q, relation)
        one = relation == "add-remove" and q == 1  # then neighbours differ in one count
        size = laplace_noise("number of rows", q, of_size, one_coordinate=True, reason=OF_ROWS) if asks_size else None
        counts = laplace_noise("cells", moved, epsilon - of_size, one_coordinate=one and weight == 1, reason=OF_CELLS)
        return cls(size, counts, moved / float(epsilon - of_size))

    @classmethod
    def gaussian(
        cls, rho: Fraction, relation: Relation, unit: PrivacyUnit, *, asks_size: bool, weight: int = 1
    ) -> NoisyCellCounts:
        """Discrete Gaussian noise, for ledgers that add zCDP."""
        q = unit.max_rows_per_person
        of_size = floor_rho(rho * OF_SIZE) if asks_size else Fraction(0)
        moved = q * weight if relation == "add-remove" else isqrt(2 * (q * weight) ** 2 - 1) + 1
        size = gaussian_noise("number of rows", q, of_size, one_coordinate=True, reason=OF_ROWS) if asks_size else None
        counts = gaussian_noise("cells", moved, rho - of_size, reason=OF_CELLS)
        return cls(size, counts, moved / (2 * sqrt(rho - of_size)))

    @property
    def charges(self) -> tuple[Charge, ...]:
        return (self.counts.charge,) if self.size is None else (self.size.charge, self.counts.charge)

    def release_size(self, raw: Integers, ticket: Ticket) -> int:
        """A noisy number of rows, at least 1."""
        assert self.size is not None
        noisy, _ = gate.run(self.size, raw, ticket)
        return max(1, int(noisy[0]))

    def release_counts(self, raw: Integers, ticket: Ticket) -> Integers:
        """Noisy counts of every cell: skipping an empty one would publish its emptiness."""
        noisy, _ = gate.run(self.counts, raw, ticket)
        return noisy


OF_ROWS = "a person has between 0 and all of the rows they may have, before and after"
OF_CELLS = "a row is in one cell"
