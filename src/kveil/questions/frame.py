"""Rows as a public or released frame sees them: moved, clipped to a ball, and projected, all in integers.

Every number of a frame is public or was released; a row's image depends on the frame and that row alone. Sparse rows of many
columns stay sparse, about 0; those of up to 1000 become dense ones, block by block. Dense images in all columns are whole numbers
in float64, which processors add and multiply several at a time: a row and a middle are each below 2**25.5 + 2 in L2 norm
(`Domain`), so that all squares and their sums are exact, below 2**53. Components along axes may be longer, and are integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.kernel.grid import Ball, Box
from kveil.partition.projection import AXIS_BITS
from kveil.questions import _kernels, _sparse_kernels
from kveil.space.column_box import is_level
from kveil.space.euclidean import Scaling, ratio_of

BLOCK = 2048  # rows, about, of VALUES numbers at most, that are looked at together: they stay in the processor's cache
VALUES = 2**17
FEW_COLUMNS = 1000  # so many at most, and a block of sparse rows is made dense
FEWEST_COLUMNS, PER_ENTRY = 16, 8  # of rows with a bound on their entries: beyond, and with so many columns per entry, they stay


def stays_sparse(n_columns: int, nonzeros: int | None = None) -> bool:
    """Whether CSR rows stay sparse. Where few entries are bounded, pure noise on sparse rows is much narrower."""
    is_bounded = nonzeros is not None and PER_ENTRY * nonzeros <= n_columns and n_columns > FEWEST_COLUMNS
    return n_columns > FEW_COLUMNS or is_bounded


@dataclass(frozen=True, eq=False)
class Frame:
    """Codes become steps of equal length (times `ratio`), relative to `middle`, clipped to the ball of `radius`; then, with
    `axes`, their components along public directions, clipped to `reach`. All lengths are whole steps.

    nonzeros: how many entries of a sparse row count, the largest in magnitude, ties to the lowest column; None: all.
    columns: sums of rows in all columns are asked for in these alone; None: in all.
    """

    ratio: Floats | None
    middle: Integers
    radius: int
    axes: Integers | None = None
    reach: int = 0
    nonzeros: int | None = None
    columns: Integers | None = None

    def __post_init__(self) -> None:
        if self.radius < 1:
            raise AssertionError("a frame's radius is at least 1: questions divide by it, and would raise if there are rows")

    @classmethod
    def of(cls, domain: Box | Ball, scaling: Scaling) -> Frame:
        """The whole domain, from its centre: rows as they are, in a ball that holds them all."""
        middle = np.zeros(domain.n_columns, dtype=np.int64)
        ratio = ratio_of(domain, scaling)
        if ratio is None:
            return cls(None, middle, domain.l2_sensitivity)
        return cls(ratio, middle, int(np.ceil(np.sqrt((np.rint(domain.top * ratio) ** 2).sum()))) + 1)

    def unit(self, domain: Box | Ball) -> Any:
        """The length of a step in the units of the data: one for all columns, or one per column where each has its own."""
        if self.ratio is None:
            return domain.step
        return domain.step / self.ratio if is_level(domain).any() else domain.half.max() / domain.top

    def measured(self, rows: Any) -> Any:
        """Encoded rows in steps of equal length, from the centre of the domain; as CSR if they are, and have many columns."""
        if is_csr(rows):
            rows = self._measured_csr(rows)
            return rows if stays_sparse(rows.shape[1], self.nonzeros) else rows.toarray().astype(np.float64)
        if self.ratio is None:
            return np.array(rows, dtype=np.float64, order="C")
        with np.errstate(all="ignore"):
            return np.rint(rows * self.ratio)

    def steps(self, rows: Any) -> Any:
        """The same numbers to read alone: codes that are steps already stay as they are, half as wide."""
        return rows if self.ratio is None and not is_csr(rows) else self.measured(rows)

    def centred(self, rows: Any) -> Any:
        """Rows about the middle, inside the ball. The middle of CSR rows is 0: about another they would be dense."""
        measured = self.steps(rows)
        if not is_csr(measured):
            centred = np.empty(measured.shape)
            _kernels.centre_rows(measured, self.middle.astype(np.float64), self.radius, centred)
            return centred
        assert not self.middle.any()
        _sparse_kernels.shrink_rows(measured.data, measured.indptr, self.radius)
        return measured

    def projected(self, centred: Any) -> Integers:
        """Components of centred rows along the axes, inside their ball, dense.

        The float product is exact, dense or CSR, in any order: by Cauchy-Schwarz a partial sum is at most |x| |a|. Here
        |x| <= radius, at most twice the domain's sqrt(d) top + 2, and `Domain` keeps sqrt(d) top below 2**25.5, d below 2**49;
        |a| <= 2**14 + sqrt(d)/2 < 2**24 after rounding (times sqrt(d) where axes are stretched, and then |x| is once the
        domain's), and so all sums are integers below 2**53. Coordinates are cut at twice the ball before they are squared:
        stretched axes make some rows so long that their square would pass 2**63.
        """
        if self.axes is None:
            return np.asarray(centred).astype(np.int64)
        product = centred.astype(np.float64, copy=False) @ self._float_axes
        seen = np.empty(product.shape, dtype=np.int64)
        _kernels.cut_components(product, AXIS_BITS, self.reach, seen)
        return seen

    @cached_property
    def _float_axes(self) -> Any:
        return None if self.axes is None else self.axes.astype(np.float64)

    def _measured_csr(self, rows: Any) -> Any:
        """A copy in steps of equal length: `ratio` is for stored values, since 0 stays 0."""
        values = rows.data if self.ratio is None else np.rint(rows.data * self.ratio[rows.indices])
        measured = type(rows)((np.array(values, dtype=np.int64), rows.indices, rows.indptr), shape=rows.shape)
        if self.nonzeros is not None:
            _sparse_kernels.keep_largest(measured.data, measured.indptr, self.nonzeros)
        return measured


def is_csr(rows: Any) -> bool:
    return hasattr(rows, "indices")


def blocks(rows: Any) -> Iterator[Any]:
    """Rows, a few at a time: so many depends on public columns alone."""
    is_wide = is_csr(rows) and rows.shape[1] > FEW_COLUMNS  # stays sparse
    size = BLOCK if is_wide else max(1, min(BLOCK, VALUES // rows.shape[1]))
    n_blocks = max(1, round(rows.shape[0] / size))  # of even size: the last one is not a few rows that take as many calls
    for b in range(n_blocks if rows.shape[0] else 0):
        yield rows[rows.shape[0] * b // n_blocks : rows.shape[0] * (b + 1) // n_blocks]


def clipped(rows: Integers, radius: int) -> Integers:
    """Points moved into the ball of `radius`, in integers, as `_kernels.shrink_row` moves a row."""
    squares = (rows * rows).sum(axis=1, keepdims=True)
    divisors = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 2
    return np.where(squares > radius * radius, np.sign(rows) * (np.abs(rows) * radius // divisors), rows)


def whole_steps(points: Floats, radius: int) -> Integers:
    """Released points as whole steps inside the ball of the rows: distances to them stay below 2**53, so labels are exact."""
    return clipped(np.rint(points).astype(np.int64), radius)
