"""How far apart points can be, from public ranges alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kveil.errors import InvalidValue


def diameter(low: ArrayLike, high: ArrayLike, *, norm: int = 2) -> float:
    """How far two points may be apart if every column lies in its public range: the diagonal of the box.

    norm: 2 for Euclidean distances, 1 for Manhattan.

    >>> diameter([0.0, 0.0], [3.0, 4.0])
    5.0
    """
    lows, highs = np.atleast_1d(np.asarray(low, dtype=np.float64)), np.atleast_1d(np.asarray(high, dtype=np.float64))
    if lows.shape != highs.shape or lows.ndim != 1 or not (np.isfinite(lows) & np.isfinite(highs) & (lows <= highs)).all():
        raise InvalidValue("low and high must be finite, one number a column each, and low <= high.")
    if norm not in (1, 2):
        raise InvalidValue("norm must be 2 (Euclidean) or 1 (Manhattan).")
    return float(np.linalg.norm(highs - lows, ord=norm))
