"""Compiled sums of unit rows over a block of CSR rows. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def unit_row(values: Any, columns: Any, place: Any, most: int, is_signed: bool, top: int, codes: Any, places: Any) -> int:
    """A row in kept columns, made as long as `top` allows: its entries go to `codes`, where they belong to `places`. How many.

    With s the sum of squared codes and 2**b a factor that keeps s 4**b below 2**60, the divisor exceeds sqrt(s 4**b), so the norm
    of what comes out, rounded towards 0, is below `top`. The factor is there for rows of few and small codes, which would lose
    most of their length in rounding.
    """
    n = 0
    for j in range(values.shape[0]):
        to, value = place[columns[j]], np.int64(values[j])
        if to >= 0 and value != 0 and (is_signed or value > 0):
            codes[n], places[n] = value, to
            n += 1
    if 0 < most < n:
        n = _keep_largest(codes, places, n, most)
    square = np.int64(0)
    for j in range(n):
        square += codes[j] * codes[j]
    if square == 0:
        return 0
    length = 0
    while square >> length > 0:
        length += 1
    shift = (60 - length) // 2
    divisor = np.int64(math.sqrt(float(square << (2 * shift)))) + 2
    for j in range(n):
        part = (abs(codes[j]) << shift) * top // divisor
        codes[j] = part if codes[j] >= 0 else -part
    return n


@njit(cache=True, nogil=True)
def _keep_largest(codes: Any, places: Any, n: int, most: int) -> int:
    """Leave the `most` largest magnitudes, ties to the lowest place."""
    ranked = np.sort(np.abs(codes[:n]))
    least = ranked[n - most]
    ties = most - np.sum(ranked > least)
    last = np.sort(places[:n][np.abs(codes[:n]) == least])[ties - 1]
    kept = 0
    for j in range(n):
        size = abs(codes[j])
        if size > least or (size == least and places[j] <= last):
            codes[kept], places[kept] = codes[j], places[j]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def add_sizes(values: Any, columns: Any, starts: Any, place: Any, most: int, is_signed: bool, top: int, sums: Any) -> None:
    """Add the magnitudes of every unit row."""
    longest = np.max(np.diff(starts)) if starts.shape[0] > 1 else 0
    codes, places = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    for i in range(starts.shape[0] - 1):
        own = slice(starts[i], starts[i + 1])
        for j in range(unit_row(values[own], columns[own], place, most, is_signed, top, codes, places)):
            sums[places[j]] += abs(codes[j])


@njit(cache=True, nogil=True)
def add_directions(
    values: Any, columns: Any, starts: Any, place: Any, most: int, is_signed: bool, top: int, centers: Any, counts: Any, sums: Any
) -> None:
    """Add every unit row to the cell whose centre has the largest product with it, ties to the lowest cell. A row without an
    entry adds nothing. `centers` is (columns, cells), whole numbers in float64: products below 2**53 are exact."""
    longest = np.max(np.diff(starts)) if starts.shape[0] > 1 else 0
    codes, places = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    products = np.empty(centers.shape[1])
    for i in range(starts.shape[0] - 1):
        own = slice(starts[i], starts[i + 1])
        n = unit_row(values[own], columns[own], place, most, is_signed, top, codes, places)
        if n == 0:
            continue
        products[:] = 0.0
        for j in range(n):
            code, to = float(codes[j]), places[j]
            for c in range(products.shape[0]):
                products[c] += code * centers[to, c]
        owner = np.argmax(products)
        counts[owner] += 1
        for j in range(n):
            sums[owner, places[j]] += codes[j]
