"""How wide noise must be to hide one person in one part of an answer: the only place where a sensitivity becomes a charge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any, Literal

import numpy as np

from kveil.arrays import Integers
from kveil.kernel.exact import Entropy
from kveil.kernel.grid import per_person
from kveil.kernel.loss import Charge, Measurement, PrivacyUnit, Relation
from kveil.kernel.noise import discrete_gaussian, discrete_laplace, gaussian_noise, k_norm, k_norm_noise, laplace_noise
from kveil.questions.base import Part, Question

COUNT = Part("a count", "counts")  # any one, for forecasts of its noise
NOISED = ("counts", "total", "vectors", "coordinates")  # kinds of parts that noise is added to; of the others one is chosen


@dataclass(frozen=True)
class Law:
    """Exact noise on the parts of answers.

    Neighbours:   add or remove everything one person contributed, at most m rows; or replace it.
    Sensitivity:  a part says what one row does: `length` in counts (1, nearly always) or in one vector. So m rows move counts by
                  m length in L1 and L2, and vectors by m length, summed over cells. Replacing is removing and adding: counts move
                  by 2 m length in L1; in L2 by ceil(sqrt(2) m length), since what is removed and what is added are not negative,
                  and where both touch a number they cancel; vectors by 2 m length. Vectors whose entries are never negative are
                  like counts: in L2, <removed, added> >= 0, so |removed - added|**2 <= 2 (m length)**2; in L1, and as lengths
                  summed over cells, it stays 2 m length. A total is between 0 and m length per person
                  before and after: it moves by m length, replaced or not.
                  With `lengths`, every cell has a bound of its own: divided by it, each sum moves by at most 1 per row, so m over
                  all cells together; noise in cell c is as wide as length_c times what that asks for, which is the same
                  release, scaled back. The charge names the longest bound there could be, whichever cells are asked.
    Cost:         `budget`, in epsilon (discrete Laplace; K-norm for vectors of several columns) or rho (discrete Gaussian).
    Not covered:  running time.

    says_one: whether charges say that neighbours differ in one number; no computation reads it, files and receipts have it.
    """

    kind: Literal["pure", "zcdp"]
    relation: Relation
    unit: PrivacyUnit
    says_one: bool = False

    def measure(
        self, part: Part, columns: int, budget: Fraction, *, times: int = 1, lengths: Integers | None = None
    ) -> Measurement[Integers, Integers]:
        """What is charged and what is drawn, in one object. `lengths`: bounds of the single cells, at most `part.length`."""
        if part.kind not in NOISED:  # a row may move every cost, and no norm of a part says how far they move together
            raise AssertionError("noise is for counts and sums")
        if part.in_l2 and self.kind == "pure":
            raise AssertionError("Laplace noise needs a bound in L1, and this part has one in L2 alone")
        moved, terms = self.moved(part), {"times": times, "reason": part.reason}
        if self.kind == "zcdp":
            is_one = self.says_one and part.kind == "total"
            noise = gaussian_noise(part.label, moved, budget, one_coordinate=is_one, **terms)
        elif part.kind == "vectors" and (columns > 1 or lengths is not None):
            noise = k_norm_noise(part.label, moved, budget, **terms)
        else:
            is_one = self.says_one and (part.kind == "total" or (self._is_one_row and self._is_one_number(part, columns)))
            noise = laplace_noise(part.label, moved, budget, one_coordinate=is_one, **terms)
        if lengths is None:
            return noise
        if lengths.size and not 1 <= lengths.min() <= lengths.max() <= part.length:  # a length of 0 would mean no noise
            raise AssertionError("every length is at least 1, and none above the one that the charge names")
        return Measurement(noise.charge, lambda source, raw: raw + self._by_cell(source, raw.shape, lengths, budget))

    def charges(self, parts: tuple[Part, ...], columns: int, budgets: tuple[Fraction, ...], times: int = 1) -> tuple[Charge, ...]:
        """What parts cost whose sums have so many columns: known before there are centres to ask about."""
        return tuple(self.measure(part, columns, budget, times=times).charge for part, budget in zip(parts, budgets, strict=True))

    def asked(
        self, question: Question, columns: int, budgets: tuple[Fraction, ...], times: int = 1
    ) -> tuple[Measurement[Integers, Integers], ...]:
        """The measurements of a question, one for each part."""
        pairs = zip(question.parts, budgets, strict=True)
        own = question.lengths
        return tuple(
            self.measure(part, columns, budget, times=times, lengths=own if part.kind == "vectors" else None)
            for part, budget in pairs
        )

    def moved(self, part: Part) -> int:
        """How far one person moves a part, in the norm that its noise is made for."""
        m = self.unit.max_rows_per_person
        if part.kind == "total":
            return m * part.length
        adds_only = part.kind == "counts" or not part.is_signed
        if adds_only and self.kind == "zcdp" and self.relation == "replace-one":
            return isqrt(2 * (m * part.length) ** 2 - 1) + 1
        return per_person(part.length, m, self.relation)

    def deviation(self, part: Part, budget: Any) -> float:
        """Standard deviation of one noisy number of a count or a total."""
        return sqrt(2) * self.moved(part) / float(budget) if self.kind == "pure" else self.moved(part) / sqrt(2 * float(budget))

    def variance(self, part: Part, columns: int, budget: Any) -> float:
        """Of one coordinate of a noisy sum."""
        reach = self.moved(part)
        if self.kind == "zcdp":
            return reach**2 / (2 * float(budget))
        return (2 if part.kind == "coordinates" else columns + 1) * (reach / float(budget)) ** 2

    def spread(self, columns: int, length: Any, budget: Any) -> Any:
        """Expected squared norm of the noise on a sum of vectors no longer than `length`."""
        reach, loss = length * per_person(1, self.unit.max_rows_per_person, self.relation), float(budget)
        return columns * (columns + 1) * (reach / loss) ** 2 if self.kind == "pure" else columns * reach**2 / (2 * loss)

    @property
    def _is_one_row(self) -> bool:
        return self.relation == "add-remove" and self.unit.max_rows_per_person == 1

    @staticmethod
    def _is_one_number(part: Part, columns: int) -> bool:
        return part.length == 1 if part.kind == "counts" else columns == 1

    def _by_cell(self, source: Entropy, shape: tuple[int, ...], lengths: Integers, budget: Fraction) -> Integers:
        """Noise of every cell, the cells of one length together, in ascending order of lengths."""
        if lengths.shape != shape[:1]:  # a cell without a length would get no noise
            raise AssertionError("every cell needs a length of its own, and every length a cell")
        noise, per_row = np.zeros(shape, dtype=np.int64), per_person(1, self.unit.max_rows_per_person, self.relation)
        for length in np.unique(lengths).tolist():
            which = np.flatnonzero(lengths == length)
            n_numbers, reach = len(which) * shape[1], length * per_row
            if self.kind == "zcdp":
                drawn = discrete_gaussian(source, reach**2 / (2 * budget), n_numbers)
            elif shape[1] == 1:
                drawn = discrete_laplace(source, budget / reach, n_numbers)
            else:
                drawn = k_norm(source, reach / budget, len(which), shape[1])
            noise[which] = drawn.reshape(len(which), shape[1])
        return noise
