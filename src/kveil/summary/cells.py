"""Statistics of rows in public or released cells: lengths, second moments, tree counts, residual sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.space.euclidean import Centers, assign
from kveil.summary import _kernels, _sparse_kernels
from kveil.summary.frame import FEW_COLUMNS, Frame, blocks, is_csr

Integers = NDArray[np.int64]

TOP = 2**16  # the radius of a scaled residual: sums of 2**40 rows stay below 2**57
MOMENT_TOP = 2**10  # the radius of a row whose coordinates are squared


@dataclass(frozen=True, eq=False)
class Lengths:
    """Bins of the distance to the middle of a frame, or to the nearest of some centres. `edges`: squares, descending."""

    frame: Frame
    edges: Integers
    centers: Centers | None = None


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a tree: children, `new_bits` deeper, of the kept cells, by halvings of the axes in `order`."""

    frame: Frame
    half: Integers
    order: Integers
    kept: Integers
    new_bits: int


@dataclass(frozen=True, eq=False)
class Residuals:
    """Cells by nearest centre, and what is added up in them: rows relative to the cell's base, clipped to its radius.

    `by`: whether rows are assigned as the frame's projection or as measured; `of`: what is summed.
    """

    frame: Frame
    centers: Centers
    by: Literal["projected", "measured"]
    of: Literal["projected", "centred", "measured"]
    bases: Integers
    radii: Integers


@dataclass(frozen=True)
class GridCells:
    """A uniform grid over the codes -top .. top, `per_axis` cells along every column."""

    top: int
    per_axis: int


def grid_counts(rows: Any, grid: GridCells) -> tuple[Integers]:
    """Raw counts of all cells of a uniform grid; a row is in one."""
    d = rows.shape[1]
    places = np.minimum((rows.astype(np.int64) + grid.top) * grid.per_axis // (2 * grid.top), grid.per_axis - 1)
    numbers = np.ravel_multi_index(tuple(places.T), (grid.per_axis,) * d) if len(rows) else np.empty(0, dtype=np.int64)
    return (np.bincount(numbers, minlength=grid.per_axis**d).astype(np.int64),)


def whole(rows: Any, frame: Frame) -> tuple[Integers, Integers]:
    """Raw number of rows (1,) and raw sum (d,). A row adds 1, and a vector no longer than the domain's radius."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    for block in blocks(rows):
        total += np.asarray(frame.measured(block).sum(axis=0))
    return np.array([rows.shape[0]], dtype=np.int64), total


def lengths(rows: Any, state: Lengths) -> tuple[Integers]:
    """Raw counts of rows by distance; a row is in one bin."""
    raw_counts = np.zeros(len(state.edges) + 1, dtype=np.int64)
    for block in blocks(rows):
        away = state.frame.measured(block)
        if is_csr(away):
            assert state.centers is None  # distances to the middle, 0; to dense centres they would take dense rows
            _sparse_kernels.add_lengths(away.data, away.indptr, state.edges, raw_counts)
            continue
        if state.centers is None:
            away = away - state.frame.middle
        else:
            away = away - state.centers.codes.astype(np.int64)[assign(away, state.centers)]
        _kernels.add_lengths(away, state.edges, raw_counts)
    return (raw_counts,)


def moments(rows: Any, frame: Frame) -> tuple[Integers]:
    """Raw sums of squared coordinates of centred rows, in units that make the radius MOMENT_TOP.

    A row adds a vector of squares, whose L2 norm is at most its L1 norm, the squared length: MOMENT_TOP**2.
    """
    raw_sums = np.zeros(rows.shape[1], dtype=np.int64)
    for block in blocks(rows):
        _kernels.add_squares(frame.centred(block), frame.radius, MOMENT_TOP, raw_sums)
    return (raw_sums,)


def second_moments(rows: Any, frame: Frame) -> tuple[Integers]:
    """Raw upper triangle, row by row, of the sum of x x^T over centred rows, in units that make the radius MOMENT_TOP.

    A row adds the upper triangle of x x^T, whose L2 norm is at most that of all of it, |x|^2 <= MOMENT_TOP**2. A float product
    over a block is exact: integers of at most BLOCK MOMENT_TOP**2 = 2**31 at every partial sum.
    """
    triangle = np.triu_indices(rows.shape[1])
    raw_sums = np.zeros(len(triangle[0]), dtype=np.int64)
    for block in blocks(rows):
        centred = frame.centred(block)
        scaled = np.sign(centred) * (np.abs(centred) * MOMENT_TOP // frame.radius)
        raw_sums += (scaled.T.astype(np.float64) @ scaled.astype(np.float64))[triangle].astype(np.int64)
    return (raw_sums,)


def stage_counts(rows: Any, stage: Stage) -> tuple[Integers]:
    """Raw counts of all children of kept cells, empty ones too; a row is in at most one."""
    raw_counts = np.zeros(len(stage.kept) << stage.new_bits, dtype=np.int64)
    depth = np.bincount(stage.order, minlength=len(stage.half)).astype(np.int64)
    for block in blocks(rows):
        seen = stage.frame.projected(stage.frame.centred(block))
        _kernels.add_cells(seen, stage.half, depth, stage.order, stage.kept, stage.new_bits, raw_counts)
    return (raw_counts,)


def residual_sums(rows: Any, state: Residuals) -> tuple[Integers, Integers]:
    """Raw counts (cells,) and raw sums (cells, columns) of scaled residuals; a row adds 1 and a vector of norm <= TOP."""
    raw_counts = np.zeros(len(state.bases), dtype=np.int64)
    raw_sums = np.zeros(state.bases.shape, dtype=np.int64)
    frame = state.frame
    if is_csr(rows) and rows.shape[1] > FEW_COLUMNS and state.of != "projected":
        assert not state.bases.any()  # about another base rows would be dense
    for block in blocks(rows):
        views: dict[str, Any] = {}
        if "measured" in (state.by, state.of):
            views["measured"] = frame.measured(block)
        if {state.by, state.of} & {"projected", "centred"}:
            views["centred"] = frame.centred(block)
        if "projected" in (state.by, state.of):
            views["projected"] = frame.projected(views["centred"])
        owner, summed = assign(views[state.by], state.centers), views[state.of]
        if is_csr(summed):
            _sparse_kernels.add_scaled(summed.data, summed.indices, summed.indptr, owner, state.radii, TOP, raw_counts, raw_sums)
        else:
            _kernels.add_residuals(summed, owner, state.bases, state.radii, TOP, raw_counts, raw_sums)
    return raw_counts, raw_sums
