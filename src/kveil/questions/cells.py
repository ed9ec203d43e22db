"""Statistics of rows in public or released cells: their number and sum, distances, moments, tree counts, residual sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar, Literal

import numpy as np

from kveil.arrays import Integers
from kveil.questions import _kernels, _sparse_kernels
from kveil.questions.base import NO_PAGE, Page, Part, Question
from kveil.questions.frame import Frame, blocks, is_csr, stays_sparse
from kveil.questions.noted import Labels, cells_noted
from kveil.space.euclidean import Centers

TOP = 2**16  # the radius of a scaled residual: sums of 2**40 rows stay below 2**57
N_LENGTHS = 40  # bins of a distance, four per octave
MOMENT_TOP = 2**10  # the radius of a row whose coordinates are squared


class RowCount(Question):
    """The number of rows (1,): a row adds 1."""

    parts: ClassVar = (Part("number of rows", "counts"),)

    def raw(self, rows: Any) -> tuple[Integers]:
        return (np.array([rows.shape[0]], dtype=np.int64),)


@dataclass(frozen=True, eq=False)
class Whole(Question):
    """The number of rows (1,) and their sum (d,): a row adds 1, and itself, clipped to the frame's radius."""

    frame: Frame

    @property
    def parts(self) -> tuple[Part, Part]:
        return Part("number of rows", "counts"), Part("sum of rows", "vectors", self.frame.radius)

    def raw(self, rows: Any) -> tuple[Integers, Integers]:
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for block in blocks(rows):
            centred = self.frame.centred(block)
            of_block = centred.sum(axis=0) if is_csr(centred) else np.ones(len(centred)) @ centred  # exact: far below 2**53
            total += np.asarray(of_block).astype(np.int64)
        return np.array([rows.shape[0]], dtype=np.int64), total


@dataclass(frozen=True)
class GridCells(Question):
    """Counts of all cells of a uniform grid over the codes -top .. top, `per_axis` cells along every column: a row is in one."""

    top: int
    per_axis: int
    parts: ClassVar = (Part("cells", "counts"),)

    def raw(self, rows: Any) -> tuple[Integers]:
        top, per_axis, d = self.top, self.per_axis, rows.shape[1]
        places = np.clip((rows.astype(np.int64) + top) * per_axis // (2 * top), 0, per_axis - 1)
        numbers = np.ravel_multi_index(tuple(places.T), (per_axis,) * d) if len(rows) else np.empty(0, dtype=np.int64)
        return (np.bincount(numbers, minlength=per_axis**d).astype(np.int64),)


@dataclass(frozen=True, eq=False)
class Lengths(Question):
    """Counts of rows by distance to the middle of a frame, or to the nearest of some centres: a row is in one bin.

    edges: squared distances, descending.
    """

    frame: Frame
    edges: Integers
    centers: Centers | None = None
    parts: ClassVar = (Part("distances", "counts"),)
    takes_page: ClassVar = True

    @classmethod
    def binned(cls, frame: Frame, reach: int, centers: Centers | None = None) -> Lengths:
        """Bins four per octave, from twice `reach` down."""
        edges = [int((2 * reach) ** 2 * 2.0 ** (-(j + 1) / 2)) for j in range(N_LENGTHS - 1)]
        return cls(frame, np.array(edges, dtype=np.int64), centers)

    def raw(self, rows: Any, page: Page = NO_PAGE) -> tuple[Integers]:
        return (self._table(rows, page).sum(axis=0),)

    def _table(self, rows: Any, page: Page) -> Integers:
        """Counts (centres, bins) of rows by nearest centre, or the middle, and distance. Secret."""
        centers = self.centers or Centers(self.frame.middle[None, :].astype(np.float64), None)
        raw_counts = np.zeros((len(centers.codes), len(self.edges) + 1), dtype=np.int64)
        labels, edges = Labels(self.frame, "measured", centers, page), self.edges.astype(np.float64)
        for block in blocks(rows):
            seen = self.frame.steps(block)
            if is_csr(seen):
                assert self.centers is None  # distances to the middle, 0; to dense centres they would take dense rows
                _sparse_kernels.add_lengths(seen.data, seen.indptr, self.edges, raw_counts[0])
                continue
            owner, squares = labels.with_squares(seen)
            _kernels.add_lengths(squares, owner, edges, raw_counts)
        if self.centers is not None:
            labels.keep()
        return raw_counts


@dataclass(frozen=True, eq=False)
class LengthsByCenter(Lengths):
    """Counts (centres * bins,) of rows by their nearest centre and the distance to it.

    A row has one nearest centre (ties: the lowest index), by itself, and one distance to it: it is in one pair, and adds 1.
    """

    parts: ClassVar = (Part("distances by centre", "counts"),)

    def raw(self, rows: Any, page: Page = NO_PAGE) -> tuple[Integers]:
        return (self._table(rows, page).ravel(),)


@dataclass(frozen=True, eq=False)
class Squares(Question):
    """Sums (d,) of squared coordinates of centred rows, in units that make the radius MOMENT_TOP.

    A row adds a vector of squares, whose L2 norm is at most its L1 norm, the squared length: MOMENT_TOP**2.
    """

    frame: Frame
    parts: ClassVar = (Part("squares", "vectors", MOMENT_TOP**2),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_sums = np.zeros(rows.shape[1], dtype=np.int64)
        for block in blocks(rows):
            _kernels.add_squares(self.frame.centred(block), self.frame.radius, MOMENT_TOP, raw_sums)
        return (raw_sums,)


@dataclass(frozen=True, eq=False)
class SecondMoments(Question):
    """The upper triangle, row by row, of the sum of x x^T over centred rows, in units that make the radius MOMENT_TOP.

    A row adds the upper triangle of x x^T, whose L2 norm is at most that of all of it, |x|^2 <= MOMENT_TOP**2. A float product
    over a block is exact: integers of at most 1.5 BLOCK MOMENT_TOP**2 < 2**32 at every partial sum.
    """

    frame: Frame
    parts: ClassVar = (Part("second moments", "vectors", MOMENT_TOP**2),)

    def raw(self, rows: Any) -> tuple[Integers]:
        triangle = np.triu_indices(rows.shape[1])
        raw_sums = np.zeros(len(triangle[0]), dtype=np.int64)
        for block in blocks(rows):
            centred = self.frame.centred(block).astype(np.int64)
            scaled = np.sign(centred) * (np.abs(centred) * MOMENT_TOP // self.frame.radius)
            raw_sums += (scaled.T.astype(np.float64) @ scaled.astype(np.float64))[triangle].astype(np.int64)
        return (raw_sums,)


@dataclass(frozen=True, eq=False)
class Stage(Question):
    """Counts of all children, `new_bits` deeper, of kept cells, empty ones too, by halvings of the axes in `order`.

    A row is in at most one child, and adds 1 there.

    planned: `order` with the halvings of later stages after it, if there are any: the cell of a row is found once for all.
    """

    frame: Frame
    half: Integers
    order: Integers
    kept: Integers  # ascending
    new_bits: int
    planned: Integers | None = None
    parts: ClassVar = (Part("cells of the tree", "counts"),)
    takes_page: ClassVar = True

    def __post_init__(self) -> None:
        if self.planned is not None and not np.array_equal(self.planned[: len(self.order)], self.order):
            raise AssertionError("what is planned begins with this stage's halvings: other cells would be counted")

    def raw(self, rows: Any, page: Page = NO_PAGE) -> tuple[Integers]:
        raw_counts = np.zeros(len(self.kept) << self.new_bits, dtype=np.int64)
        order = self.order if self.planned is None else self.planned
        codes = cells_noted(rows, self.frame, self.half, order, page)
        _kernels.add_cells(codes, len(order) - len(self.order), self._places, self.new_bits, raw_counts)
        return (raw_counts,)

    @cached_property
    def _places(self) -> Integers:
        """The place of every cell among the kept ones, or -1: cells are so few that a table is quicker than a search."""
        places = np.full(1 << (len(self.order) - self.new_bits), -1, dtype=np.int64)
        places[self.kept] = np.arange(len(self.kept))
        return places


@dataclass(frozen=True, eq=False)
class Residuals(Question):
    """Counts (cells,) and sums (cells, columns) of rows in the cells of nearest centres: a row adds 1 to one cell, and to its sum
    the row relative to the cell's base, clipped to its radius and scaled so that the radius is TOP.

    Proof: with away = row - base, what is added is away * TOP / divisor, every coordinate rounded towards 0. The divisor is the
    radius if |away| <= radius, else at least |away|. So before rounding the L2 norm is at most TOP, and rounding towards 0 makes
    no coordinate longer (`_kernels.add_residuals`; sparse rows: `_sparse_kernels.add_scaled`). Where the frame names
    columns, only these are released, and a part of a vector is no longer than the whole.

    by: whether rows are assigned as the frame's projection or as measured; of: what is summed.
    by_coordinates: noise on every coordinate, for sparse rows of few entries.
    in_steps: whether released sums are in steps, or in radii divided by TOP.
    """

    frame: Frame
    centers: Centers
    by: Literal["projected", "measured"]
    of: Literal["projected", "centred", "measured"]
    bases: Integers
    radii: Integers
    labels: tuple[str, str] = ("cells", "residuals")
    by_coordinates: bool = False
    in_steps: bool = True
    takes_page: ClassVar = True

    def __post_init__(self) -> None:
        if (self.radii < 1).any():
            raise AssertionError("radii are at least 1: a row at its base would be divided by 0, and raise")

    @classmethod
    def about(cls, frame: Frame, codes: Integers, radii: Integers) -> Residuals:
        """Rows nearest to each of these centres, relative to it."""
        return cls(frame, Centers(codes.astype(np.float64), None), "measured", "measured", codes, radii)

    @property
    def columns(self) -> Integers | None:
        """In which columns sums are released; None: in all."""
        return None if self.of == "projected" else self.frame.columns

    @property
    def parts(self) -> tuple[Part, Part]:
        counts, unit = Part(self.labels[0], "counts"), (self.radii / TOP)[:, None] if self.in_steps else 1.0
        if self.by_coordinates:
            return counts, Part(self.labels[1], "coordinates", l1_length(self.frame, self.bases.shape[1]), unit)
        return counts, Part(self.labels[1], "vectors", TOP, unit)

    def raw(self, rows: Any, page: Page = NO_PAGE) -> tuple[Integers, Integers]:
        self._check(rows)
        raw_counts, raw_sums = np.zeros(len(self.bases), dtype=np.int64), np.zeros(self.bases.shape, dtype=np.int64)
        labels, bases = Labels(self.frame, self.by, self.centers, page), self.bases.astype(np.float64)
        for block in blocks(rows):
            views = self._views(block)
            owner, summed = labels.of(views[self.by]), views[self.of]
            if is_csr(summed):
                csr = (summed.data, summed.indices, summed.indptr)
                _sparse_kernels.add_scaled(*csr, owner, self.radii, TOP, raw_counts, raw_sums)
            else:
                exact = summed.astype(np.float64, copy=False) if self.of == "projected" else summed  # one type less to compile
                _kernels.add_residuals(exact, owner, bases, self.radii, TOP, raw_counts, raw_sums)
        return raw_counts, raw_sums if self.columns is None else np.ascontiguousarray(raw_sums[:, self.columns])

    def _check(self, rows: Any) -> None:
        """Whether rows are sparse, and how many columns they have, is public."""
        is_moved = self.of == "projected" or self.bases.any() or self.frame.middle.any()
        if self.by_coordinates and (is_moved or not is_csr(rows)):
            raise AssertionError("only sparse rows have a bound on their entries, and only before they are moved or projected")
        is_sparse = is_csr(rows) and stays_sparse(rows.shape[1], self.frame.nonzeros)
        if is_sparse and self.of != "projected" and self.bases.any():
            raise AssertionError("about another base than 0 sparse rows would be dense")

    def _views(self, block: Any) -> dict[str, Any]:
        """A block as it is assigned, and as it is summed."""
        views, wanted = {}, {self.by, self.of}
        if "measured" in wanted:
            views["measured"] = self.frame.steps(block)
        if wanted & {"projected", "centred"}:
            views["centred"] = self.frame.centred(block)
        if "projected" in wanted:
            views["projected"] = self.frame.projected(views["centred"])
        return views


def l1_length(frame: Frame, n_columns: int) -> int:
    """The L1 norm that a scaled residual of sparse rows may have: of its entries at most s = frame.nonzeros are not 0, so it is
    at most sqrt(s) times the L2 norm (Cauchy-Schwarz) and, a whole number, at most isqrt(s TOP**2)."""
    return isqrt(min(frame.nonzeros or n_columns, n_columns) * TOP**2)
