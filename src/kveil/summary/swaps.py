"""What clusterings cost, exactly and in whole units: one set of centres, or a set after every possible swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
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
class Swaps:
    """Centres (k, p) and candidates (c, p) in the projection of a frame; all lie inside its ball."""

    frame: Frame
    loss: Loss
    centers: Integers
    candidates: Integers


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of centres (sets, k, d), in steps from the middle of a frame; all lie inside its ball."""

    frame: Frame
    loss: Loss
    centers: Integers


def swap_losses(rows: Any, state: Swaps) -> tuple[Integers]:
    """Raw costs (k, c) of the centres with centre x replaced by candidate y, for all x and y in one pass.

    With a the nearest centre of a row, d1 <= d2 its losses there and at the second nearest, and D its loss at y: a row adds
    min(d1, D) unless x = a, and min(d2, D) if x = a.
    """
    k, candidates = len(state.centers), _points(state.candidates)
    costs = np.zeros((k, len(state.candidates)), dtype=np.int64)
    for block in blocks(rows):
        seen = state.frame.projected(state.frame.centred(block)).astype(np.float64)
        near = _nearest(seen, state.centers, state.loss)
        stays, moves = np.zeros(candidates.shape[1]), np.zeros(costs.shape)
        _kernels.add_swaps(seen, *near, candidates, state.loss.is_squared, 2.0**-state.loss.shift, stays, moves)
        costs += (stays + moves).astype(np.int64)
    return (costs,)


def set_losses(rows: Any, state: Sets) -> tuple[Integers]:
    """Raw costs (sets,) of several sets of centres."""
    costs = np.zeros(len(state.centers), dtype=np.int64)
    for block in blocks(rows):
        seen = state.frame.centred(block).astype(np.float64)
        costs += np.array([_nearest(seen, centers, state.loss)[1].sum() for centers in state.centers]).astype(np.int64)
    return (costs,)


def _nearest(seen: Floats, centers: Integers, loss: Loss) -> tuple[Integers, Floats, Floats]:
    owner, first, second = np.empty(len(seen), dtype=np.int64), np.empty(len(seen)), np.empty(len(seen))
    _kernels.find_nearest(seen, _points(centers), loss.is_squared, 2.0**-loss.shift, owner, first, second)
    return owner, first, second


def _points(points: Integers) -> Floats:
    """As the kernels want them: (axes, points)."""
    return np.ascontiguousarray(points.T, dtype=np.float64)
