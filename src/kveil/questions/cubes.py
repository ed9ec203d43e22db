"""How many rows the children of active cubes hold: occupied children only, since there may be more than anyone can list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.partition.cubes import Cubes
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks


def merge_counts(one: Integers, other: Integers) -> Integers:
    """Two raw answers as one; neither the order nor the grouping of merges matters."""
    codes, where = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.zeros(len(codes), dtype=np.int64)
    np.add.at(counts, where, np.concatenate([one[1], other[1]]))
    return np.stack([codes, counts])


@dataclass(frozen=True, eq=False)
class CubeCounts(Question):
    """Codes, ascending, and counts of the occupied children of the deepest active cubes, as one array (2, children).

    A row, as `frame` projects it, is in at most one child; rows in cubes that are not active are in none. Both the codes and how
    many there are are secret. A row's cube follows from that row and the released cubes, so nothing is kept between levels.
    """

    frame: Frame
    cubes: Cubes
    parts: ClassVar = (Part("active cubes", "active"),)
    combine: ClassVar = staticmethod(merge_counts)

    def raw(self, rows: Any) -> tuple[Integers]:
        cubes = self.cubes
        active = np.concatenate([np.empty(0, dtype=np.int64), *cubes.levels])
        ends = np.cumsum([0, *map(len, cubes.levels)])
        codes = np.empty(rows.shape[0], dtype=np.int64)
        done = 0
        for block in blocks(rows):
            seen = self.frame.projected(self.frame.centred(block))
            _kernels.find_cubes(seen, cubes.low, cubes.side, cubes.half, active, ends, codes[done : done + len(seen)])
            done += len(seen)
        found, counts = np.unique(codes[codes >= 0], return_counts=True)
        return (np.stack([found, counts]),)
