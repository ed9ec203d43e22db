"""Counts and deviations of rows in public midpoint cells: sums over rows, so any order, split and merge gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.partition.midpoints import Level, Midpoints, Norm, is_antichain
from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellCounts:
    """All cells of one level, or those in `nodes` (ascending, none twice). `frame` brings encoded rows to steps of one length."""

    frame: Frame
    cells: Midpoints
    level: int
    nodes: Integers | None = None

    def __post_init__(self) -> None:
        if self.nodes is not None and not (
            (self.nodes[:-1] < self.nodes[1:]).all() and self.nodes.size <= 2**self.level and _fits(self.nodes, self.level)
        ):
            raise InvalidValue("cells must be codes of their level, ascending and none twice: a row is then in at most one.")


@dataclass(frozen=True, eq=False)
class CellSums:
    """Disjoint cells of any levels, and what rows in them are measured from; in the order they were listed."""

    frame: Frame
    cells: Midpoints
    first: Integers  # of the leaves in each cell, ascending
    last: Integers
    listed: Integers  # where the cell with each of these leaves was listed
    anchors: Integers  # in the order of the leaves

    @classmethod
    def over(cls, frame: Frame, cells: Midpoints, levels: Sequence[Level], norm: Norm = "l1") -> CellSums:
        """The cells of `levels`, one level after the other, with the anchors that give the least reach in `norm`."""
        if not all(0 <= level <= cells.depth and _fits(codes, level) for level, codes in levels) or not is_antichain(levels):
            raise InvalidValue("cells must be codes of their level, and none twice or inside another: a row is in at most one.")
        first = _joined([codes << (cells.depth - level) for level, codes in levels])
        last = _joined([((codes + 1) << (cells.depth - level)) - 1 for level, codes in levels])
        anchors = [cells.anchors(codes, level, norm) for level, codes in levels]
        listed = np.argsort(first)
        anchor = np.concatenate([np.empty((0, cells.n_axes), dtype=np.int64), *anchors])[listed]
        return cls(frame, cells, first[listed], last[listed], listed, anchor)


def cell_counts(rows: Any, state: CellCounts) -> tuple[Integers]:
    """Raw counts of all the cells, empty ones too; a row adds 1 to at most one of them."""
    nodes = state.nodes
    raw_counts = np.zeros(2**state.level if nodes is None else len(nodes), dtype=np.int64)
    for block in blocks(rows):
        found = state.cells.find(state.frame.measured(block), state.level)
        if nodes is not None:
            places = np.searchsorted(nodes, found)
            found = places[nodes[np.minimum(places, len(nodes) - 1)] == found] if len(nodes) else found[:0]
        raw_counts += np.bincount(found, minlength=len(raw_counts))
    return (raw_counts,)


def cell_sums(rows: Any, state: CellSums) -> tuple[Integers, Integers]:
    """Raw counts (cells,) and raw sums (cells, axes) of deviations from the anchors, in the order the cells were listed.

    A row, moved into the cube, adds to at most one cell: 1 to its count, and a vector whose L1 or L2 norm is at most what
    `Midpoints.reach` says for the cell's level and the norm that its anchor was chosen for.
    """
    raw_counts, raw_sums = np.zeros(len(state.first), dtype=np.int64), np.zeros(state.anchors.shape, dtype=np.int64)
    for block in blocks(rows):
        inside = state.cells.clamped(state.frame.measured(block))
        codes = state.cells.find(inside)
        _kernels.add_deviations(inside, codes, state.first, state.last, state.anchors, raw_counts, raw_sums)
    back = np.argsort(state.listed)
    return raw_counts[back], raw_sums[back]


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _fits(codes: Integers, level: int) -> bool:
    return bool(((codes >= 0) & (codes < 1 << level)).all())
