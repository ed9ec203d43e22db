"""A few rows with noise: a secret sample, which hides each row so well that the noise may be narrow (amplified Forgy)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kveil.arrays import Integers
from kveil.desk.base import Mechanism
from kveil.desk.row_places import RowPlaces, Score
from kveil.desk.seeds import Reach, secret_words
from kveil.kernel import gate
from kveil.kernel.choice import Places, noisy_picks
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge, Measurement, PrivacyUnit
from kveil.kernel.noise import laplace_noise
from kveil.source import Source


@dataclass(frozen=True)
class NoisySample(Mechanism):
    """`n_rows` rows drawn without replacement, each plus noise; the domain's centre where the table is too short.

    Private:      the rows, their number, which were drawn, and how many of the released ones stand for none.
                  Public: s = n_rows, the domain, the budget, and M: `expected_rows`, or else a noisy number of rows, at least s
                  (for s = 1 at least r).
    Neighbours:   add, remove or replace one record, or one person with at most r rows.
    Sensitivity:  of the number of rows: r. Of the sample: s distinct of T = max(rows, M) slots are drawn, in random order;
                  slot j holds record j, or nothing; neighbours differ in one slot, which is drawn with probability at most s/M,
                  and given that it is, in one released row: `kernel.choice.noisy_picks` has the proof.
    Cost:         of_size for the number of rows, unless `expected_rows` spares it, and of_sample for all s rows together, with
                  noise of e0 = ln(1 + (e**of_sample - 1) M/s), a person's r rows dividing of_sample by r.
    Not covered:  running time. M decides how much noise there is, not what is promised: it may be wrong.
    """

    domain: Box | Ball
    n_rows: int
    of_size: Fraction
    of_sample: Fraction
    expected_rows: float | None
    unit: PrivacyUnit
    is_vector: bool = True

    @property
    def charges(self) -> tuple[Charge, ...]:
        return (*(() if self._size is None else (self._size.charge,)), self._sample(1).charge)

    def release(self, source: Source, ticket: Ticket | None) -> Integers:
        """Noisy codes (s, d), not yet moved into the domain."""
        assert ticket is not None
        places = RowPlaces(source, self.domain, Score(), secret_words(2, ticket))
        size = noisy_size(self._size, self.expected_rows, places, ticket)
        return gate.run(self._sample(size), places, ticket)[0]

    @property
    def _size(self) -> Measurement[Integers, Integers] | None:
        return None if self.expected_rows is not None else size_noise(self.unit, self.of_size)

    def _sample(self, public_total: int) -> Measurement[Places, Integers]:
        reach, rows = Reach.of(self.domain, is_vector=self.is_vector), self.unit.max_rows_per_person
        least = rows if self.n_rows == 1 else self.n_rows  # a person may own so many slots, or all picks together
        return noisy_picks(
            "sample of rows", reach.diameter, self.of_sample, norm=reach.norm, n_picks=self.n_rows,
            rows=rows, public_total=max(least, public_total), reason="a row is drawn with probability at most s/M",
        )  # fmt: skip


def size_noise(unit: PrivacyUnit, epsilon: Fraction) -> Measurement[Integers, Integers]:
    """A noisy number of rows. Adding, removing or replacing a person's rows, r at most, changes it by at most r."""
    r = unit.max_rows_per_person
    return laplace_noise("number of rows", r, epsilon, one_coordinate=r == 1, reason="a person has at most so many rows")


def noisy_size(
    noise: Measurement[Integers, Integers] | None, expected_rows: float | None, places: RowPlaces, ticket: Ticket
) -> int:
    """A public or a released number of rows; it may be below 1."""
    if noise is None:
        return int(expected_rows or 1)
    return int(gate.run(noise, np.array([places.total], dtype=np.int64), ticket)[0][0])
