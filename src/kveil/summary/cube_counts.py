"""How many rows the children of active cubes hold: occupied children only, since there may be more than anyone can list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.partition.cubes import Cubes
from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InCubes:
    """Rows as `frame` projects them, in the children of the deepest active cubes."""

    frame: Frame
    cubes: Cubes


def cube_counts(rows: Any, state: InCubes) -> tuple[Integers]:
    """Raw codes, ascending, and raw counts of occupied children, as one array (2, children): merge with `merge_counts`.

    A row is in at most one child; rows in cubes that are not active are in none. Both the codes and how many there are
    are secret. A row's cube follows from that row and the released cubes, so nothing is kept for it between levels.
    """
    cubes = state.cubes
    active = np.concatenate([np.empty(0, dtype=np.int64), *cubes.levels])
    ends = np.cumsum([0, *map(len, cubes.levels)])
    codes = np.empty(rows.shape[0], dtype=np.int64)
    done = 0
    for block in blocks(rows):
        seen = state.frame.projected(state.frame.centred(block))
        _kernels.find_cubes(seen, cubes.low, cubes.side, cubes.half, active, ends, codes[done : done + len(seen)])
        done += len(seen)
    found, counts = np.unique(codes[codes >= 0], return_counts=True)
    return (np.stack([found, counts]),)


def merge_counts(one: Integers, other: Integers) -> Integers:
    """Two results of `cube_counts` as one; neither the order nor the grouping of merges matters."""
    codes, where = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, where, np.concatenate([one[1], other[1]]))
    return np.stack([codes, counts])
