"""What rows say of a public sample: which of its prototypes each is nearest to, and whether centres made from it fit the rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks
from kveil.space.euclidean import Centers, assign, nearest

TOP = 2**20  # what a squared radius counts as: sums of 2**40 rows stay below 2**61
LENGTH = isqrt(2 * TOP**2 - 1) + 1  # sqrt(2) TOP, rounded up


@dataclass(frozen=True, eq=False)
class Votes(Question):
    """Counts (prototypes,) of rows by their nearest prototype, a public point: a row adds 1 to one of them."""

    frame: Frame
    prototypes: Centers
    parts: ClassVar = (Part("votes for prototypes", "counts"),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_counts = np.zeros(len(self.prototypes.codes), dtype=np.int64)
        for block in blocks(rows):
            owner = assign(self.frame.measured(block), self.prototypes)
            raw_counts += np.bincount(owner, minlength=len(raw_counts))
        return (raw_counts,)


@dataclass(frozen=True, eq=False)
class Gain(Question):
    """A pair (2,): the cost D of the frame's middle, and by how much, G, some centres lower it. Squared distances are cut at the
    squared radius of the frame, and released in such squares.

    Proof: a row's two squared distances are whole numbers of steps below 2**53, so they are exact in float64, and so are they
    times TOP = 2**20. Cut at R^2 and divided by it they are rounded once, and what is at most TOP is not rounded above it.
    Rounded down, both lie in 0 .. TOP: a is that of the middle, c that of the nearest centre. The row adds (a, a - c), whose
    L2 norm is at most sqrt(a^2 + max(a, c)^2) <= sqrt(2) TOP. The middle and the centres are released or public, so no row
    changes what another adds.
    """

    frame: Frame
    centers: Centers
    parts: ClassVar = (Part("gain of public centres", "vectors", LENGTH, 1 / TOP),)

    def raw(self, rows: Any) -> tuple[Integers]:
        raw_pair, middle = np.zeros(2, dtype=np.int64), Centers(self.frame.middle[None, :].astype(np.float64), None)
        for block in blocks(rows):
            measured = self.frame.measured(block)
            of_middle, of_centers = (self._cost(nearest(measured, places)[1]) for places in (middle, self.centers))
            raw_pair += [of_middle.sum(), (of_middle - of_centers).sum()]
        return (raw_pair,)

    def _cost(self, squares: Integers) -> Integers:
        """Squared distances of rows as whole numbers from 0 to TOP."""
        most = float(self.frame.radius) ** 2
        return (np.minimum(squares, most) * TOP / most).astype(np.int64)
