"""Compiled sums over a block of rows. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def add_rows(codes: Any, owner: Any, counts: Any, sums: Any) -> None:
    """Add every row to the count and the sum of its owner."""
    n_rows, n_columns = codes.shape
    for i in range(n_rows):
        c = owner[i]
        counts[c] += 1
        for j in range(n_columns):
            sums[c, j] += codes[i, j]


@njit(cache=True, nogil=True)
def add_sparse_rows(values: Any, columns: Any, starts: Any, owner: Any, counts: Any, sums: Any) -> None:
    """The same for the rows of a CSR matrix."""
    for i in range(owner.shape[0]):
        c = owner[i]
        counts[c] += 1
        for j in range(starts[i], starts[i + 1]):
            sums[c, columns[j]] += values[j]
