"""Few columns: noisy counts of one partition of the whole box, every cell of it, and which of them rows may be in."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Bools, Floats
from kveil.methods.ground import Ground
from kveil.methods.tree.zooming import Zoomed, zoomed
from kveil.partition.tiling import Tiling, in_chunks
from kveil.questions.frame import Frame
from kveil.questions.midpoint_cells import TileCounts
from kveil.solve.evidence import stands_out, sure_sum
from kveil.solve.histogram import Histogram

STANDS_OUT = 3.0  # deviations of the sum of a block
TWO, THREE = 2, 3  # halvings: a block has 4 cells, or 8
SMALL, UP = 4, 10  # halvings: of blocks that need as much as if there were one for each cell, and of the largest
NARROW = 3  # halvings of each column: blocks of more than 16 cells are at most an eighth of the box wide
OUTSIDE = 3.0  # noise in outside blocks of one size passes with probability exp(-3) in all: a centre far out is a centre lost
ALONE = 4.0  # and with exp(-4) in cells by themselves
FAR_OUTSIDE = 5.0  # the same where nothing tells that there are rows outside at all
LIKELY = 3.0  # deviations of a count outside: with fewer it has no weight, even if the cells around it show rows
NEIGHBOURS = 8  # of a cell, about
MANY, SURELY = 0.25, 5.0  # of all rows outside a region that is rough, and deviations of their sum: rows lie everywhere
WITHIN = 1.6  # inside: 0.2 blocks of empty cells pass


def histogram(ground: Ground, frame: Frame, half: Floats, bits: int, share: float, n: float) -> tuple[Histogram, Floats]:
    """A grid of noisy counts, and the half-widths (cells, d) of its cells, in steps. `share` pays for the looks before it, too.

    All cells of a partition of the box are counted, empty ones too; a row is in one. What is returned follows from noisy
    counts.
    """
    plan = zoomed(ground, frame, half, bits, n)
    tiling = plan.tiling.divided(plan.bits)
    ((counts, deviation),) = ground.desk.ask(TileCounts(frame, tiling), share - plan.spent)  # public, charged
    is_pure = ground.desk.kind == "pure"
    inside = _inside(plan, counts, deviation, is_pure=is_pure)
    blocks = [(tiling.around(counts, up), tiling.around(np.ones(len(counts)), up)) for up in (TWO, THREE)]
    is_kept = inside & stands_out(counts, *blocks[1], deviation, is_pure=is_pure)
    weights = _pooled(tiling, counts, np.where(is_kept, counts, 0.0), inside, deviation, is_pure=is_pure)
    if not weights.any():
        weights[np.argmax(counts)] = 1.0
    shown = (weights > 0) | (inside & (blocks[0][0] > np.maximum(STANDS_OUT * deviation * np.sqrt(blocks[0][1]), 0.5)))
    middles, halves = tiling.boxes(shown)
    return Histogram(middles, counts[shown], weights[shown], deviation, np.sqrt((halves**2).sum(axis=1) / 3)), halves


def _inside(plan: Zoomed, counts: Floats, deviation: float, *, is_pure: bool) -> Bools:
    """Which cells lie in a part of the region whose sum, of this release, shows rows: a look may have kept an empty one."""
    owner = np.repeat(np.arange(len(plan.bits)), 1 << plan.bits)
    outside = ~plan.region[owner]
    n_outside = float(counts[outside].sum())
    is_everywhere = n_outside > max(MANY * counts.sum(), SURELY * deviation * outside.sum() ** 0.5)
    if not outside.any() or (plan.is_rough and is_everywhere):
        return np.ones(len(counts), dtype=bool)
    least = sure_sum(1 << plan.bits, np.log(plan.region.sum()) + FAR_OUTSIDE, is_pure=is_pure) * deviation
    return np.asarray((plan.region & (np.bincount(owner, counts) >= least))[owner])


def _pooled(tiling: Tiling, counts: Floats, weights: Floats, inside: Bools, deviation: float, *, is_pure: bool) -> Floats:
    """Weights with those of cells that stand out outside, or in blocks anywhere: these share their sum evenly.

    Outside the region noise would draw a centre far away, so a cell there must be beyond doubt: by itself, with the cells around
    it, or with those of its block; more so where all cells outside, added up, show no rows. Large blocks are few, so that each
    needs less: a few rows in very many cells, those of far tails say, show in them alone.
    """
    outside, found, ones = ~inside, weights.copy(), np.ones(len(counts))
    has_rows = outside.any() and counts[outside].sum() >= STANDS_OUT * deviation * np.sqrt(outside.sum())
    among, among_outside = (np.log(max(1, part.sum())) for part in (inside, outside))
    without = among_outside + (OUTSIDE if has_rows else FAR_OUTSIDE)
    by_size = [max(without, among_outside + ALONE), *[without] * UP]
    for up in range(UP + 1):
        rest = (found == 0) & (outside | (up > 0))
        if up > SMALL:  # smaller blocks have had their turn; and where in a wider one rows are, nobody could tell
            rest &= (tiling.around(ones, up) == 1 << up) & (tiling.levels - up >= NARROW * len(tiling.half))
        sums, sizes = (tiling.around(np.where(rest, part, 0.0), up) for part in (counts, ones))
        fewer = max(0, up - SMALL) * np.log(2)
        least, least_outside = (
            sure_sum(sizes, log - min(fewer, most), is_pure=is_pure)
            for log, most in ((among + WITHIN, among), (by_size[up], among_outside))
        )
        passed = rest & (sums >= np.maximum(np.where(outside, least_outside, least) * deviation, 0.5))
        found[passed] = sums[passed] / sizes[passed]
        if up == 0:
            found = _with_around(tiling, counts, found, outside, deviation, without, is_pure=is_pure)
    return _with_fringe(tiling, counts, found, outside, deviation, is_pure=is_pure)


def _with_around(
    tiling: Tiling, counts: Floats, weights: Floats, outside: Bools, deviation: float, log: float, *, is_pure: bool
) -> Floats:
    """Weights with those of likely cells outside that are beyond doubt together with the cells around them. A small cluster on
    the border of blocks has rows in several of them, and may stand out in none."""
    likely = np.flatnonzero(outside & (weights == 0) & (counts >= max(LIKELY * deviation, 0.5)))
    around, is_counted = tiling.neighbours(likely)
    is_counted &= outside[around]
    sums, sizes = np.where(is_counted, counts[around], 0.0).sum(axis=1), is_counted.sum(axis=1)
    passed = likely[sums >= sure_sum(sizes, log, is_pure=is_pure) * deviation]
    found = weights.copy()
    found[passed] = counts[passed]
    return found


def _with_fringe(tiling: Tiling, counts: Floats, weights: Floats, outside: Bools, deviation: float, *, is_pure: bool) -> Floats:
    """Weights with those of cells outside that touch a cell which stands out there. They are few, so that noise among them passes
    less: a small cluster would lose its rim, and its centre half a cell."""
    surest = np.flatnonzero(outside & (weights > 0))
    least = float(sure_sum(np.ones(1), np.log(max(1, NEIGHBOURS * len(surest))) + WITHIN, is_pure=is_pure)[0]) * deviation
    rest = np.flatnonzero(outside & (weights == 0) & (counts >= max(least, 0.5)))
    touches = np.zeros(len(rest), dtype=bool)
    for some in in_chunks(surest):
        touches |= tiling.touching(rest, some).any(axis=1)
    found = weights.copy()
    found[rest[touches]] = counts[rest[touches]]
    return found
