"""Compiled Lloyd steps on small tables of public points. Arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def lloyd(points: Any, weights: Any, centers: Any, steps: int, still: float) -> float:
    """At most `steps` Lloyd steps on `centers`, in place, until they move by less than `still`, squared; returns the cost.

    A centre without points moves to the one that costs most. Inner loops run along the centres, so that they vectorise.
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
            return float(costs.sum())
        for c in range(k):
            far = np.argmax(costs)
            if mass[c] == 0.0 and costs[far] > 0.0:
                mass[owner[far]] -= weights[far]
                sums[owner[far]] -= weights[far] * points[far]
                mass[c], sums[c], costs[far] = weights[far], weights[far] * points[far], 0.0
        moved = 0.0
        for c in range(k):
            if mass[c] > 0.0:
                for j in range(n_columns):
                    away = sums[c, j] / mass[c] - centers[c, j]
                    moved += away * away
                    centers[c, j] += away
        step = steps if moved <= still else step + 1
