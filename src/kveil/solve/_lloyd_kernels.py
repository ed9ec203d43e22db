"""Compiled Lloyd steps on small tables. Arrays in, arrays out; public data only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def lloyd(points: Any, weights: Any, centers: Any, steps: int, still: float) -> float:
    """At most `steps` Lloyd steps on `centers`, in place, until they move by less than `still`, squared; returns the cost.

    A centre without points moves to the one that costs most. Inner loops run along the centres, so that they vectorise; there are
    no arrays as terms, which take long to compile.
    """
    n_points, n_columns = points.shape
    k = centers.shape[0]
    across, sums = np.empty((n_columns, k)), np.empty((k, n_columns))
    mass, apart, costs, owner = np.empty(k), np.empty(k), np.empty(n_points), np.empty(n_points, dtype=np.int64)
    step = 0
    while True:
        mass[:] = 0.0
        sums[:] = 0.0
        for c in range(k):
            for j in range(n_columns):
                across[j, c] = centers[c, j]
        for i in range(n_points):
            apart[:] = 0.0
            for j in range(n_columns):
                for c in range(k):
                    away = points[i, j] - across[j, c]
                    apart[c] += away * away
            near = 0
            for c in range(1, k):
                if apart[c] < apart[near]:
                    near = c
            owner[i], costs[i] = near, weights[i] * apart[near]
            mass[near] += weights[i]
            for j in range(n_columns):
                sums[near, j] += weights[i] * points[i, j]
        if step == steps:  # one round more than steps, for the cost
            total = 0.0
            for i in range(n_points):
                total += costs[i]
            return total
        for c in range(k):
            if mass[c] == 0.0:
                far = 0
                for i in range(1, n_points):
                    far = i if costs[i] > costs[far] else far
                if costs[far] > 0.0:
                    mass[owner[far]] -= weights[far]
                    mass[c], costs[far] = weights[far], 0.0
                    for j in range(n_columns):
                        sums[owner[far], j] -= weights[far] * points[far, j]
                        sums[c, j] = weights[far] * points[far, j]
        moved = 0.0
        for c in range(k):
            if mass[c] > 0.0:
                for j in range(n_columns):
                    away = sums[c, j] / mass[c] - centers[c, j]
                    moved += away * away
                    centers[c, j] += away
        step = steps if moved <= still else step + 1
