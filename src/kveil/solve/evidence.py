"""Which released counts show rows, and which may be noise alone."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Bools, Floats, Integers

BLOCK = 8  # cells: three halvings


def shows_rows(counts: Floats, deviation: float, *, is_pure: bool, is_only: bool) -> Bools:
    """Which cells are kept: those with more deviations than the noise of so many cells passes by chance.

    Where there is but one stage, a few empty cells still pass, and one far from all rows would draw a centre to it; so a
    cell that is not beyond all doubt is kept only if the others of its block show rows, too. Released values alone.
    """
    if is_only and len(counts) >= BLOCK:
        sums = np.repeat(counts.reshape(-1, BLOCK).sum(axis=1), BLOCK)
        return stands_out(counts, sums, np.full(len(counts), BLOCK), deviation, is_pure=is_pure)
    return np.asarray(counts >= max(thresholds(len(counts), is_pure=is_pure, is_only=is_only)[0] * deviation, 0.5))


def stands_out(counts: Floats, sums: Floats, sizes: Floats | Integers, deviation: float, *, is_pure: bool) -> Bools:
    """Which cells of one stage are kept, with the sum over the block of each and the number of its cells."""
    least, beyond_doubt = thresholds(len(counts), is_pure=is_pure, is_only=True)
    is_likely = (sizes > 1) & (sums - counts >= 1.5 * deviation * np.sqrt(np.asarray(sizes) - 1))
    return np.asarray((counts >= max(least * deviation, 0.5)) & ((counts >= beyond_doubt * deviation) | is_likely))


def least_deviations(n_cells: int, *, is_pure: bool) -> float:
    """Deviations that a cell needs to be looked into once more: a few empty ones pass, and cost little."""
    log = float(np.log(n_cells))
    return max(2.0, 0.5 * log if is_pure else 0.9 * (2 * log) ** 0.5)


def by_chance(least: float, *, is_pure: bool) -> float:
    """What the count of an empty cell is expected to add to the sum of those that pass `least`, in deviations."""
    if is_pure:
        return float(0.5 * np.exp(-(2**0.5) * least) * (least + 0.5**0.5))
    return float(np.exp(-(least**2) / 2) / np.sqrt(2 * np.pi))


def sure_sum(sizes: Floats | Integers, log: float, *, is_pure: bool) -> Floats:
    """Deviations of one count that the noise of `sizes` cells, added up, passes with probability exp(-log) at most.

    One Laplace count: exactly. More: Chernoff's bound, with the moment generating function (1 - x**2)**-1 of noise of scale 1.
    """
    if not is_pure:
        return np.asarray(np.sqrt(2 * np.asarray(sizes, dtype=np.float64) * log))
    which = np.asarray(sizes, dtype=np.int64)  # few sizes of very many blocks: each is worked out once
    scales, kinds = np.empty(1 + which.max(initial=0)), np.flatnonzero(np.bincount(which))
    x = np.linspace(0.02, 0.98, 49)[:, None]
    scales[kinds] = np.where(kinds <= 1, log - np.log(2), ((log - kinds * np.log1p(-x * x)) / x).min(axis=0))
    return np.asarray(scales[which] / 2**0.5)


def thresholds(n_cells: int, *, is_pure: bool, is_only: bool) -> tuple[float, float]:
    """Deviations that a cell needs at least, and those that are beyond all doubt: where they are needed, both hold."""
    log = float(np.log(n_cells))
    factor = (0.6 if is_only else 0.8) * log / 2**0.5 if is_pure else 0.9 * (2 * log) ** 0.5
    sure = (log + 0.9) / 2**0.5 if is_pure else (2 * (log + 0.9)) ** 0.5  # 0.2 empty cells in all
    return max(2.0, factor), sure
