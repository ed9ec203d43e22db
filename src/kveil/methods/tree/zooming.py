"""Few columns: cheap looks that find where rows are, so that the grid is fine there and coarse elsewhere.

With wide bounds, or rows in few places, cells of one size are wasted on empty ground. A look counts all cells of a coarse
partition. If few of them hold most rows, the next look divides these. Every decision follows from noisy counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.desk.base import Curator
from kveil.methods.ground import Ground
from kveil.partition.midpoints import DEEPEST
from kveil.partition.tiling import Tiling
from kveil.questions.frame import Frame
from kveil.questions.midpoint_cells import TileCounts
from kveil.solve.evidence import by_chance, least_deviations

OF_LOOKS = (0.04, 0.05, 0.05)  # of the budget. The first decides; the others come only where rows are in few cells
CLEAR = 16.0  # deviations of one count that the number of rows must reach, or a look could show noise alone
LEAST_CELLS, MOST_CELLS = (64, 16, 16), 4096  # of a look
FEW_CELLS = 0.25  # of those counted: more may not be kept
MOST_ROWS, DOUBT = 0.85, 3.0  # of all rows: what kept cells must hold, less so many deviations of their sum
LEAST_ROWS, MORE_ROWS = 0.5, 1.5  # and at least this, more the more of the cells they are: there is less to gain
FINER = 4  # halvings beside the region: rows of it lie there too
CHUNK = 64  # cells that are compared with all others at once


class Zoomed(NamedTuple):
    """Where to count finely.

    tiling: a partition of the box.  region: which of its cells hold most rows, all of one size; the whole box if nothing tells.
    bits: how often each cell is halved for the grid.  spent: the share of the budget that the looks took.
    """

    tiling: Tiling
    region: Bools
    bits: Integers
    spent: float


def zoomed(ground: Ground, frame: Frame, half: Floats, bits: int, n: float) -> Zoomed:
    """The region that holds most rows, and how to divide it into about 2**bits cells; the rest is as coarse as a grid of
    2**bits cells over the whole box, and finer beside the region. Public, charged."""
    size = np.maximum(np.ceil(half), 1).astype(np.int64)
    deepest = min(DEEPEST, int(np.floor(np.log2(2.0 * size)).sum()))  # cells one step wide
    tiling, region, spent = Tiling.whole(size), np.ones(1, dtype=bool), 0.0
    for share, least_cells in zip(OF_LOOKS, LEAST_CELLS, strict=True):
        deviation = ground.desk.deviation(share)
        cells = float(np.clip(2 * n / max(deviation, 1e-9), least_cells, MOST_CELLS))
        halvings = min(max(1, round(np.log2(cells / region.sum()))), deepest - tiling.depth)
        if n < CLEAR * deviation or halvings < 1:
            break
        tried, is_new = tiling.divided(np.where(region, halvings, 0)), np.repeat(region, np.where(region, 1 << halvings, 1))
        kept = _kept(ground.desk, TileCounts(frame, tried), is_new, share, n)
        spent += share
        if kept is None:
            break
        tiling, region = tried, kept
    fine = max(0, round(bits - np.log2(region.sum())))
    beside = np.where(_beside(tiling, region), np.minimum(tiling.levels[region][0] + fine - tiling.levels, FINER), 0)
    halved = np.where(region, fine, np.maximum(beside, bits - tiling.levels))
    return Zoomed(tiling, region, np.clip(halved, 0, deepest - tiling.levels), spent)


def _kept(desk: Curator, question: TileCounts, is_new: Bools, share: float, n: float) -> Bools | None:
    """Which new cells hold rows; None unless few of them hold most rows."""
    ((counts, deviation),) = desk.ask(question, share)  # public, charged
    is_pure = desk.kind == "pure"
    least = least_deviations(len(counts), is_pure=is_pure)
    is_kept = np.asarray(is_new & (counts >= max(least * deviation, 0.5)))
    part = is_kept.sum() / is_new.sum()
    held = counts[is_kept].sum() - by_chance(least, is_pure=is_pure) * deviation * is_new.sum()  # without what noise adds
    needed = max(MOST_ROWS * n - DOUBT * deviation * is_kept.sum() ** 0.5, (LEAST_ROWS + MORE_ROWS * part) * n)
    return is_kept if part <= FEW_CELLS and held >= needed else None


def _beside(tiling: Tiling, region: Bools) -> Bools:
    """Which cells touch a cell of the region, at a corner at least."""
    middles, halves = tiling.boxes()
    found = np.zeros(len(region), dtype=bool)
    for start in range(0, int(region.sum()), CHUNK):
        some = np.flatnonzero(region)[start : start + CHUNK]
        apart = np.abs(middles[:, None] - middles[some]) - (halves[:, None] + halves[some])
        found |= (apart <= 1e-6 * halves[some].max()).all(axis=2).any(axis=1)
    return found
