"""HeavyCellMarker: which cells of a hierarchy are heavy, given counts and a guess of the optimal cost.

A point farther than side/d from all optimal centres pays at least (side/d)**2, so only OPT d**2/side**2 points are far; a cell
that holds many more people than such a share is near a centre. *Medium* cells, light children of heavy ones, are implicit: only
heavy ones are ever listed. The paper prints the threshold OPT/(side**2 k polylog n) and leaves the algorithm to a supplement,
which we do not have: here the logarithms are left out, and noise sets a floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2

import numpy as np

from kveil.collect.descent import Level
from kveil.collect.queries import Keys
from kveil.partition.lsh import contains
from kveil.partition.public_map import ROOT, side

THETA = 1.0


def mark(levels: Sequence[Level], thresholds: Sequence[float], n_axes: int) -> list[Keys]:
    """Heavy cells of the levels 1, 2, ..., ascending: those that reach the threshold and whose parent is heavy."""
    heavy, above = [], np.zeros(1, dtype=np.uint64)
    for level, least in zip(levels, thresholds, strict=True):
        reaches = level.people >= least
        above = level.keys[reaches & contains(above, level.keys >> np.uint64(n_axes))]
        heavy.append(above)
    return heavy


def least_people(level: int, opt: float, k: int, noise_floor: float) -> float:
    """People that a heavy cell of a level has, if the optimal cost is `opt`: never below what noise alone may show."""
    return max(noise_floor, THETA * opt / (k * side(level) ** 2))


def guesses(n: int, k: int) -> list[float]:
    """Guesses of the optimal cost, doubling from k sqrt(n) to n, as the paper's text says; its F, log2(n/sqrt(nk)), passes n."""
    return [k * n**0.5 * 2.0**f for f in range(max(1, ceil(log2(n**0.5 / k))))]


def n_levels(n: int, guess: int) -> int:
    """Levels below which no cell can be heavy, under the guess of that number: its threshold would pass n."""
    return max(1, floor(log2(ROOT) + log2(n) / 4 - guess / 2 - log2(THETA) / 2))
