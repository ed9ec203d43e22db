"""How many pieces released counts can carry. The clamps are each caller's own: they were measured for each trust model."""

from __future__ import annotations

import numpy as np


def wanted_cells(signal: float, d: int) -> float:
    """Cells of a grid over d columns for `signal` = rows times epsilon: (signal / 10)^(2 d / (d + 2)).

    Finer cells place rows better and drown in noise sooner; this balances the two.
    Reference: Su, Cao, Li, Bertino, Jin (2016), EUGkM.
    """
    return float((signal / 10) ** (2 * d / (d + 2)))


def wanted_groups(share: float, rows: float, length: float, noise: float, least: int, most: int) -> int:
    """Into how many groups, between `least` and `most`, rows may be divided so that noise moves the mean of an average one by at
    most `share` of `length`; all of them without noise."""
    return most if noise == 0 else int(np.clip(np.floor(share * rows * length / noise), least, most))
