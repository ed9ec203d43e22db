"""How many pieces released counts can carry. The clamps are each caller's own: they were measured for each trust model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kveil.arrays import Floats, Integers

SHORT = 0.1  # squared noise in a mean, of the variance of rows: what is shorter, steps about centres mend
CELLS_PER_CENTER = 200  # of a grid over few columns; with fewer it is made finer
FEWEST_BITS, MOST_BITS, FINEST = 4, {1: 16, 2: 16, 3: 17}, 20  # halvings, by columns; the last without noise or for many centres


def wanted_cells(signal: float, d: int) -> float:
    """Cells of a grid over d columns for `signal` = rows times epsilon: (signal / 10)^(2 d / (d + 2)).

    Finer cells place rows better and drown in noise sooner; this balances the two.
    Reference: Su, Cao, Li, Bertino, Jin (2016), EUGkM.
    """
    return float((signal / 10) ** (2 * d / (d + 2)))


def grid_bits(signal: float, d: int, k: int, *, is_noisy: bool = True) -> int:
    """How often the region of an adaptive grid over d columns is halved for k centres; `signal` as in `wanted_cells`.

    Noise limits the cells from above, too: a mean over a cluster has the noise of all its cells, and past some hundreds each of
    them places its rows no better.
    """
    bits, per_center = np.log2(wanted_cells(signal, d)), np.log2(CELLS_PER_CENTER * k)
    finer = np.clip(per_center - bits, 0, 1)  # few cells per centre are worth twice as many
    most = np.clip(np.ceil(per_center), MOST_BITS[d], FINEST) if is_noisy else FINEST
    return int(np.clip(round(bits + finer), FEWEST_BITS, most))


def wanted_groups(share: float, rows: float, length: float, noise: float, least: int, most: int) -> int:
    """Into how many groups, between `least` and `most`, rows may be divided so that noise moves the mean of an average one by at
    most `share` of `length`; all of them without noise."""
    return most if noise == 0 else int(np.clip(np.floor(share * rows * length / noise), least, most))


def telling_columns(most: Floats, total: float, noise: Callable[[int], float]) -> Integers:
    """Columns, ascending, without those that hold less than the noise that each of them adds to all.

    most: bounds on the variances of the columns, of which rows have this `total`. noise(m): squared length of the noise in a mean
    of m columns, for rows whose squared length is 1. Columns that hold the part v of the variance show v / (1 + noise(m)) of it,
    and the most is kept; v is what is left when the others hold as much as they can. All columns are kept where noise is short:
    later steps make it shorter yet, and what a column left out hides is lost for good.

    >>> telling_columns(np.array([0.1, 9.0, 0.2, 9.0]), 10.0, lambda m: 0.1 * m * (m + 1)).tolist()
    [1, 3]
    """
    order = np.argsort(-most, kind="stable")
    left_out = np.append(np.cumsum(most[order][:0:-1])[::-1], 0.0)
    noises = np.array([noise(m) for m in range(1, len(order) + 1)])
    if noises[-1] < SHORT:
        return np.arange(len(most))
    return np.sort(order[: 1 + int(np.argmax((total - left_out) / (1 + noises)))])
