"""How close rows lie to released centres: distances in bins, and for a public clip their cost, silhouette and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.questions.base import Part, Question
from kveil.space.euclidean import Centers, nearest

TOP = 2**20  # what a whole clip, and a silhouette of 1, count as: sums of 2**40 rows stay below 2**61

COST = Part("cost", "total", TOP, reason="a row adds its clipped distance")
SILHOUETTE = Part("silhouette", "total", TOP, reason="a row adds its own silhouette, from 0 to 1")
SIZES = Part("sizes", "counts", reason="a row is in one cluster")


@dataclass(frozen=True, eq=False)
class NearestBins(Question):
    """Counts (bins,) of rows by squared distance to their nearest centre: a row is in one bin.

    edges: squared outer edges in steps, descending; what is farther than the first counts in the first bin.
    """

    centers: Centers
    edges: Integers
    parts: ClassVar = (Part("distances", "counts", reason="a row is in one bin"),)

    def raw(self, rows: Any) -> tuple[Integers]:
        _, squares, _ = nearest(rows, self.centers)
        bins = np.maximum(np.searchsorted(-self.edges, -squares, side="right") - 1, 0)
        return (np.bincount(bins, minlength=len(self.edges)).astype(np.int64),)


@dataclass(frozen=True, eq=False)
class Closeness(Question):
    """The cost (1,) of clipped distances, and sizes (k,).

    clip: the squared distance, in steps, at which rows stop adding to the cost; it counts as TOP, or its root does.
    A row adds to the cost min(distance^2, clip) / clip, or the root of that, times TOP and to the nearest whole number: 0 .. TOP.
    To one size it adds 1. Labels and distances are exact integers, and each quotient and root is that of one row: no row changes
    what another adds. A replaced row moves the cost within 0 .. TOP, so no further than an added one.
    """

    centers: Centers
    clip: int
    is_squared: bool = True
    parts: ClassVar[tuple[Part, ...]] = (COST, SIZES)

    def __post_init__(self) -> None:
        if self.clip < 1:
            raise AssertionError("a clip is at least 1: rows would be divided by 0, and raise")

    def raw(self, rows: Any) -> tuple[Integers, ...]:
        return self._raw(*nearest(rows, self.centers)[:2])

    def _raw(self, owner: Any, squares: Integers) -> tuple[Integers, Integers]:
        far = np.minimum(squares, self.clip) / self.clip
        raw_sizes = np.bincount(owner, minlength=len(self.centers.codes)).astype(np.int64)
        return _in_steps(far if self.is_squared else np.sqrt(far)), raw_sizes


@dataclass(frozen=True, eq=False)
class Shape(Closeness):
    """The same with the sum (1,) of simplified silhouettes between, of two centres or more.

    A row adds 1 - a/b times TOP, a and b its distances to the nearest and the second nearest centre, 0 where b is 0: 0 .. TOP,
    since a <= b.
    """

    parts: ClassVar[tuple[Part, ...]] = (COST, SILHOUETTE, SIZES)

    def raw(self, rows: Any) -> tuple[Integers, ...]:
        owner, first, second = nearest(rows, self.centers)
        raw_costs, raw_sizes = self._raw(owner, first)
        apart = 1.0 - np.sqrt(first / np.maximum(second, 1))
        return raw_costs, _in_steps(np.where(second > 0, apart, 0.0)), raw_sizes


def _in_steps(values: Floats) -> Integers:
    """The sum (1,) of numbers from 0 to 1, each as a whole number from 0 to TOP."""
    return np.array([np.clip(np.rint(values * TOP), 0, TOP).astype(np.int64).sum()], dtype=np.int64)
