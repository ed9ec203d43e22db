"""What clusterings cost, exactly and in whole units: one set of centres, or a set after every possible swap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]
Objective = Literal["k-means", "k-median"]


@dataclass(frozen=True)
class Loss:
    """What a row adds to the cost of a set of centres: the squared distance (k-means) or the distance (k-median) to the
    nearest, in steps, shifted down by whole bits so that `max_rows` of them stay below 2**62.

    A row and a centre in the ball of `reach` steps are at most 2 reach apart, so a row adds between 0 and `highest`. Shifting
    keeps order: the least shifted distance is the shifted least distance, and swaps are compared on what is charged for.
    """

    is_squared: bool
    shift: int
    highest: int

    @classmethod
    def within(cls, reach: int, objective: Objective, max_rows: int) -> Loss:
        is_squared = objective == "k-means"
        widest = (2 * reach) ** (2 if is_squared else 1)
        shift = max(0, widest.bit_length() + (max_rows - 1).bit_length() - 62)
        return cls(is_squared, shift, max(1, widest >> shift))


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
    stays = np.zeros(len(state.candidates), dtype=np.int64)
    moves = np.zeros((len(state.centers), len(state.candidates)), dtype=np.int64)
    for block in blocks(rows):
        seen = state.frame.projected(state.frame.centred(block))
        owner, first, second = _nearest(seen, state.centers, state.loss)
        _kernels.add_swaps(seen, owner, first, second, state.candidates, state.loss.is_squared, state.loss.shift, stays, moves)
    return (stays + moves,)


def set_losses(rows: Any, state: Sets) -> tuple[Integers]:
    """Raw costs (sets,) of several sets of centres."""
    costs = np.zeros(len(state.centers), dtype=np.int64)
    for block in blocks(rows):
        seen = state.frame.centred(block)
        costs += [_nearest(seen, centers, state.loss)[1].sum() for centers in state.centers]
    return (costs,)


def _nearest(seen: Integers, centers: Integers, loss: Loss) -> tuple[Integers, Integers, Integers]:
    owner, first, second = (np.empty(len(seen), dtype=np.int64) for _ in range(3))
    _kernels.find_nearest(seen, centers, loss.is_squared, loss.shift, owner, first, second)
    return owner, first, second
