"""Few columns: noisy counts of one grid, every cell of it, and which of them rows may be in."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.methods.ground import Ground
from kveil.methods.tree.growth import boxes
from kveil.partition.midpoints import halving_order
from kveil.questions.cells import Stage
from kveil.questions.frame import Frame
from kveil.solve.evidence import shows_rows
from kveil.solve.histogram import Histogram

BLOCK, STANDS_OUT = 4, 3.0  # cells of a block: two halvings; deviations of its sum


def histogram(ground: Ground, frame: Frame, half: Floats, bits: int, share: float) -> tuple[Histogram, Floats]:
    """One grid of noisy counts, and the half-widths (d,) of its cells, in steps.

    All cells of `bits` halvings are counted, empty ones too; a row is in one. What is returned follows from noisy
    counts.
    """
    size = np.maximum(np.ceil(half), 1).astype(np.int64)
    order = halving_order(size, bits)
    stage = Stage(frame, size, order, np.zeros(1, dtype=np.int64), bits)
    ((counts, deviation),) = ground.desk.ask(stage, share)  # public, charged
    is_kept = shows_rows(counts, deviation, is_pure=ground.desk.kind == "pure", is_only=True)
    if not is_kept.any():
        is_kept[np.argmax(counts)] = True
    blocks = counts.reshape(-1, BLOCK).sum(axis=1)
    stand_out = np.repeat(blocks > max(STANDS_OUT * deviation * BLOCK**0.5, 0.5), BLOCK)
    shown = np.flatnonzero(is_kept | stand_out)
    middles, halves = boxes(shown, order, size)
    width = float(np.sqrt((halves[0] ** 2).sum() / 3))
    return Histogram(middles, counts[shown], is_kept[shown], deviation, width), halves[0]
