"""Few rows in at most 3 columns: looks that find the block of neighbouring cells with most rows, where bounds are loose.

Where rows are few no single cell stands out, and a grid over loose bounds would leave all of them in a few wide cells. But one
block of neighbours holds them, wherever cells end. Every decision follows from noisy counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kveil.arrays import Bools, Floats, Integers
from kveil.desk.base import Curator
from kveil.partition.tiling import Tiling
from kveil.questions.frame import Frame
from kveil.questions.midpoint_cells import TileCounts

MOST_LOOKS, DEAREST = 3, 0.14  # looks, and the most of the budget that each may take
FIRST, MANY, FEW = 3, 2, 1  # halvings of an axis, in the first look and in others; few where many showed no block
MOST_ROWS = 0.7  # of all rows: noise of a block, and of the number of rows, leaves its mark
UNSURE_ROWS = 0.5  # in the first look: with more, noise may have hidden that it is most


class Block(NamedTuple):
    """A partition of the box, which of its cells are the block, and the share of the budget that the looks took."""

    tiling: Tiling
    is_in: Bools
    spent: float


def crowded_block(desk: Curator, frame: Frame, size: Integers, share: float, n: float, deepest: int) -> Block:
    """The smallest block that looks find most rows in, or the whole box. `share` pays for a look. Public, charged."""
    block, d, finer = Block(Tiling.whole(size), np.ones(1, dtype=bool), 0.0), len(size), FIRST
    before: Floats | None = None
    for _ in range(MOST_LOOKS):
        halvings = finer * d
        if block.tiling.depth + halvings > deepest:
            break
        tried = block.tiling.divided(np.where(block.is_in, halvings, 0))
        ((counts, _),) = desk.ask(TileCounts(frame, tried), share)  # public, charged
        counts = counts if before is None else (counts + before) / 2
        is_new = np.repeat(block.is_in, np.where(block.is_in, 1 << halvings, 1))
        is_in, rows = densest(tried, counts, is_new)
        is_found = rows >= MOST_ROWS * n
        block = Block(tried, is_in, block.spent + share) if is_found else block._replace(spent=block.spent + share)
        if not is_found and finer == FIRST and before is None and rows >= UNSURE_ROWS * n:
            before = counts  # the same cells once more: a block that noise hid would leave rows in a few wide cells
        elif is_found or finer == MANY:
            finer, before = (MANY if is_found else FEW), None
        else:
            break
    return block


def densest(tiling: Tiling, counts: Floats, is_new: Bools) -> tuple[Bools, float]:
    """Two neighbours along every axis, among new cells, with the largest sum of counts; and that sum."""
    middles, halves = tiling.boxes(is_new)
    places = np.floor(middles / (2 * halves)).astype(np.int64)  # new cells are of one size
    places -= places.min(axis=0)
    table = np.zeros(places.max(axis=0) + 1)
    table[tuple(places.T)] = counts[is_new]
    sides = np.minimum(2, table.shape)
    sums = sliding_window_view(table, tuple(sides)).sum(axis=tuple(range(-table.ndim, 0)))
    corner = np.unravel_index(int(np.argmax(sums)), sums.shape)
    is_in = np.zeros(len(is_new), dtype=bool)
    is_in[is_new] = ((places >= corner) & (places < corner + sides)).all(axis=1)
    return is_in, float(sums[corner])
