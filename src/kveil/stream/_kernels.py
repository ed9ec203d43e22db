"""Compiled loops of a synopsis: split cells where rows spread most, pool them, and absorb rows. Arrays in, arrays out."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numba import njit

GROUP = 32  # rows that go down a tree together


@njit(cache=True, nogil=True)
def find_split(points: Any, counts: Any, order: Any, start: int, stop: int, means: Any, spreads: Any) -> Any:
    """How far points order[start:stop] spread, the axis along which they do most, and their mean there."""
    n_axes, first = points.shape[1], order[start]
    weight = 0.0
    means[:] = 0.0
    spreads[:] = 0.0
    for i in range(start, stop):  # relative to the first point, so that equal points have exactly that mean
        r = order[i]
        weight += counts[r]
        for j in range(n_axes):
            means[j] += counts[r] * (points[r, j] - points[first, j])
    for j in range(n_axes):
        means[j] = points[first, j] + means[j] / weight
    for i in range(start, stop):
        r = order[i]
        for j in range(n_axes):
            away = points[r, j] - means[j]
            spreads[j] += counts[r] * away * away
    axis = 0
    total = 0.0
    for j in range(n_axes):
        total += spreads[j]
        if spreads[j] > spreads[axis]:
            axis = j
    return total, axis, means[axis]


@njit(cache=True, nogil=True)
def split(points: Any, counts: Any, most: int, axes: Any, cuts: Any, below: Any, cells: Any, owner: Any) -> Any:
    """A tree with at most `most` leaves: again and again the leaf that spreads most is cut at its mean, along its widest axis.

    Node m sends a point to below[m] if its coordinate axes[m] is less than cuts[m], else to below[m] + 1. A leaf sends all points
    to itself, and cells[m] is its number. `owner`: the leaf of every point. Returns the numbers of nodes and of leaves.
    """
    n_points, n_axes = points.shape
    order = np.arange(n_points)
    starts, stops = np.zeros(2 * most, dtype=np.int64), np.zeros(2 * most, dtype=np.int64)
    means, spreads = np.empty(n_axes), np.empty(n_axes)
    stops[0] = n_points
    axes[0], cuts[0], below[0] = 0, np.inf, 0
    spread, axis, cut = find_split(points, counts, order, 0, n_points, means, spreads)
    heap = [(-spread, 0, axis, cut)]
    n_nodes, n_leaves = 1, 1
    while n_leaves < most and len(heap) > 0 and heap[0][0] < 0.0:
        _, node, axis, cut = heapq.heappop(heap)
        i, last = starts[node], stops[node] - 1
        while i <= last:
            if points[order[i], axis] < cut:
                i += 1
            else:
                order[i], order[last] = order[last], order[i]
                last -= 1
        if i == starts[node] or i == stops[node]:
            continue  # the points differ by less than rounding: the leaf stays whole
        axes[node], cuts[node], below[node] = axis, cut, n_nodes
        starts[n_nodes], stops[n_nodes] = starts[node], i
        starts[n_nodes + 1], stops[n_nodes + 1] = i, stops[node]
        for child in (n_nodes, n_nodes + 1):
            axes[child], cuts[child], below[child] = 0, np.inf, child
            spread, axis, cut = find_split(points, counts, order, starts[child], stops[child], means, spreads)
            heapq.heappush(heap, (-spread, child, axis, cut))
        n_nodes += 2
        n_leaves += 1
    leaf = 0
    for node in range(n_nodes):
        cells[node] = -1
        if below[node] == node:
            cells[node] = leaf
            for i in range(starts[node], stops[node]):
                owner[order[i]] = leaf
            leaf += 1
    return n_nodes, n_leaves


@njit(cache=True, nogil=True)
def pool(points: Any, counts: Any, scatters: Any, owner: Any, means: Any, totals: Any, pooled: Any) -> None:
    """Mean, count and scatter of the points of every owner; a scatter is the squared distances of rows to the mean, added up."""
    n_points, n_axes = points.shape
    first = np.full(means.shape[0], -1, dtype=np.int64)
    means[:] = 0.0
    totals[:] = 0
    pooled[:] = 0.0
    for i in range(n_points):
        c = owner[i]
        if first[c] < 0:
            first[c] = i
        totals[c] += counts[i]
        for j in range(n_axes):
            means[c, j] += counts[i] * (points[i, j] - points[first[c], j])
    for c in range(means.shape[0]):
        for j in range(n_axes):
            means[c, j] = points[first[c], j] + means[c, j] / totals[c]
    for i in range(n_points):
        c = owner[i]
        square = 0.0
        for j in range(n_axes):
            away = points[i, j] - means[c, j]
            square += away * away
        pooled[c] += scatters[i] + counts[i] * square


@njit(cache=True, nogil=True)
def descend(rows: Any, start: int, stop: int, axes: Any, cuts: Any, below: Any, nodes: Any) -> None:
    """The leaf of each of a few rows, all of them a level at a time: the processor then need not wait for one to go on with
    the next, which makes it nearly twice as quick."""
    n = stop - start
    nodes[:n] = 0
    is_moving = True
    while is_moving:
        is_moving = False
        for r in range(n):
            node = nodes[r]
            nodes[r] = below[node] + (rows[start + r, axes[node]] >= cuts[node])
            is_moving |= nodes[r] != node


@njit(cache=True, nogil=True)
def absorb(
    rows: Any, start: int, axes: Any, cuts: Any, below: Any, cells: Any, near: float, points: Any, counts: Any, scatters: Any,
    held: int,
) -> Any:  # fmt: skip
    """Rows from `start` on: into the mean of their leaf if that is near, else one more point. Until there is no place left.

    Returns the first row that was not taken and how many points are held.
    """
    n_rows, n_axes = rows.shape
    nodes = np.zeros(GROUP, dtype=np.int64)
    for i in range(start, n_rows):
        square, cell = np.inf, -1
        if axes.shape[0] > 0:
            place = (i - start) % GROUP
            if place == 0:
                descend(rows, i, min(i + GROUP, n_rows), axes, cuts, below, nodes)
            cell = cells[nodes[place]]
            square = 0.0
            for j in range(n_axes):
                away = rows[i, j] - points[cell, j]
                square += away * away
        if square <= near:
            counts[cell] += 1
            share = 1.0 / counts[cell]
            for j in range(n_axes):
                points[cell, j] += (rows[i, j] - points[cell, j]) * share
            scatters[cell] += square * (1.0 - share)
        else:
            if held == points.shape[0]:
                return i, held
            for j in range(n_axes):
                points[held, j] = rows[i, j]
            counts[held] = 1
            scatters[held] = 0.0
            held += 1
    return n_rows, held
