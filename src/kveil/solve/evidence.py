"""Which released counts show rows, and which may be noise alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats

BLOCK = 8  # cells: three halvings


def shows_rows(counts: Floats, deviation: float, *, is_pure: bool, is_only: bool) -> NDArray[np.bool_]:
    """Which cells are kept: those with more deviations than the noise of so many cells passes by chance.

    Where there is but one stage, a few empty cells still pass, and one far from all rows would draw a centre to it; so a
    cell that is not beyond all doubt is kept only if the others of its block show rows, too. Released values alone.
    """
    least, beyond_doubt = thresholds(len(counts), is_pure=is_pure, is_only=is_only)
    is_kept = np.asarray(counts >= max(least * deviation, 0.5))
    if not is_only or len(counts) < BLOCK:
        return is_kept
    others = np.repeat(counts.reshape(-1, BLOCK).sum(axis=1), BLOCK) - counts
    return np.asarray(is_kept & ((counts >= beyond_doubt * deviation) | (others >= 1.5 * deviation * (BLOCK - 1) ** 0.5)))


def thresholds(n_cells: int, *, is_pure: bool, is_only: bool) -> tuple[float, float]:
    """Deviations that a cell needs at least, and those that are beyond all doubt: where they are needed, both hold."""
    log = float(np.log(n_cells))
    factor = (0.6 if is_only else 0.8) * log / 2**0.5 if is_pure else 0.9 * (2 * log) ** 0.5
    sure = (log + 0.9) / 2**0.5 if is_pure else (2 * (log + 0.9)) ** 0.5  # 0.2 empty cells in all
    return max(2.0, factor), sure
