"""Few columns: cheap looks that find where rows are, so that the grid is fine there and coarse elsewhere.

With wide bounds, or rows in few places, cells of one size are wasted on empty ground. A look counts all cells of a coarse
partition. If few of them hold most rows, the next look divides these. Few rows are looked for block by block (`loose.py`).
Every decision follows from noisy counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.desk.base import Curator
from kveil.methods.ground import Ground
from kveil.methods.tree.loose import DEAREST, crowded_block, densest
from kveil.partition.midpoints import DEEPEST
from kveil.partition.tiling import Tiling, in_chunks
from kveil.questions.frame import Frame
from kveil.questions.midpoint_cells import TileCounts
from kveil.solve.evidence import by_chance, least_deviations

OF_LOOKS = (0.04, 0.05, 0.05)  # of the budget. The first decides; the others come only where rows are in few cells
# Deviations of one count that the number of rows must reach, or cells of a look would show noise alone: in three columns a crowd
# lies in more of them.
CLEAR = {1: 16.0, 2: 16.0, 3: 100.0}
CLEAR_BLOCK = 8.0  # deviations of a block's count: few rows are looked for with more budget, or not at all
LEAST_CELLS, MOST_CELLS = (64, 16, 16), 4096  # of a look
FEW_CELLS = 0.25  # of those counted: more may not be kept
MOST_ROWS, DOUBT = 0.85, 3.0  # of all rows: what kept cells must hold, less so many deviations of their sum
LEAST_ROWS, MORE_ROWS = 0.5, 1.5  # and at least this, more the longer the sides that they are left with: there is less to gain
BY_ROWS = 0.5  # power of a cell's rows that the number of its parts follows
FINER = 4  # halvings beside the region: rows of it lie there too
WIDE, MOST_BITS = 11.0, 16  # halvings from the box to the region, beyond which bounds are loose; of cells then, at most


class Zoomed(NamedTuple):
    """Where to count finely.

    tiling: a partition of the box.  region: which of its cells hold most rows, all of one size; the whole box if nothing tells.
    bits: how often each cell is halved for the grid.  spent: the share of the budget that the looks took.
    is_rough: whether the region follows from so few rows that many may lie outside.
    """

    tiling: Tiling
    region: Bools
    bits: Integers
    spent: float
    is_rough: bool


def zoomed(ground: Ground, frame: Frame, half: Floats, bits: int, n: float) -> Zoomed:
    """The region that holds most rows, and how to divide it into about 2**bits cells, finer where it holds more; the rest is as
    coarse as a grid of 2**bits cells over the whole box, finer in loose bounds, and beside the region. Public, charged."""
    size = np.maximum(np.ceil(half), 1).astype(np.int64)
    deepest = min(DEEPEST, int(np.floor(np.log2(2.0 * size)).sum()))  # cells one step wide
    is_rough = n < CLEAR[len(size)] * ground.desk.deviation(OF_LOOKS[0])
    if is_rough:
        tiling, region, spent = _by_block(ground.desk, frame, size, n, deepest)
        held = np.where(region, n / region.sum(), 0.0)  # what each holds is not clear
    else:
        tiling, region, spent, held = _by_cells(ground.desk, frame, size, n, deepest)
    own = np.zeros(len(region), dtype=np.int64)
    own[region] = np.maximum(0, np.rint(bits - np.log2(region.sum()) + BY_ROWS * np.log2(held[region] / held[region].mean())))
    beside = _beside(tiling, region, own)
    rest = bits + _looser(tiling, region, bits)
    tiling, which = _joined(tiling, region | (beside >= 0), rest, 1 - held.sum() / n)
    region, beside, own = region[which], beside[which], own[which]
    finer = np.minimum(tiling.levels[region][0] - tiling.levels + beside, FINER)
    halved = np.where(region, own, np.maximum(np.where(beside >= 0, finer, 0), rest - tiling.levels))
    return Zoomed(tiling, region, np.clip(halved, 0, deepest - tiling.levels), spent, is_rough)


def _by_cells(desk: Curator, frame: Frame, size: Integers, n: float, deepest: int) -> tuple[Tiling, Bools, float, Floats]:
    """The cells that stand out in up to three looks, if they are few and hold most rows; what the looks took, and their rows."""
    tiling, region, spent, held = Tiling.whole(size), np.ones(1, dtype=bool), 0.0, np.full(1, n)
    for share, least_cells in zip(OF_LOOKS, LEAST_CELLS, strict=True):
        deviation = desk.deviation(share)
        cells = float(np.clip(2 * n / max(deviation, 1e-9), least_cells, MOST_CELLS))
        halvings = min(max(1, round(np.log2(cells / region.sum()))), deepest - tiling.depth)
        if n < CLEAR[len(size)] * deviation or halvings < 1:
            break
        tried, is_new = tiling.divided(np.where(region, halvings, 0)), np.repeat(region, np.where(region, 1 << halvings, 1))
        kept = _kept(desk, TileCounts(frame, tried), is_new, share, n)
        spent += share
        if kept is None:
            break
        tiling, region, held = tried, kept > 0, kept
    return tiling, region, spent, held


def _by_block(desk: Curator, frame: Frame, size: Integers, n: float, deepest: int) -> tuple[Tiling, Bools, float]:
    """The block of cells that holds most of few rows, and what the looks took: each has as much budget as makes a block clear,
    whose noise is that of two cells along every axis."""
    lack = CLEAR_BLOCK * 2 ** (len(size) / 2) * desk.deviation(OF_LOOKS[0]) / n
    share = OF_LOOKS[0] * (lack if desk.kind == "pure" else lack**2)
    if share > DEAREST:
        return Tiling.whole(size), np.ones(1, dtype=bool), 0.0
    return crowded_block(desk, frame, size, share, n, deepest)


def _looser(tiling: Tiling, region: Bools, bits: int) -> int:
    """How often cells outside are halved once more, as if the box were 2**WIDE times as large as the region at most: in looser
    bounds one of 2**bits cells would hold several small clusters."""
    halvings = -np.log2(np.exp2(-tiling.levels[region].astype(float)).sum())
    return int(np.clip(np.rint(halvings - WIDE), 0, max(0, MOST_BITS - bits)))


def _joined(tiling: Tiling, kept: Bools, bits: int, outside: float) -> tuple[Tiling, Integers]:
    """Small cells but those `kept` joined, until they are as many as their part of the rows, `outside`, has of 2**bits cells:
    rows of a small cluster show in few cells, and in many they are lost in noise."""
    n_small = int((~kept & (tiling.levels > bits)).sum())
    up = int(np.log2(max(1.0, n_small / (1 + 2.0**bits * max(outside, 0.0)))))
    return tiling.joined(kept, max(bits, tiling.depth - up))


def _kept(desk: Curator, question: TileCounts, is_new: Bools, share: float, n: float) -> Floats | None:
    """Noisy rows of new cells that hold some, 0 for others; None unless few of them hold most rows."""
    ((counts, deviation),) = desk.ask(question, share)  # public, charged
    is_pure = desk.kind == "pure"
    least = least_deviations(len(counts), is_pure=is_pure)
    is_kept = np.asarray(is_new & (counts >= max(least * deviation, 0.5)))
    held = counts[is_kept].sum() - by_chance(least, is_pure=is_pure) * deviation * is_new.sum()  # without what noise adds
    is_enough = _is_enough(question.tiling, is_kept, is_new, float(held), deviation, n)
    if not is_enough and is_new.all():  # few rows may show in no cell of those that a crowd lies in, but in their block
        is_kept, held = densest(question.tiling, counts, is_new)
        is_enough = _is_enough(question.tiling, is_kept, is_new, held, deviation, n)
    return np.where(is_kept, np.maximum(counts, 1.0), 0.0) if is_enough else None


def _is_enough(tiling: Tiling, is_kept: Bools, is_new: Bools, held: float, deviation: float, n: float) -> bool:
    """Whether few cells hold most rows."""
    part = is_kept.sum() / is_new.sum()
    side = part ** (2 / len(tiling.half))  # of a grid over kept cells alone, squared, beside one over all
    needed = max(MOST_ROWS * n - DOUBT * deviation * is_kept.sum() ** 0.5, (LEAST_ROWS + MORE_ROWS * side) * n)
    return bool(part <= FEW_CELLS and held >= needed)


def _beside(tiling: Tiling, region: Bools, bits: Integers) -> Integers:
    """How often the cells of the region that a cell touches, at a corner at least, are halved at most; -1 if it touches none."""
    every, found = np.arange(len(region)), np.full(len(region), -1)
    for some in in_chunks(np.flatnonzero(region)):
        found = np.maximum(found, np.where(tiling.touching(every, some), bits[some], -1).max(axis=1))
    return found
