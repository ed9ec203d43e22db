"""What clusterings cost, exactly and in whole units: one set of centres, or a set after every possible swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks, is_csr
from kveil.questions.saturating import add

Objective = Literal["k-means", "k-median"]


@dataclass(frozen=True)
class Loss:
    """What a row adds to the cost of a set of centres: the squared distance (k-means) or the distance (k-median) to the
    nearest, in steps, shifted down by whole bits so that `max_rows` of them stay below 2**62, and a block of them below 2**53.
    Blocks are merged by `saturating.add`, since `max_rows` may be false: costs stop at 2**62 and never wrap.

    A row and a centre in the ball of `reach` steps are at most 2 reach apart, so a row adds between 0 and `highest`, which has
    one unit to spare: on the widest grids a square passes 2**53 by a little, and float64 rounds it. Shifting keeps order: the
    least shifted distance is the shifted least distance.
    """

    is_squared: bool
    shift: int
    highest: int

    @classmethod
    def within(cls, reach: int, objective: Objective, max_rows: int) -> Loss:
        is_squared = objective == "k-means"
        widest = (2 * reach) ** (2 if is_squared else 1)
        shift = max(0, widest.bit_length() + max(20, (max_rows - 1).bit_length()) - 62)
        return cls(is_squared, shift, (widest >> shift) + 1)


@dataclass(frozen=True, eq=False)
class SwapCosts(Question):
    """Costs (k, others) of k centres with one of them replaced by one of some candidates, in the projection of a frame.

    Rows, centres (k, p) and candidates (c, p) lie in its ball, so a row adds between 0 and `Loss.highest` to every cost.
    """

    frame: Frame
    objective: Objective
    max_rows: int
    centers: Integers
    candidates: Integers
    others: Integers | None = None  # which candidates may come in; None: all
    combine: ClassVar = staticmethod(add)

    def __post_init__(self) -> None:
        check_inside(self._ball, self.centers, self.candidates)

    @property
    def loss(self) -> Loss:
        return Loss.within(self._ball, self.objective, self.max_rows)

    @property
    def _ball(self) -> int:
        return self.frame.radius if self.frame.axes is None else self.frame.reach

    @property
    def parts(self) -> tuple[Part]:
        return (Part("swap", "costs", self.loss.highest),)

    def raw(self, rows: Any) -> tuple[Integers]:
        """With a the nearest centre of a row, d1 <= d2 its losses there and at the second nearest, and D its loss at y, the row
        adds to the cost of replacing x by y: min(d1, D) unless x = a, and min(d2, D) if x = a. All x and y in one pass."""
        loss, candidates = self.loss, _points(self.candidates)
        costs = np.zeros((len(self.centers), len(self.candidates)), dtype=np.int64)
        for block in blocks(rows):
            seen = self.frame.projected(self.frame.centred(block)).astype(np.float64)
            near = _nearest(seen, self.centers, loss)
            stays, moves = np.zeros(candidates.shape[1]), np.zeros(costs.shape)
            _kernels.add_swaps(seen, *near, candidates, loss.is_squared, 2.0**-loss.shift, stays, moves)
            costs += (stays + moves).astype(np.int64)
        return (costs if self.others is None else costs[:, self.others],)


@dataclass(frozen=True, eq=False)
class SetCosts(Question):
    """Costs (sets,) of several sets of centres (sets, k, d), in steps from the middle of a frame.

    Rows and centres lie in its ball, so a row adds between 0 and `Loss.highest` to every cost.
    """

    frame: Frame
    objective: Objective
    max_rows: int
    centers: Integers
    label: str = "best trial"
    in_projection: bool = False
    combine: ClassVar = staticmethod(add)

    def __post_init__(self) -> None:
        check_inside(self._ball, *self.centers)

    @property
    def loss(self) -> Loss:
        return Loss.within(self._ball, self.objective, self.max_rows)

    @property
    def _ball(self) -> int:
        return self.frame.reach if self.in_projection and self.frame.axes is not None else self.frame.radius

    @property
    def parts(self) -> tuple[Part]:
        return (Part(self.label, "costs", self.loss.highest),)

    def raw(self, rows: Any) -> tuple[Integers]:
        costs, loss = np.zeros(len(self.centers), dtype=np.int64), self.loss
        for block in blocks(rows):
            centred = self.frame.centred(block)
            seen = (self.frame.projected(centred) if self.in_projection else centred).astype(np.float64)
            costs += np.array([_least(seen, centers, loss).sum() for centers in self.centers]).astype(np.int64)
        return (costs,)


def check_inside(ball: int, *points: Integers) -> None:
    """A point outside the ball could make a row cost more than what is charged for."""
    if any((each.astype(np.float64) ** 2).sum(axis=1).max(initial=0.0) > float(ball) ** 2 for each in points):
        raise AssertionError("centres and candidates must lie in the ball of the rows")


def _least(seen: Any, centers: Integers, loss: Loss) -> Floats:
    """What every row adds: its loss at the nearest centre. CSR rows stay sparse: |x|^2 - 2 x.c + |c|^2 is whole, and exact."""
    if not is_csr(seen):
        return _nearest(seen, centers, loss)[1]
    codes = centers.astype(np.float64)
    own = np.asarray(seen.multiply(seen).sum(axis=1)).reshape(-1, 1)
    least = (own - 2 * (seen @ codes.T) + (codes**2).sum(axis=1)).min(axis=1)
    return np.asarray(np.floor((least if loss.is_squared else np.sqrt(least)) * 2.0**-loss.shift))


def _nearest(seen: Floats, centers: Integers, loss: Loss) -> tuple[Integers, Floats, Floats]:
    owner, first, second = np.empty(len(seen), dtype=np.int64), np.empty(len(seen)), np.empty(len(seen))
    _kernels.find_nearest(seen, _points(centers), loss.is_squared, 2.0**-loss.shift, owner, first, second)
    return owner, first, second


def _points(points: Integers) -> Floats:
    """As the kernels want them: (axes, points)."""
    return np.ascontiguousarray(points.T, dtype=np.float64)
