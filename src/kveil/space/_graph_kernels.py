"""Compiled shortest-path searches on integer lengths. Arrays in, arrays out; everything here is public.

A graph is (indptr, heads, lengths): the arcs of vertex v are indptr[v] to indptr[v + 1], each edge is stored in both
directions. `cap` is the largest distance there is: whatever is farther, or not reachable, is at distance cap.
SciPy's searches run in floats, cannot stop at a limit that differs by vertex, and keep no second nearest source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def push(keys: Any, nodes: Any, size: int, key: int, node: int) -> int:
    """Add to a binary heap held in two arrays; the new size."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] <= key:
            break
        keys[place], nodes[place] = keys[above], nodes[above]
        place = above
    keys[place], nodes[place] = key, node
    return size + 1


@njit(cache=True, nogil=True)
def pop(keys: Any, nodes: Any, size: int) -> int:
    """Drop the least entry, which the caller has read at place 0; the new size."""
    size -= 1
    key, node, place = keys[size], nodes[size], 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[place], nodes[place] = keys[below], nodes[below]
        place = below
    keys[place], nodes[place] = key, node
    return size


@njit(cache=True, nogil=True)
def sweep(indptr: Any, heads: Any, lengths: Any, site: int, cap: int, wanted: Any, apart: Any) -> None:
    """Distances of `site` into `apart`, exact where wanted[u] > 0; stops once all of those are settled."""
    keys, nodes = np.empty(heads.shape[0] + 1, np.int64), np.empty(heads.shape[0] + 1, np.int32)
    apart[:] = cap
    missing = np.sum(wanted > 0)
    if cap == 0:
        return
    apart[site] = 0
    size = push(keys, nodes, 0, 0, site)
    while size > 0 and missing > 0:
        d, v = keys[0], nodes[0]
        size = pop(keys, nodes, size)
        if d > apart[v]:
            continue
        if wanted[v] > 0:
            missing -= 1
        for arc in range(indptr[v], indptr[v + 1]):
            u, x = heads[arc], d + lengths[arc]
            if x < apart[u]:
                apart[u] = x
                size = push(keys, nodes, size, x, u)


@njit(cache=True, nogil=True)
def claim(indptr: Any, heads: Any, lengths: Any, site: int, label: int, cap: int, best: Any, owner: Any) -> None:
    """Points strictly nearer to `site` than `best` go to `label`; those that nobody holds yet go to it at distance cap.

    The search enters u only if that improves best[u]. Nothing is missed: where an earlier site is as near to v, it is as
    near to everything behind v.
    """
    if best[site] > 0:
        keys, nodes = np.empty(heads.shape[0] + 1, np.int64), np.empty(heads.shape[0] + 1, np.int32)
        best[site], owner[site] = 0, label
        size = push(keys, nodes, 0, 0, site)
        while size > 0:
            d, v = keys[0], nodes[0]
            size = pop(keys, nodes, size)
            if d > best[v]:
                continue
            for arc in range(indptr[v], indptr[v + 1]):
                u, x = heads[arc], d + lengths[arc]
                if x < best[u]:
                    best[u], owner[u] = x, label
                    size = push(keys, nodes, size, x, u)
    farthest = best[0]
    for u in range(best.shape[0]):  # vectorises, where the next loop would not; only the first claim has more to do
        farthest = max(farthest, best[u])
    if farthest > cap:
        for u in range(best.shape[0]):
            if best[u] > cap:
                best[u], owner[u] = cap, label


@njit(cache=True, nogil=True)
def two_nearest(
    indptr: Any, heads: Any, lengths: Any, sites: Any, cap: int, owner: Any, first: Any, second: Any, runner: Any
) -> None:
    """Nearest and second nearest site of every vertex, as positions in `sites`; ties to the lowest position.

    One search from all sites, in the order of (distance, position). A vertex keeps its two least labels of different sites
    and passes both on: a third one is beaten by both of them in everything behind that vertex as well.
    """
    n_sites = sites.shape[0]
    room = 2 * heads.shape[0] + n_sites  # a vertex is left at most once for each of its two labels
    keys, nodes = np.empty(room, np.int64), np.empty(room, np.int32)
    owner[:], runner[:] = n_sites, n_sites
    first[:], second[:] = cap, cap
    size = 0
    for c in range(n_sites if cap > 0 else 0):
        if offer(sites[c], 0, c, owner, first, second, runner):
            size = push(keys, nodes, size, c, sites[c])
    while size > 0:
        key, v = keys[0], nodes[0]
        size = pop(keys, nodes, size)
        d, c = key >> 32, key & 0xFFFFFFFF
        if not ((owner[v] == c and first[v] == d) or (runner[v] == c and second[v] == d)):
            continue
        for arc in range(indptr[v], indptr[v + 1]):
            u, x = heads[arc], d + lengths[arc]
            if x < cap and offer(u, x, c, owner, first, second, runner):
                size = push(keys, nodes, size, (x << 32) | c, u)
    for u in range(owner.shape[0]):  # sites that were not met tie at distance cap: the lowest positions
        if owner[u] == n_sites:
            owner[u] = 0
        if runner[u] == n_sites:
            runner[u] = 0 if owner[u] > 0 or n_sites == 1 else 1


@njit(cache=True, nogil=True)
def offer(u: int, x: int, c: int, owner: Any, first: Any, second: Any, runner: Any) -> bool:
    """Site c is x away from u: true if that is among the two least (distance, position) of different sites so far."""
    if x < first[u] or (x == first[u] and c < owner[u]):
        if c != owner[u]:
            second[u], runner[u] = first[u], owner[u]
        first[u], owner[u] = x, c
        return True
    if c != owner[u] and (x < second[u] or (x == second[u] and c < runner[u])):
        second[u], runner[u] = x, c
        return True
    return False


@njit(cache=True, nogil=True)
def reach(indptr: Any, heads: Any, lengths: Any, site: int, limit: Any, tentative: Any, found: Any) -> int:
    """The vertices u with distance of `site` < limit[u] into `found`, in order of distance; how many there are.

    Needs |limit[u] - limit[v]| <= distance(u, v), which every distance to a set of sites (capped or not) satisfies: then all
    vertices on the way to a u within its limit are within theirs, and the search may stay among them.
    `tentative` must be 2**31 - 1 everywhere. It holds the distances of what was found: set it back before the next search.
    """
    if limit[site] <= 0:
        return 0
    keys, nodes = np.empty(heads.shape[0] + 1, np.int64), np.empty(heads.shape[0] + 1, np.int32)
    tentative[site] = 0
    size, count = push(keys, nodes, 0, 0, site), 0
    while size > 0:
        d, v = keys[0], nodes[0]
        size = pop(keys, nodes, size)
        if d > tentative[v]:
            continue
        found[count] = v
        count += 1
        for arc in range(indptr[v], indptr[v + 1]):
            u, x = heads[arc], d + lengths[arc]
            if x < limit[u] and x < tentative[u]:
                tentative[u] = x
                size = push(keys, nodes, size, x, u)
    return count
