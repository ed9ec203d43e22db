"""Compiled scans over integer distances. Arrays in, arrays out; everything here is public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def claim_row(row: Any, label: int, best: Any, owner: Any) -> None:
    """Points strictly nearer than `best` go to `label`."""
    for u in range(row.shape[0]):
        if row[u] < best[u]:
            best[u] = row[u]
            owner[u] = label


@njit(cache=True, nogil=True)
def two_nearest(block: Any, start: int, diameter: int, owner: Any, first: Any, second: Any, runner: Any) -> None:
    """Nearest and second nearest row of every column of `block` (centres x points), for points `start` onwards."""
    n_centers, n_points = block.shape
    for j in range(n_points):
        first[start + j] = block[0, j]
        second[start + j] = diameter
    for c in range(1, n_centers):
        for j in range(n_points):
            u, apart = start + j, block[c, j]
            if apart < first[u]:
                second[u], runner[u] = first[u], owner[u]
                first[u], owner[u] = apart, c
            elif c == 1 or apart < second[u]:
                second[u], runner[u] = apart, c


@njit(cache=True, nogil=True)
def ceil_roots(products: Any, row_squares: Any, column_squares: Any, out: Any, top: int, left: int) -> None:
    """ceil(sqrt(|a|^2 - 2 a.b + |b|^2)) into out[top:, left:]; all inputs are integers below 2**53 in float64.

    The float root of x may round down to an integer whose square is below x: one comparison mends it. It never rounds
    below the true floor, since that is a float itself.
    """
    for i in range(products.shape[0]):
        for j in range(products.shape[1]):
            square = row_squares[i] + column_squares[j] - 2.0 * products[i, j]
            root = np.floor(np.sqrt(square))
            out[top + i, left + j] = np.int32(root + (1.0 if root * root < square else 0.0))


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # sums of integers below 2**53: exact in any order
def ceil_row(codes: Any, site: Any, members: Any, out: Any) -> None:
    """Ceiled Euclidean distance of the code `site` to each of `members`."""
    for j in range(members.shape[0]):
        square = 0.0
        u = members[j]
        for c in range(codes.shape[1]):
            away = np.float64(codes[u, c] - site[c])
            square += away * away
        root = np.floor(np.sqrt(square))
        out[j] = np.int32(root + (1.0 if root * root < square else 0.0))


@njit(cache=True, nogil=True)
def city_rows(codes: Any, sources: Any, targets: Any, out: Any) -> None:
    """Sums of absolute differences of codes; the caller has made sure that they fit into int32."""
    for i in range(sources.shape[0]):
        a = sources[i]
        for j in range(targets.shape[0]):
            b = targets[j]
            apart = np.int32(0)
            for c in range(codes.shape[1]):
                apart += np.int32(abs(codes[a, c] - codes[b, c]))
            out[i, j] = apart


@njit(cache=True, nogil=True)
def nearer(products: Any, squares: Any, start: int, best: Any, owner: Any) -> None:
    """Where a code of `products` (codes x rows) is strictly nearer than `best`, as |c|^2 - 2 x.c, it takes the row."""
    for c in range(products.shape[0]):
        for i in range(products.shape[1]):
            score = squares[c] - 2.0 * products[c, i]
            owner[i] = start + c if score < best[i] else owner[i]
            best[i] = score if score < best[i] else best[i]


@njit(cache=True, nogil=True)
def city_nearer(codes: Any, rows: Any, start: int, best: Any, owner: Any) -> None:
    """Where a code is strictly nearer than `best` by the sum of absolute differences, it takes the row."""
    for i in range(rows.shape[0]):
        for c in range(codes.shape[0]):
            apart = np.int32(0)
            for j in range(codes.shape[1]):
                apart += np.int32(abs(codes[c, j] - rows[i, j]))
            if apart < best[i]:
                best[i], owner[i] = apart, start + c
