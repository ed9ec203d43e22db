"""Compiled codes of the rows of a block. Each is computed from its own row alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def is_finite(row: Any) -> bool:
    """0 times NaN or infinity is NaN, and a sum with it is, in any order: several are added at a time."""
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * 0.0
    return bool(total == 0.0)


@njit(cache=True, nogil=True)
def box_codes(rows: Any, center: Any, scale: Any, top: int, codes: Any) -> None:
    """Codes of a box: clipped to -top .. top, then rounded to even. What passes the largest float is clipped as infinity is."""
    highest = float(top)
    for i in range(rows.shape[0]):
        if is_finite(rows[i]):
            for j in range(rows.shape[1]):
                codes[i, j] = np.rint(min(max((rows[i, j] - center[j]) * scale[j], -highest), highest))
        else:
            for j in range(rows.shape[1]):
                codes[i, j] = 0


@njit(cache=True, nogil=True)
def shrinkages(rows: Any, center: Any, radius: float, largest: float, shares: Any) -> None:
    """radius / max(norm, radius) of every row about the centre; 1 for a row that is not finite.

    Divided by the largest entry of the row first, so that squares cannot overflow; added in the order of the columns, as floats
    round here: so it is a function of that row alone.
    """
    away = np.empty(rows.shape[1])
    for i in range(rows.shape[0]):
        peak, total = 0.0, 0.0
        if is_finite(rows[i]):
            for j in range(rows.shape[1]):
                away[j] = min(max(rows[i, j], -largest), largest) - center[j]
                peak = max(peak, abs(away[j]))
        if peak > 0.0:
            for j in range(rows.shape[1]):
                part = away[j] / peak
                total += part * part
        shares[i] = radius / max(peak * math.sqrt(total), radius)


@njit(cache=True, nogil=True)
def ball_codes(rows: Any, center: Any, scales: Any, largest: float, top: int, codes: Any) -> None:
    """Codes of a ball, of norm at most `top` whatever the scales: in integers the divisor exceeds the norm by at least 1, and
    |q| top // divisor only rounds towards 0."""
    row = np.empty(rows.shape[1], dtype=np.int64)
    for i in range(rows.shape[0]):
        scale, square = scales[i] if is_finite(rows[i]) else 0.0, 0
        for j in range(rows.shape[1]):
            row[j] = int((min(max(rows[i, j], -largest), largest) - center[j]) * scale) if scale > 0.0 else 0
            square += row[j] * row[j]
        divisor = int(math.sqrt(float(square))) + 2
        for j in range(rows.shape[1]):
            inside = abs(row[j]) * top // divisor if square > top * top else abs(row[j])
            codes[i, j] = inside if row[j] >= 0 else -inside
