"""Compiled scans over a block of distances. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

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
