"""Public cells of a cube of integers: every level halves one axis at its midpoint, so that a cell is a string of bits.

A cell of level l has a code of l bits; its parent's code is all but the last of them. All is integer arithmetic: the cell of
a row depends on that row and public numbers alone, and parents, children and sums over cells are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.partition import _cell_kernels as _kernels

Norm = Literal["l1", "l2"]

DEEPEST = 62  # levels: a code then is an int64
Level = tuple[int, Integers]  # a level and codes of some of its cells, ascending


@dataclass(frozen=True)
class Midpoints:
    """The cube |x_j| <= half_j of integers, halved again and again; bit b of a code, from the left, halves axis order[b].

    radius: rows also have an L2 norm of at most this, if given. It bounds a deviation where cells are still wide.
    """

    half: tuple[int, ...]
    order: tuple[int, ...]
    radius: int | None = None

    @classmethod
    def in_turn(cls, half: ArrayLike, depth: int, radius: int | None = None) -> Midpoints:
        """All axes in turn: bit b halves axis b mod d."""
        sides = _whole(half)
        return cls(sides, tuple(b % len(sides) for b in range(depth)), radius)

    @classmethod
    def widest_first(cls, half: ArrayLike, depth: int, radius: int | None = None) -> Midpoints:
        """Always the axis that is widest now: the same, in turn, if all are alike."""
        sides = _whole(half)
        return cls(sides, _halving_order(sides, depth), radius)

    def __post_init__(self) -> None:
        axes = range(len(self.half))
        if not self.half or min(self.half) < 1 or len(self.order) > DEEPEST or any(a not in axes for a in self.order):
            raise InvalidValue(f"cells need half-sides of at least 1 and at most {DEEPEST} halvings, each of one of the axes.")
        if any(2 * h << self.order.count(a) >= 2**62 for a, h in enumerate(self.half)):
            raise InvalidValue("the cells are too small for 64-bit integers: use fewer levels, or a coarser grid.")
        if self.radius is not None and self.radius < 1:
            raise InvalidValue("the radius of the ball that holds the rows must be at least 1.")

    @property
    def n_axes(self) -> int:
        return len(self.half)

    @property
    def depth(self) -> int:
        """Levels below the root: there are 2**depth leaves."""
        return len(self.order)

    def clamped(self, rows: Integers) -> Integers:
        """Rows moved into the cube, coordinate by coordinate; the middle is inside, so no norm grows."""
        return np.clip(rows, -self._half, self._half)

    def find(self, rows: Integers, level: int | None = None) -> Integers:
        """The cell of every row, at the deepest level or another; a row outside the cube is in the cell nearest to it."""
        order, codes = self._order[:level], np.empty(len(rows), dtype=np.int64)
        _kernels.find_cells(np.ascontiguousarray(rows, dtype=np.int64), self._half, self._halvings(len(order)), order, codes)
        return codes

    def boxes(self, codes: Integers, level: int) -> tuple[Integers, Integers]:
        """Least and greatest row (cells, axes) of cells of one level; in a cell finer than the grid the least may be greater."""
        places = np.zeros((len(codes), self.n_axes), dtype=np.int64)
        for b in range(level):
            axis = self.order[b]
            places[:, axis] = 2 * places[:, axis] + ((codes >> (level - 1 - b)) & 1)
        halvings, side = self._halvings(level), 2 * self._half
        low = -((-places * side) >> halvings)  # the ceiling: cell p holds y + half in [p side / 2**halvings, the next one's)
        high = -((-(places + 1) * side) >> halvings) - 1 + (places + 1 == 1 << halvings)  # the last holds its upper end, too
        return low - self._half, high - self._half

    def centers(self, codes: Integers, level: int) -> Integers:
        """Integer centres (cells, axes): no row of a cell is farther from it, along an axis, than `reaches` says."""
        low, high = self.boxes(codes, level)
        return np.asarray((low + high) >> 1)

    def reaches(self, level: int) -> Integers:
        """How far from the centre of a cell of this level a row of it may lie, along every axis; the same for all cells.

        A cell spans at most floor(s) steps, s = 2 half / 2**halvings: its ends are consecutive multiples of s rounded up, the
        upper less 1, and the last cell's are 2 half - floor(s) and 2 half. The centre is the middle of them, rounded.
        """
        return np.asarray(-(-((2 * self._half) >> self._halvings(level)) // 2))

    def is_anchored(self, level: int, norm: Norm = "l1") -> bool:
        """Whether deviations are taken from the centres of cells; else from the middle of the cube, where that is shorter."""
        return self.radius is None or self._by_cell(level, norm) <= self._by_ball(self.radius, norm)

    def anchors(self, codes: Integers, level: int, norm: Norm = "l1") -> Integers:
        """What deviations in these cells are measured from (cells, axes): their centres, or the middle of the cube."""
        if self.is_anchored(level, norm):
            return self.centers(codes, level)
        return np.zeros((len(codes), self.n_axes), dtype=np.int64)

    def reach(self, level: int, norm: Norm = "l1") -> int:
        """Bound on the norm of a row's deviation from its anchor, the same for all cells of a level. At least 1.

        From the centre of its cell: the half-widths added up (Q_c), or half the diagonal. From the middle of the cube: by
        Cauchy-Schwarz floor(sqrt(d) radius) (Q_b), since an L1 norm is whole, or the radius. The lesser of the two.
        """
        by_cell = self._by_cell(level, norm)
        return max(1, by_cell if self.radius is None else min(by_cell, self._by_ball(self.radius, norm)))

    def _by_cell(self, level: int, norm: Norm) -> int:
        reaches = self.reaches(level).tolist()
        return sum(reaches) if norm == "l1" else _root_up(sum(r * r for r in reaches))

    def _by_ball(self, radius: int, norm: Norm) -> int:
        return isqrt(self.n_axes * radius**2) if norm == "l1" else radius

    @cached_property
    def _half(self) -> Integers:
        return np.array(self.half, dtype=np.int64)

    @cached_property
    def _order(self) -> Integers:
        return np.array(self.order, dtype=np.int64)

    def _halvings(self, level: int) -> Integers:
        """How often every axis has been halved at this level."""
        return np.bincount(self._order[:level], minlength=self.n_axes).astype(np.int64)


@lru_cache(maxsize=64)  # by public lengths
def _halving_order(half: tuple[int, ...], depth: int) -> tuple[int, ...]:
    return tuple(halving_order(np.array(half), depth).tolist())


def halving_order(half: Integers, depth: int) -> Integers:
    """Which axis each level halves: always the one that is widest now, ties to the lowest index."""
    width = half.astype(np.float64) * 2
    order = np.empty(depth, dtype=np.int64)
    for level in range(depth):
        order[level] = int(np.argmax(width))
        width[order[level]] /= 2
    return order


def descendants(codes: Integers, levels: int) -> Integers:
    """All cells that many levels below these, ascending if these are."""
    return np.asarray(((codes[:, None] << levels) + np.arange(1 << levels, dtype=np.int64)).ravel())


def ancestors(codes: Integers, levels: int) -> Integers:
    """The cells that many levels above these, one for each."""
    return codes >> levels


def is_antichain(cells: Sequence[Level]) -> bool:
    """Whether no cell is listed twice or lies in another: a row is then in at most one of them."""
    deepest = max((level for level, _ in cells), default=0)
    first = np.concatenate([np.empty(0, dtype=np.int64), *(codes << (deepest - level) for level, codes in cells)])
    size = np.concatenate([np.empty(0, dtype=np.int64), *(np.full(len(c), 1 << (deepest - level)) for level, c in cells)])
    in_order = np.argsort(first, kind="stable")
    return bool((first[in_order][:-1] + size[in_order][:-1] <= first[in_order][1:]).all())


def frontier(kept: Sequence[Level]) -> list[Level]:
    """Of cells kept level by level, downwards, those without a kept descendant; each level's cells lie in kept ones above."""
    left, below = [], None
    for level, codes in reversed(kept):
        if below is not None:
            codes, below = codes[~np.isin(codes, ancestors(below[1], below[0] - level))], (level, codes)
        else:
            below = (level, codes)
        left.append((level, codes))
    return left[::-1]


def _root_up(square: int) -> int:
    return isqrt(square - 1) + 1 if square else 0


def _whole(half: ArrayLike) -> tuple[int, ...]:
    return tuple(int(h) for h in np.atleast_1d(np.asarray(half, dtype=np.int64)))
