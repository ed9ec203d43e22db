"""Sums of rows as directions: of all rows by column, and of the rows that point the same way as each of some centres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kveil.arrays import Integers
from kveil.questions import _unit_kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import blocks, is_csr

TOP = 2**16  # the length of a unit row: sums of 2**40 rows stay below 2**57, products with centres of that length below 2**53


@dataclass(frozen=True, eq=False)
class UnitRows:
    """How a row becomes a vector v of whole numbers, of length at most TOP and nearly that: a map of that row alone.

    Its codes in the kept columns, without negative ones unless `signed`; of these at most `nonzeros`, the largest, ties to the
    column that stands first; then all times a factor. A row without such a code is 0.

    columns: (q,) kept columns, public or released, in the order of the sums. nonzeros: None for any number of entries.
    Proof: `_unit_kernels.unit_row` divides by more than the norm, and rounds towards 0. So |v|_2 < TOP; and of at most s entries
    |v|_1 <= sqrt(s) |v|_2 (Cauchy-Schwarz) and, a whole number, at most isqrt(s TOP**2).
    """

    n_columns: int
    columns: Integers
    nonzeros: int | None = None
    signed: bool = False

    @property
    def l1_length(self) -> int:
        return isqrt(min(self.nonzeros or len(self.columns), len(self.columns)) * TOP**2)

    def part(self, label: str, *, by_coordinates: bool, is_signed: bool) -> Part:
        """What one row does to a sum of such vectors, or of their magnitudes."""
        if by_coordinates:
            return Part(label, "coordinates", self.l1_length, 1 / TOP, is_signed=is_signed)
        return Part(label, "vectors", TOP, 1 / TOP, is_signed=is_signed)

    def pieces(self, rows: Any) -> Iterator[tuple[Any, Any, Any, Integers, int, bool, int]]:
        """Arguments of the kernels, for every piece of a block."""
        place = np.full(self.n_columns, -1, dtype=np.int64)
        place[self.columns] = np.arange(len(self.columns))
        for piece in blocks(rows):
            csr = piece if is_csr(piece) else csr_array(piece)
            values, columns, starts = (part.astype(np.int64, copy=False) for part in (csr.data, csr.indices, csr.indptr))
            yield values, columns, starts, place, self.nonzeros or 0, self.signed, TOP


@dataclass(frozen=True, eq=False)
class UnitTotals(Question):
    """Sums (1, q) of the magnitudes of unit rows: a row adds |v|, whose norms are those of v, and takes nothing away."""

    view: UnitRows
    by_coordinates: bool = False

    @property
    def parts(self) -> tuple[Part]:
        return (self.view.part("totals of columns", by_coordinates=self.by_coordinates, is_signed=False),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_sums = np.zeros(len(self.view.columns), dtype=np.int64)
        for piece in self.view.pieces(rows):
            _unit_kernels.add_sizes(*piece, raw_sums)
        return (raw_sums[None, :],)


@dataclass(frozen=True, eq=False)
class UnitSums(Question):
    """Counts (cells,) and sums (cells, q) of unit rows by the centre that each has the largest product with, ties to the lowest.

    A row adds 1 and its v to one cell; one without v adds nothing, its count neither. Centres are whole numbers of length at most
    TOP, so products are at most 2**32, exact in float64 in any order: the cell of a row depends on that row and on centres alone.
    Where rows have no signs they take nothing away: tables A and B of what a person removes and adds then have <A, B> >= 0, and
    |A - B|**2 <= |A|**2 + |B|**2.

    centers: (cells, q), released or public.
    """

    view: UnitRows
    centers: Integers
    by_coordinates: bool = False

    def __post_init__(self) -> None:
        if (self.centers**2).sum(axis=1).max() > TOP**2:
            raise AssertionError("centres are no longer than unit rows: products would not be exact")

    @property
    def parts(self) -> tuple[Part, Part]:
        sums = self.view.part("sums of directions", by_coordinates=self.by_coordinates, is_signed=self.view.signed)
        return Part("sizes of directions", "counts"), sums

    def raw(self, rows: Any) -> tuple[Integers, Integers]:
        raw_counts, raw_sums = np.zeros(len(self.centers), dtype=np.int64), np.zeros(self.centers.shape, dtype=np.int64)
        centers = np.ascontiguousarray(self.centers.T.astype(np.float64))
        for piece in self.view.pieces(rows):
            _unit_kernels.add_directions(*piece, centers, raw_counts, raw_sums)
        return raw_counts, raw_sums
