"""Compiled scans over a block of distances. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def closest(products: Any, squares: Any, owner: Any) -> None:
    """For each column of `products` (centres x rows), the centre with the least |c|^2 - 2 x.c; ties to the lowest index."""
    n_centers, n_rows = products.shape
    best = np.empty(n_rows, dtype=np.float64)
    for i in range(n_rows):
        best[i] = squares[0] - 2.0 * products[0, i]
        owner[i] = 0
    for c in range(1, n_centers):
        for i in range(n_rows):  # row-wise inner loop over contiguous memory, branch-free, so that it vectorises
            score = squares[c] - 2.0 * products[c, i]
            owner[i] = c if score < best[i] else owner[i]
            best[i] = score if score < best[i] else best[i]


@njit(cache=True, nogil=True)
def two_closest(products: Any, squares: Any, owner: Any, first: Any, second: Any) -> None:
    """As `closest`, with the least and second least score of every row."""
    n_centers, n_rows = products.shape
    for i in range(n_rows):
        first[i] = squares[0] - 2.0 * products[0, i]
        second[i] = np.inf
        owner[i] = 0
    for c in range(1, n_centers):
        for i in range(n_rows):
            score = squares[c] - 2.0 * products[c, i]
            nearer = score < first[i]
            second[i] = first[i] if nearer else min(second[i], score)
            owner[i] = c if nearer else owner[i]
            first[i] = score if nearer else first[i]


@njit(cache=True, nogil=True)
def guess_closest(rows: Any, twice: Any, squares: Any, most: float, owner: Any, is_sure: Any) -> None:
    """For each row the centre c with the least |c|^2 - 2 x.c in float32, and whether it is the nearest one for sure.

    `twice` holds 2c and `squares` |c|^2, both in float32; `most` bounds all |c|. Proof: each of the d products, and |c|^2, passes
    at most d + 6 roundings, of the row, of the centre, of the product and of sums in any grouping. So a score is off by at most
    (d + 8) 2**-24 (|c|^2 + 2 |x| |c|), which `off` exceeds by far. A lead of more than twice that is a lead.
    """
    n_axes, size = twice.shape[1], 256  # rows that stay in the innermost cache
    across, scores = np.empty((n_axes, size), dtype=np.float32), np.empty((3, size), dtype=np.float32)
    for start in range(0, rows.shape[0], size):
        part = rows[start : start + size]
        n_rows = part.shape[0]
        for a in range(n_axes):
            for i in range(n_rows):
                across[a, i] = part[i, a]
        score, best, second = scores[0, :n_rows], scores[1, :n_rows], scores[2, :n_rows]
        scan_scores(across, twice, squares, score, best, second, owner[start : start + size])
        for i in range(n_rows):
            square = 0.0
            for a in range(n_axes):
                square += float(part[i, a]) * float(part[i, a])
            off = (n_axes + 4) * 2.0**-23 * most * (most + 2 * math.sqrt(square))
            is_sure[start + i] = float(second[i]) - float(best[i]) > 2 * off


@njit(cache=True, nogil=True, fastmath={"contract"})
def scan_scores(across: Any, twice: Any, squares: Any, score: Any, best: Any, second: Any, owner: Any) -> None:
    """The least and second least score of every column of `across`, and whose the least is. Loops run along the columns, which
    are rows of a table, without a branch; they take four axes at a time, so that scores are read and written less often."""
    for i in range(owner.size):
        best[i], second[i], owner[i] = np.inf, np.inf, 0
    for c in range(squares.size):
        square, a = squares[c], 0
        for i in range(owner.size):
            score[i] = square
        while a + 4 <= twice.shape[1]:
            w, x, y, z = twice[c, a], twice[c, a + 1], twice[c, a + 2], twice[c, a + 3]
            for i in range(owner.size):
                score[i] -= w * across[a, i] + x * across[a + 1, i] + y * across[a + 2, i] + z * across[a + 3, i]
            a += 4
        while a < twice.shape[1]:
            w = twice[c, a]
            for i in range(owner.size):
                score[i] -= w * across[a, i]
            a += 1
        for i in range(owner.size):
            found, ahead = score[i], best[i]
            later = found if found > ahead else ahead
            second[i] = later if later < second[i] else second[i]
            owner[i] = c if found < ahead else owner[i]
            best[i] = found if found < ahead else ahead
