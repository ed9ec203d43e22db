"""Compiled walks over a tree given by the parent of every node, parents before children. Arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def prefix_minima(parent: Any, order: Any, k: int) -> Any:
    """Which nodes are the lowest ones of the shortest prefix of `order` that has `k` lowest ones; all of it if none has.

    The marked set is closed upwards, so the way up from v meets at most one unmarked node of the prefix, and v replaces it:
    the number of lowest nodes never falls.
    """
    marked = np.zeros(parent.shape[0], dtype=np.bool_)
    in_prefix = np.zeros(parent.shape[0], dtype=np.bool_)
    lowest = 0
    for v in order:
        in_prefix[v] = True
        if marked[v]:  # a node below was taken before
            continue
        lowest += 1
        a = parent[v]
        while a >= 0 and not marked[a]:
            marked[a] = True
            lowest -= in_prefix[a]
            a = parent[a]
        if lowest == k:
            break
    return in_prefix & ~marked


@njit(cache=True, nogil=True)
def descend(first_child: Any, n_children: Any, counts: Any, nodes: Any) -> Any:
    """The leaf below each node, by the child with the largest count, ties to the first."""
    leaves = np.empty(nodes.shape[0], dtype=np.int64)
    for i in range(nodes.shape[0]):
        v = nodes[i]
        while n_children[v]:
            best = first_child[v]
            for c in range(first_child[v] + 1, first_child[v] + n_children[v]):
                if counts[c] > counts[best]:
                    best = c
            v = best
        leaves[i] = v
    return leaves


@njit(cache=True, nogil=True)
def settle(first_child: Any, n_children: Any, spread: Any, may_be_negative: bool, counts: Any) -> None:
    """Top-down, in place: children become the nearest counts, in units of `spread`, that add up to their parent.

    Those are counts - shift spread, or 0 where that is negative; the shift is found by sorting, as in a projection onto a
    simplex, where all spreads are alike.
    """
    for v in range(first_child.shape[0]):  # parents come before children
        if not n_children[v]:
            continue
        first, last = first_child[v], first_child[v] + n_children[v]
        if counts[v] <= 0 and not may_be_negative:
            counts[first:last] = 0.0
            continue
        order = first + np.argsort(-counts[first:last] / spread[first:last])
        excess, width, shift = -counts[v], 0.0, 0.0
        for c in order:
            excess += counts[c]
            width += spread[c]
            if may_be_negative or counts[c] > excess / width * spread[c]:
                shift = excess / width
            else:
                break
        for c in range(first, last):
            moved = counts[c] - shift * spread[c]
            counts[c] = moved if may_be_negative else max(0.0, moved)
