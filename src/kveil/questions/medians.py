"""What moves a median: the pulls of rows on their nearest centre, and their distances to places around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil.arrays import Integers
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks
from kveil.space.euclidean import Centers, assign


@dataclass(frozen=True, eq=False)
class Pulls(Question):
    """Counts (k,), pulls (k, d) and weights (k, 1) of rows on their nearest centre: the gradient of a smoothed cost, and
    Weiszfeld's divisor.

    smoothing: h of q = sqrt(|x - z|^2 + h^2), above 0, in steps. top: what a pull of length 1, and a weight of 1/h, count as.
    A row is in one cell. There it adds 1, a vector (x - z)/q of norm <= top, since |x - z| < q, and a number h/q in 0 .. top,
    since h <= q; integers are cut to these bounds last, so that no rounding can pass them.
    """

    frame: Frame
    centers: Integers
    smoothing: float
    top: int

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise AssertionError("smoothing is above 0: a row at its centre would be divided by 0, and raise")

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        return Part("rows near each centre", "counts"), Part("pulls", "vectors", self.top), Part("weights", "vectors", self.top)

    def raw(self, rows: Any) -> tuple[Integers, Integers, Integers]:
        raw_counts, raw_weights = (np.zeros(len(self.centers), dtype=np.int64) for _ in range(2))
        raw_pulls = np.zeros(self.centers.shape, dtype=np.int64)
        for block, owner in _owned(rows, self.frame, self.centers):
            _kernels.add_pulls(block, owner, self.centers, self.smoothing, self.top, raw_counts, raw_pulls, raw_weights)
        return raw_counts, raw_pulls, raw_weights[:, None]


@dataclass(frozen=True, eq=False)
class MedianCosts(Question):
    """Costs (k, places): the sum over the rows nearest to a centre of how much farther each of its places is than a base.

    places: (k, places, d) on the integer grid. bases: (k, d), public or released; the centres, if None. radius: how far places
    lie from their base at most, in steps; counts as `top`.
    A row is in one cell, and moves the costs of no other. There it adds to every place a number in -top .. top, since
    | |x - p| - |x - b| | <= |p - b| <= radius; integers are cut to that last. So two of them differ by at most 2 top.
    `top` is at most 2**20, so that 2**42 rows fit, whatever `max_rows` says.
    """

    frame: Frame
    centers: Integers
    places: Integers
    radius: float
    top: int
    bases: Integers | None = None

    def __post_init__(self) -> None:
        if not self.radius > 0 or not 1 <= self.top <= 2**20:
            raise AssertionError("radius is above 0, or rows would be divided by 0; top is at most 2**20, or sums could wrap")

    @property
    def parts(self) -> tuple[Part]:
        return (Part("medians", "cell costs", 2 * self.top),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_costs, bases = np.zeros(self.places.shape[:2], dtype=np.int64), self.centers if self.bases is None else self.bases
        for block, owner in _owned(rows, self.frame, self.centers):
            _kernels.add_place_costs(block, owner, bases, self.places, self.radius, self.top, raw_costs)
        return (raw_costs,)


def _owned(rows: Any, frame: Frame, centers: Integers) -> Iterator[tuple[Any, Any]]:
    nearest = Centers(centers.astype(np.float64), None)
    for part in blocks(rows):
        block = frame.measured(part)
        yield block, assign(block, nearest)
