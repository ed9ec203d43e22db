"""Compiled descent through public cells. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def code_of(row: Any, half: Any, depth: Any, order: Any, place: Any) -> int:
    """The cell of a row: the bits of halvings in `order`, of which `depth` counts those of every axis. `place` is scratch."""
    for a in range(half.shape[0]):
        y = min(max(row[a], -half[a]), half[a])
        top, whole = (1 << depth[a]) - 1, 2 * half[a]
        # Below 2**53 floats divide exactly (`questions._kernels.add_residuals`), and quicker. No shift is by less than 0.
        if depth[a] < 53 and whole >> (53 - depth[a]) == 0:
            part = int(float((y + half[a]) << depth[a]) / float(whole))
        else:
            part = ((y + half[a]) << depth[a]) // whole
        # From the first halving on, at the top: so the bit of every later one is read by a shift of the whole.
        place[a] = min(part, top) << (63 - depth[a])
    code = 0
    for b in range(order.shape[0]):
        a = order[b]
        code = (code << 1) | ((place[a] >> 62) & 1)
        place[a] <<= 1
    return code


@njit(cache=True, nogil=True)
def find_cells(rows: Any, half: Any, depth: Any, order: Any, codes: Any) -> None:
    """The cell of every row."""
    place = np.empty(half.shape[0], dtype=np.int64)
    for i in range(rows.shape[0]):
        codes[i] = code_of(rows[i], half, depth, order, place)


@njit(cache=True, nogil=True)
def find_ranges(codes: Any, first: Any, starts: Any, shift: int, places: Any) -> None:
    """The last place in `first`, which ascends from 0, whose entry is not above each code. `starts` has that place for every
    multiple of 2**shift, and one more entry: of very many cells few are looked at."""
    for i in range(codes.shape[0]):
        head = codes[i] >> shift
        low, high = starts[head], starts[head + 1]
        while low < high:
            middle = (low + high + 1) // 2
            if first[middle] > codes[i]:
                high = middle - 1
            else:
                low = middle
        places[i] = low
