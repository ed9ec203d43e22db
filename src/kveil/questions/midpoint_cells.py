"""Counts and deviations of rows in public midpoint cells: sums over rows, so any order, split and merge gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.partition.midpoints import Level, Midpoints, Norm, is_antichain
from kveil.partition.tiling import Tiling
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks

IN_ONE_CELL = "a row is in at most one cell"
OWN_BOUND = "a row adds a vector to at most one cell, no longer than that cell's own bound, which sets the noise there"


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
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

    @property
    def parts(self) -> tuple[Part]:
        return (Part(f"cells of level {self.level}", "counts", reason=IN_ONE_CELL),)

    def raw(self, rows: Any) -> tuple[Integers]:
        """Counts of all the cells, empty ones too; a row adds 1 to at most one of them."""
        nodes = self.nodes
        raw_counts = np.zeros(2**self.level if nodes is None else len(nodes), dtype=np.int64)
        for block in blocks(rows):
            found = self.cells.find(self.frame.measured(block), self.level)
            if nodes is not None:
                places = np.searchsorted(nodes, found)
                found = places[nodes[np.minimum(places, len(nodes) - 1)] == found] if len(nodes) else found[:0]
            _kernels.add_ones(found, raw_counts)
        return (raw_counts,)


@dataclass(frozen=True, eq=False)
class CellSums(Question):
    """Disjoint cells of any levels, and what rows in them are measured from; in the order they were listed."""

    frame: Frame
    cells: Midpoints
    first: Integers  # of the leaves in each cell, ascending
    last: Integers
    listed: Integers  # where the cell with each of these leaves was listed
    anchors: Integers  # in the order of the leaves
    reaches: Integers  # how long a row's deviation may be, in the order the cells were listed
    norm: Norm

    @classmethod
    def in_levels(cls, frame: Frame, cells: Midpoints, levels: Sequence[Level], norm: Norm = "l1") -> CellSums:
        """The cells of `levels`, one level after the other, with the anchors that give the least reach in `norm`."""
        if not all(0 <= level <= cells.depth and _fits(codes, level) for level, codes in levels) or not is_antichain(levels):
            raise InvalidValue("cells must be codes of their level, and none twice or inside another: a row is in at most one.")
        first = _joined([codes << (cells.depth - level) for level, codes in levels])
        last = _joined([((codes + 1) << (cells.depth - level)) - 1 for level, codes in levels])
        anchors = [cells.anchors(codes, level, norm) for level, codes in levels]
        listed = np.argsort(first)
        anchor = np.concatenate([np.empty((0, cells.n_axes), dtype=np.int64), *anchors])[listed]
        reaches = _joined([np.full(len(codes), cells.reach(level, norm)) for level, codes in levels])
        return cls(frame, cells, first[listed], last[listed], listed, anchor, reaches, norm)

    @property
    def parts(self) -> tuple[Part, Part]:
        """A row, moved into the cube, adds to at most one cell: 1 to its count, and a vector whose norm is at most what
        `Midpoints.reach` says for the cell's level and the norm that its anchor was chosen for."""
        kind: Literal["vectors", "coordinates"] = "vectors" if self.norm == "l2" else "coordinates"
        sums = Part("deviations in cells", kind, self.cells.reach(0, self.norm), reason=OWN_BOUND)
        return Part("rows in cells", "counts", reason=IN_ONE_CELL), sums

    @property
    def lengths(self) -> Integers:
        return self.reaches

    def raw(self, rows: Any) -> tuple[Integers, Integers]:
        """Counts (cells,) and sums (cells, axes) of deviations from the anchors, in the order the cells were listed."""
        raw_counts, raw_sums = np.zeros(len(self.first), dtype=np.int64), np.zeros(self.anchors.shape, dtype=np.int64)
        for block in blocks(rows):
            inside = self.cells.clamped(self.frame.measured(block).astype(np.int64))
            codes = self.cells.find(inside)
            _kernels.add_deviations(inside, codes, self.first, self.last, self.anchors, raw_counts, raw_sums)
        back = np.argsort(self.listed)
        return raw_counts[back], raw_sums[back]


@dataclass(frozen=True, eq=False)
class TileCounts(Question):
    """Counts of all cells of a partition of the cube, empty ones too.

    Proof: the cell of a row is the last one whose first code is not above the row's own. First codes ascend from 0, which
    `Tiling` checks, so there is exactly one such cell for every row, at a border too, and the row adds 1 there and 0 elsewhere.
    Sizes and places of cells do not matter: the bound is that of one histogram.
    """

    frame: Frame
    tiling: Tiling
    parts: ClassVar = (Part("cells of the tree", "counts"),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_counts = np.zeros(len(self.tiling.codes), dtype=np.int64)
        for block in blocks(rows):
            _kernels.add_ones(self.tiling.find(self.frame.measured(block)), raw_counts)
        return (raw_counts,)


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _fits(codes: Integers, level: int) -> bool:
    return bool(((codes >= 0) & (codes < 1 << level)).all())
