"""Compiled carving of cells, and descent through public ones. Arrays in, arrays out; no privacy logic.

Hand-written: no library divides points by a random order of centres.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BLOCK = 256  # columns whose distances are added up in cache


@njit(cache=True, nogil=True)
def regroup(members: Any, child: Any, starts: Any, stops: Any, counts: Any, begins: Any) -> int:
    """Sort the members of every cell by the number of their child, stable; how many children there are in all.

    counts: children of each cell. begins: where each child begins, cell by cell.
    """
    total = 0
    for c in range(starts.shape[0]):
        first, size = starts[c], stops[c] - starts[c]
        n_children = 0
        for i in range(first, first + size):
            n_children = max(n_children, child[i] + 1)
        place = np.zeros(n_children + 1, dtype=np.int64)
        for i in range(first, first + size):
            place[child[i] + 1] += 1
        for j in range(n_children):
            place[j + 1] += place[j]
            begins[total + j] = first + place[j]
        old = members[first : first + size].copy()
        for i in range(size):
            j = child[first + i]
            members[first + place[j]] = old[i]
            place[j] += 1
        counts[c] = n_children
        total += n_children
    return total


@njit(cache=True, nogil=True)
def carve_vectors(
    codes: Any, members: Any, starts: Any, stops: Any, limit: int, is_l1: bool, most: int, child: Any, far: Any
) -> None:
    """Carve every cell by balls: each centre is the first member left, and takes all within `limit` of it.

    limit: of the squared distance, or of the distance in L1. Distances are float32 sums, and integers where those cannot decide.
    After `most` centres the others go to the nearest one; far[first + child] is then a bound of how far they are, in terms of
    the limit, and 0 otherwise.
    """
    d = codes.shape[1]
    biggest = 0
    for c in range(starts.shape[0]):
        biggest = max(biggest, stops[c] - starts[c])
    columns = np.empty(d * biggest, dtype=np.float32)
    place = np.empty(biggest, dtype=np.int32)
    near, owner = np.empty(biggest, dtype=np.float32), np.empty(biggest, dtype=np.int32)
    scores = np.empty(BLOCK, dtype=np.float32)
    slack = (d + 16) * 2.0**-20  # of d additions, each operand rounded to 24 bits; codes count from the cell's first member
    low, high = np.float32(limit * (1 - slack) - 0.5), np.float32(limit * (1 + slack) + 0.5)
    for c in range(starts.shape[0]):
        first, size = starts[c], stops[c] - starts[c]
        for i in range(size):
            place[i], near[i] = i, np.inf
            for j in range(d):
                columns[j * size + i] = codes[members[first + i], j] - codes[members[first], j]
        head, width, left, opened = 0, size, size, 0
        is_capped = size > most
        while left > 0 and opened < most:
            while place[head] < 0:
                head += 1
            center = members[first + place[head]]
            taken = 0
            for b in range(head, width, BLOCK):
                n = min(BLOCK, width - b)
                _distances(columns, size, d, head, b, n, is_l1, scores)
                for i in range(n):
                    if scores[i] > high or place[b + i] < 0:
                        continue
                    if scores[i] < low or _distance(codes, center, members[first + place[b + i]], is_l1) <= limit:
                        child[first + place[b + i]] = opened
                        place[b + i] = -1
                        taken += 1
                if is_capped:
                    for i in range(n):
                        nearer = scores[i] < near[b + i]
                        near[b + i] = scores[i] if nearer else near[b + i]
                        owner[b + i] = opened if nearer else owner[b + i]
            far[first + opened] = 0
            left -= taken
            opened += 1
            if 4 * left < 3 * (width - head):
                width = _compact(columns, size, d, head, width, place, near, owner)
                head = 0
        for i in range(head, width if left else 0):
            if place[i] >= 0:
                at, j = first + place[i], owner[i]
                child[at] = j
                far[first + j] = max(far[first + j], near[i] * (1 + slack))


@njit(cache=True, nogil=True)
def _distances(columns: Any, stride: int, d: int, center: int, b: int, n: int, is_l1: bool, scores: Any) -> None:
    for i in range(n):
        scores[i] = 0
    for j in range(d):
        x = columns[j * stride + center]
        row = columns[j * stride + b : j * stride + b + n]
        if is_l1:
            for i in range(n):
                scores[i] += abs(row[i] - x)
        else:
            for i in range(n):
                scores[i] += (row[i] - x) * (row[i] - x)


@njit(cache=True, nogil=True)
def _distance(codes: Any, a: int, b: int, is_l1: bool) -> Any:
    """The squared distance, or the L1 distance, in integers."""
    total = np.int64(0)
    for j in range(codes.shape[1]):
        away = np.int64(codes[a, j]) - np.int64(codes[b, j])
        total += abs(away) if is_l1 else away * away
    return total


@njit(cache=True, nogil=True)
def _compact(columns: Any, stride: int, d: int, head: int, width: int, place: Any, near: Any, owner: Any) -> int:
    """Close the gaps that taken points left, keeping the order; how many columns are left."""
    w = 0
    for i in range(head, width):
        if place[i] >= 0:
            near[w], owner[w] = near[i], owner[i]
            w += 1
    for j in range(d):
        w = 0
        for i in range(head, width):
            if place[i] >= 0:
                columns[j * stride + w] = columns[j * stride + i]
                w += 1
    w = 0
    for i in range(head, width):
        if place[i] >= 0:
            place[w] = place[i]
            w += 1
    return w


@njit(cache=True, nogil=True)
def vector_medoids(codes: Any, members: Any, starts: Any, stops: Any, copies: Any, is_l1: bool, chosen: Any) -> None:
    """Of every cell the member with the least sum of distances to all members, each counted as often as it has copies."""
    for c in range(starts.shape[0]):
        least = np.int64(-1)
        for a in members[starts[c] : stops[c]]:
            total = np.int64(0)
            for b in members[starts[c] : stops[c]]:
                apart = _distance(codes, a, b, is_l1)
                total += copies[b] * (apart if is_l1 else np.int64(np.ceil(np.sqrt(apart))))
            if least < 0 or total < least:
                least, chosen[c] = total, a


@njit(cache=True, nogil=True)
def code_of(row: Any, half: Any, depth: Any, order: Any, place: Any) -> int:
    """The cell of a row: the bits of halvings in `order`, of which `depth` counts those of every axis. `place` is scratch."""
    for a in range(half.shape[0]):
        y = min(max(row[a], -half[a]), half[a])
        top = (1 << depth[a]) - 1
        # From the first halving on, at the top: so the bit of every later one is read by a shift of the whole.
        place[a] = min(((y + half[a]) << depth[a]) // (2 * half[a]), top) << (63 - depth[a])
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
