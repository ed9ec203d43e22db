"""Compiled searches that divide a sparse graph and find medoids in it. Arrays in, arrays out; all of it public.

A graph is (indptr, heads, lengths), as in space/_graph_kernels.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kveil.space._graph_kernels import pop, push

FAR = 2**31 - 1
EFFORT = 8


@njit(cache=True, nogil=True)
def least_elements(indptr: Any, heads: Any, lengths: Any, order: Any, radii: Any, rank: Any) -> None:
    """rank[l, u]: the first place in `order` whose vertex is within radii[l] of u. Radii fall and are below every cap.

    Sources are searched from in that order, and only where they are nearer than all before them: if s' came before s and is as
    near to v, it is as near to all behind v, so whatever s could still be first for is not there. A vertex is met about
    ln(n) times. A vertex that has all its ranks still takes part: others lie behind it.
    """
    n, n_levels = indptr.shape[0] - 1, radii.shape[0]
    best, tentative = np.full(n, FAR, dtype=np.int32), np.full(n, FAR, dtype=np.int32)
    done = np.zeros(n, dtype=np.int64)
    keys, nodes = np.empty(heads.shape[0] + 1, np.int64), np.empty(heads.shape[0] + 1, np.int32)
    touched = np.empty(n, dtype=np.int32)
    for place in range(order.shape[0]):
        tentative[order[place]], touched[0], n_touched = 0, order[place], 1
        size = push(keys, nodes, 0, 0, order[place])
        while size > 0:
            d, v = keys[0], nodes[0]
            size = pop(keys, nodes, size)
            if d > tentative[v] or d >= best[v]:
                continue
            best[v] = d  # now that it is settled: what is pushed may still become nearer
            while done[v] < n_levels and d <= radii[done[v]]:
                rank[done[v], v] = place
                done[v] += 1
            for arc in range(indptr[v], indptr[v + 1]):
                u, x = heads[arc], d + lengths[arc]
                if x <= radii[0] and x < best[u] and x < tentative[u]:
                    if tentative[u] == FAR:
                        touched[n_touched] = u
                        n_touched += 1
                    tentative[u] = x
                    size = push(keys, nodes, size, x, u)
        for i in range(n_touched):
            tentative[touched[i]] = FAR


@njit(cache=True, nogil=True)
def number_children(rank: Any, members: Any, starts: Any, stops: Any, child: Any) -> None:
    """Members of a cell whose centre has the same rank are one child; children are numbered by rank."""
    for c in range(starts.shape[0]):
        ranks = np.sort(rank[members[starts[c] : stops[c]]])
        n_children = 1
        for i in range(1, ranks.shape[0]):
            if ranks[i] != ranks[n_children - 1]:
                ranks[n_children] = ranks[i]
                n_children += 1
        for i in range(starts[c], stops[c]):
            child[i] = np.searchsorted(ranks[:n_children], rank[members[i]])


@njit(cache=True, nogil=True)
def graph_medoids(
    indptr: Any,
    heads: Any,
    lengths: Any,
    members: Any,
    starts: Any,
    stops: Any,
    radii: Any,
    anchors: Any,
    copies: Any,
    chosen: Any,
) -> None:
    """Of every cell the member with the least sum of distances to anchors[c], members of it too; -1 ends a row of anchors.

    One search an anchor, which ends when all members are settled, or EFFORT vertices a member: in a graph that grows quickly
    a cell may be small and wide. What was not settled counts as wide as it may be, twice the radius.
    """
    n = indptr.shape[0] - 1
    tentative, cell = np.full(n, FAR, dtype=np.int32), np.full(n, -1, dtype=np.int64)
    total = np.zeros(n, dtype=np.int64)
    keys, nodes = np.empty(heads.shape[0] + 1, np.int64), np.empty(heads.shape[0] + 1, np.int32)
    touched = np.empty(n, dtype=np.int32)
    for c in range(starts.shape[0]):
        size_of_cell = stops[c] - starts[c]
        for v in members[starts[c] : stops[c]]:
            cell[v] = c
        wide = np.int64(2 * radii[c])
        for site in anchors[c]:
            if site < 0:
                break
            tentative[site], touched[0], n_touched = 0, site, 1
            size, missing, effort = push(keys, nodes, 0, 0, site), size_of_cell, EFFORT * size_of_cell
            while size > 0 and missing > 0 and effort > 0:
                d, v = keys[0], nodes[0]
                size = pop(keys, nodes, size)
                if d > tentative[v]:
                    continue
                effort -= 1
                if cell[v] == c:
                    missing -= 1
                for arc in range(indptr[v], indptr[v + 1]):
                    u, x = heads[arc], d + lengths[arc]
                    if x < wide and x < tentative[u]:
                        if tentative[u] == FAR:
                            touched[n_touched] = u
                            n_touched += 1
                        tentative[u] = x
                        size = push(keys, nodes, size, x, u)
            for v in members[starts[c] : stops[c]]:
                total[v] += copies[site] * min(tentative[v], wide)
            for i in range(n_touched):
                tentative[touched[i]] = FAR
        best = members[starts[c]]
        for v in members[starts[c] : stops[c]]:
            if total[v] < total[best]:
                best = v
        chosen[c] = best
