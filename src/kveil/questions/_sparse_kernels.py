"""Compiled sums over a block of CSR rows, whose columns ascend. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def keep_largest(values: Any, starts: Any, most: int) -> None:
    """Leave the `most` largest magnitudes of every row, ties to the lowest column, and set the others to 0."""
    for i in range(starts.shape[0] - 1):
        first, last = starts[i], starts[i + 1]
        if last - first <= most:
            continue
        ranked = np.sort(np.abs(values[first:last]))
        least = ranked[ranked.shape[0] - most]
        ties = most - np.sum(ranked > least)
        for j in range(first, last):
            size = abs(values[j])
            if size == least and ties > 0:
                ties -= 1
            elif size <= least:
                values[j] = 0


@njit(cache=True, nogil=True)
def shrink_rows(values: Any, starts: Any, radius: int) -> None:
    """Make every row's norm at most `radius`, in integers, as `_kernels.shrink_row` does."""
    for i in range(starts.shape[0] - 1):
        square = 0
        for j in range(starts[i], starts[i + 1]):
            square += values[j] * values[j]
        if square > radius * radius:
            divisor = int(math.sqrt(float(square))) + 2
            for j in range(starts[i], starts[i + 1]):
                part = abs(values[j]) * radius // divisor
                values[j] = part if values[j] >= 0 else -part


@njit(cache=True, nogil=True)
def add_lengths(values: Any, starts: Any, edges: Any, counts: Any) -> None:
    """Count rows by squared norm, as `_kernels.add_lengths` does."""
    for i in range(starts.shape[0] - 1):
        square = 0
        for j in range(starts[i], starts[i + 1]):
            square += values[j] * values[j]
        b = 0
        while b < edges.shape[0] and square <= edges[b]:
            b += 1
        counts[b] += 1


@njit(cache=True, nogil=True)
def add_scaled(values: Any, columns: Any, starts: Any, owner: Any, radii: Any, top: int, counts: Any, sums: Any) -> None:
    """Add every row, clipped to its owner's radius and scaled so that the radius is `top`: `_kernels.add_residuals` of base 0."""
    for i in range(owner.shape[0]):
        c = owner[i]
        counts[c] += 1
        square = 0
        for j in range(starts[i], starts[i + 1]):
            square += values[j] * values[j]
        divisor = radii[c]
        if square > divisor * divisor:
            divisor = int(math.sqrt(float(square))) + 2
        for j in range(starts[i], starts[i + 1]):
            part = abs(values[j]) * top // divisor
            sums[c, columns[j]] += part if values[j] >= 0 else -part
