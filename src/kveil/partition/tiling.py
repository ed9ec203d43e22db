"""A partition of a cube of integers into midpoint cells of different sizes: small where rows are, large elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.partition import _cell_kernels as _kernels
from kveil.partition.midpoints import Midpoints, halving_order

HEAD_BITS = 16  # of a code, looked up in a table before the rest is searched
CHUNK = 64  # cells that are compared with all others at once


@dataclass(frozen=True, eq=False)
class Tiling:
    """Cells that cover the cube once, in the order of their codes.

    A cell is a prefix of one halving order. Its first code at the deepest level and the next cell's bound its codes, so that
    every code has exactly one cell.
    """

    half: Integers
    codes: Integers  # of each cell, at its own level
    levels: Integers

    def __post_init__(self) -> None:
        ends = np.append(self.first[1:], 1 << self.depth)
        if self.first[0] != 0 or (self.first + (1 << (self.depth - self.levels)) != ends).any():
            raise AssertionError("cells must follow each other without a gap: a row is then in exactly one")

    @classmethod
    def whole(cls, half: Integers) -> Tiling:
        """One cell."""
        return cls(half, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))

    def divided(self, bits: Integers) -> Tiling:
        """Every cell halved as often as its entry of `bits` says."""
        parts = 1 << bits
        owner = np.repeat(np.arange(len(parts)), parts)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
        return replace(self, codes=(self.codes[owner] << bits[owner]) + inside, levels=(self.levels + bits)[owner])

    def joined(self, kept: Bools, level: int) -> tuple[Tiling, Integers]:
        """The same partition with cells below `level` joined where an ancestor, not above it, holds none of those `kept`; and for
        each of its cells the first one here that it holds."""
        levels, is_open = self.levels.copy(), ~kept & (self.levels > level)
        for up in range(level, self.depth):
            ancestor = self.first >> (self.depth - up)
            is_free = is_open & (self.levels > up) & ~np.isin(ancestor, ancestor[~is_open])
            levels[is_free], is_open = up, is_open & ~is_free
        codes = self.codes >> (self.levels - levels)
        which = np.unique(codes << (self.depth - levels), return_index=True)[1]
        return replace(self, codes=codes[which], levels=levels[which]), which

    @property
    def depth(self) -> int:
        return int(self.levels.max())

    @cached_property
    def first(self) -> Integers:
        """The lowest code of each cell at the deepest level."""
        return np.asarray(self.codes << (self.depth - self.levels))

    @cached_property
    def midpoints(self) -> Midpoints:
        return Midpoints.widest_first(self.half, self.depth)

    def find(self, rows: Integers) -> Integers:
        """The cell of every row: a row outside the cube is in the cell nearest to it."""
        places = np.empty(len(rows), dtype=np.int64)
        _kernels.find_ranges(self.midpoints.find(rows), self.first, *self._starts, places)
        return places

    @cached_property
    def _starts(self) -> tuple[Integers, int]:
        """The cell of every code whose bits are 0 but the first few, and how many bits that leaves; the last cell at the end."""
        shift = max(0, self.depth - HEAD_BITS)
        heads = np.arange(1 << (self.depth - shift)) << shift
        return np.append(np.searchsorted(self.first, heads, side="right") - 1, len(self.first) - 1), shift

    def around(self, values: Floats, levels: int) -> Floats:
        """For every cell, the sum of `values` over its block: the cells of its own size in an ancestor that holds no others, as
        many levels up as there is one, and at most `levels`."""
        start, stop = self._blocks(levels)
        total = np.concatenate([[0.0], np.cumsum(values)])
        return np.asarray(total[stop] - total[start])

    def _blocks(self, levels: int) -> tuple[Integers, Integers]:
        """Where the block of every cell begins, and where it ends."""
        if levels not in self._known_blocks:
            start, stop = self._blocks(levels - 1)
            size = np.where(self.levels >= levels, 1 << (self.depth - self.levels + levels), 1)
            low = self.first // size * size
            begin, end = np.searchsorted(self.first, low), np.searchsorted(self.first, low + size)
            # 2**levels cells whose levels add up to 2**levels times one's own are all of it: else their sizes could not add up.
            sums = np.append(0, np.cumsum(self.levels))
            is_even = (self.levels >= levels) & (end - begin == 1 << levels) & (sums[end] - sums[begin] == self.levels << levels)
            self._known_blocks[levels] = np.where(is_even, begin, start), np.where(is_even, end, stop)
        return self._known_blocks[levels]

    @cached_property
    def _known_blocks(self) -> dict[int, tuple[Integers, Integers]]:
        """By how many levels up they go at most; a cell is a block of its own."""
        return {0: (np.arange(len(self.codes)), np.arange(len(self.codes)) + 1)}

    def touching(self, cells: Integers, others: Integers) -> Bools:
        """(cells, others) whether two cells, given by their places here, touch: at a corner at least."""
        (middles, halves), (other_middles, other_halves) = self.boxes(cells), self.boxes(others)
        apart = np.abs(middles[:, None] - other_middles) - (halves[:, None] + other_halves)
        return np.asarray((apart <= 1e-6 * other_halves.max(initial=0.0)).all(axis=2))

    def neighbours(self, cells: Integers) -> tuple[Integers, Bools]:
        """(cells, 3**axes) each cell and those around it, by their places here, ascending: those that hold the middles of boxes
        of its size beside it, or the cell again where that is outside the cube; and which are named for the first time, since
        a large cell may hold several middles."""
        middles, halves = self.boxes(cells)
        sides = np.array(list(product((-1, 0, 1), repeat=len(self.half))))
        beside = middles[:, None] + 2 * halves[:, None] * sides
        found = self.find(np.floor(beside).astype(np.int64).reshape(-1, len(self.half))).reshape(len(cells), len(sides))
        is_own = (np.abs(beside) > self.half).any(axis=2) | ~sides.any(axis=1)
        found = np.sort(np.where(is_own, cells[:, None], found), axis=1)
        return found, np.diff(found, axis=1, prepend=-1) > 0

    def boxes(self, shown: Bools | Integers | slice = slice(None)) -> tuple[Floats, Floats]:
        """Middles and half-widths (cells, axes), of all cells or of those that are shown."""
        first, levels = self.first[shown], self.levels[shown]
        low, high = (np.tile(side * self.half.astype(np.float64), (len(first), 1)) for side in (-1, 1))
        for level, axis in enumerate(halving_order(self.half, self.depth)):
            is_deeper = levels > level
            middle = (low[:, axis] + high[:, axis]) / 2
            is_upper = (first >> (self.depth - 1 - level)) & 1 == 1
            low[:, axis] = np.where(is_deeper & is_upper, middle, low[:, axis])
            high[:, axis] = np.where(is_deeper & ~is_upper, middle, high[:, axis])
        return (low + high) / 2, (high - low) / 2


def in_chunks(cells: Integers) -> list[Integers]:
    """The same cells, few at a time: a table of all pairs would fill the memory."""
    return [cells[start : start + CHUNK] for start in range(0, len(cells), CHUNK)]
