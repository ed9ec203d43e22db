"""What moves a median: the pulls of rows on their nearest centre, and their distances to places around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.space.euclidean import Centers, assign
from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pulls:
    """Cells by nearest centre, on the integer grid; `smoothing` is h of q = sqrt(|x - z|^2 + h^2), above 0, in steps.

    `top` is what a pull of length 1, and a weight of 1/h, count as.
    """

    frame: Frame
    centers: Integers
    smoothing: float
    top: int


@dataclass(frozen=True, eq=False)
class Places:
    """Cells by nearest centre, and places (cells, places, columns) on the integer grid that the median of each may be at.

    `radius` is how far places lie from their centre at most, in steps, and counts as `top`.
    """

    frame: Frame
    centers: Integers
    places: Integers
    radius: float
    top: int


def pulls(rows: Any, state: Pulls) -> tuple[Integers, Integers, Integers]:
    """Raw counts (k,), raw pulls (k, d) and raw weights (k,): the gradient of the smoothed cost, and Weiszfeld's divisor.

    A row is in one cell. There it adds 1, a vector of norm <= top, since |x - z| < q, and a number in 0 .. top, since h <= q;
    integers are cut to these bounds last, so that no rounding can pass them.
    """
    k, d = state.centers.shape
    raw_counts, raw_pulls, raw_weights = (
        np.zeros(k, dtype=np.int64),
        np.zeros((k, d), dtype=np.int64),
        np.zeros(k, dtype=np.int64),
    )
    for block, owner in _owned(rows, state):
        _kernels.add_pulls(block, owner, state.centers, state.smoothing, state.top, raw_counts, raw_pulls, raw_weights)
    return raw_counts, raw_pulls, raw_weights


def place_costs(rows: Any, state: Places) -> tuple[Integers]:
    """Raw costs (k, places): the sum over a cell's rows of how much farther each place is than the cell's centre.

    A row is in one cell, and moves the costs of no other. There it adds to every place a number in -top .. top, since
    | |x - p| - |x - z| | <= |p - z| <= radius; integers are cut to that last. `top` is at most 2**20, so that 2**42 rows fit,
    whatever `max_rows` says.
    """
    raw_costs = np.zeros(state.places.shape[:2], dtype=np.int64)
    for block, owner in _owned(rows, state):
        _kernels.add_place_costs(block, owner, state.centers, state.places, state.radius, state.top, raw_costs)
    return (raw_costs,)


def _owned(rows: Any, state: Pulls | Places) -> Any:
    nearest = Centers(state.centers.astype(np.float64), None)
    for part in blocks(rows):
        block = state.frame.measured(part)
        yield block, assign(block, nearest)
