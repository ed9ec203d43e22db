"""Compiled eager search on the arcs of a graph: bounded searches from candidates, and labels mended around every swap.

A graph is (indptr, heads, lengths), as in `kveil.space`. The state is that of `kveil.solve._kernels` with a demand at every
vertex, of weight 0 where there is none; a runner of -1 says that no second centre is nearer than the diameter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from kveil.solve._kernels import loss_at, may_pay, note_swap, take_stock
from kveil.space._graph_kernels import pop, push

FAR = np.int32(2**31 - 1)


class Room(NamedTuple):
    """Space to work in, made once: a heap, tentative distances (FAR between searches), and the vertices of a search."""

    keys: Any  # (arcs + n + 1,) int64
    nodes: Any  # the same, int32
    tentative: Any  # (n,) int32
    found: Any  # (n,) int32


@njit(cache=True, nogil=True)
def swap_eagerly(graph: Any, candidates: Any, idle: Any, patience: Any, state: Any, room: Any) -> Any:
    """As `kveil.solve._kernels.swap_eagerly`, without a row of distances.

    Only demands nearer to the candidate than to their second centre matter. The distance to the second centre changes from
    vertex to vertex by no more than the arc between them, so if o is nearer to y than to its second, all vertices on the way are
    too: a search from y that enters nothing else finds all that matters, some 2 n / k vertices.
    """
    change = np.empty(state.removal.size, dtype=np.int64)
    reach = farthest(state)
    for j in range(candidates.size):
        if idle >= patience:
            break
        idle += 1
        y = candidates[j]
        if state.is_center[y] or not may_pay(y, state):
            continue
        gain = np.int64(0)
        change[:] = state.removal
        count = explore(graph, y, reach, state.second, room)
        for p in range(count):
            o = room.found[p]
            if state.weights[o]:
                there = loss_at(room.tentative[o], state.is_squared, state.shift)
                near = loss_at(state.first[o], state.is_squared, state.shift)
                far = loss_at(state.second[o], state.is_squared, state.shift)
                gain += state.weights[o] * max(near - there, 0)
                change[state.owner[o]] -= state.weights[o] * (far - max(there, near))
            room.tentative[o] = FAR
        x = np.argmin(change)
        if change[x] < gain:
            note_swap(x, gain, change, state)
            swap(graph, x, y, state, room)
            reach = farthest(state)
            idle = 0
        else:
            state.bound[y] = state.totals[0] + change[x] - gain + state.totals[1]
    return idle


@njit(cache=True, nogil=True)
def farthest(state: Any) -> Any:
    """No demand has its second centre farther away."""
    most = np.int32(0)
    for o in range(state.weights.size):
        if state.weights[o]:
            most = max(most, state.second[o])
    return most


@njit(cache=True, nogil=True)
def explore(graph: Any, site: Any, reach: Any, limit: Any, room: Any) -> Any:
    """Vertices u nearer to `site` than limit[u] and `reach` into room.found, by distance, kept in room.tentative. How many."""
    indptr, heads, lengths = graph
    tentative, count, size = room.tentative, 0, 0
    if min(limit[site], reach) > 0:
        tentative[site] = 0
        size = push(room.keys, room.nodes, 0, 0, site)
    while size > 0:
        d, v = room.keys[0], room.nodes[0]
        size = pop(room.keys, room.nodes, size)
        if d > tentative[v]:
            continue
        room.found[count] = v
        count += 1
        for arc in range(indptr[v], indptr[v + 1]):
            u, x = heads[arc], d + lengths[arc]
            if x < limit[u] and x < reach and x < tentative[u]:
                tentative[u] = x
                size = push(room.keys, room.nodes, size, x, u)
    return count


@njit(cache=True, nogil=True)
def swap(graph: Any, x: Any, y: Any, state: Any, room: Any) -> None:
    """Put vertex y in the place of centre x. Only vertices that have x as first or second, or y is near to, are looked at."""
    owner, runner, first, second = state.owner, state.runner, state.first, state.second
    state.is_center[state.centers[x]], state.is_center[y] = False, True
    state.centers[x] = y
    forget(graph, x, state, room)
    for p in range(explore(graph, y, FAR, second, room)):
        u = room.found[p]
        d, room.tentative[u] = room.tentative[u], FAR
        if d < first[u]:
            second[u], runner[u] = first[u], owner[u] if owner[u] != x else -1
            first[u], owner[u] = d, x
        else:
            second[u], runner[u] = d, x
    take_stock(state)


@njit(cache=True, nogil=True)
def forget(graph: Any, x: Any, state: Any, room: Any) -> None:
    """Take centre x out of all labels. Where it was first, the second moves up; a new second is searched for around there.

    A second centre of v comes by a neighbour's first or second: if u is next on the way to v and has two centres no farther than
    c, both are no farther from v either, and one of them is not the first of v. A vertex that no centre is left for keeps the
    label x, at the diameter.
    """
    indptr, heads, lengths = graph
    owner, runner, first, second, lost = state.owner, state.runner, state.first, state.second, room.found
    n_lost = 0
    for v in range(owner.size):
        if owner[v] == x or runner[v] == x:
            if owner[v] == x:
                first[v] = second[v]
                if runner[v] >= 0:
                    owner[v] = runner[v]
            second[v], runner[v] = state.diameter, -1
            lost[n_lost] = v
            n_lost += 1
    for i in range(state.centers.size):  # a centre may be nowhere first or second, if two others are in its place
        if i != x:
            offer(state.centers[i], 0, i, state)
    size = 0
    for p in range(n_lost):
        v = lost[p]
        for arc in range(indptr[v], indptr[v + 1]):
            u, length = heads[arc], lengths[arc]
            offer(v, first[u] + length, owner[u], state)
            if runner[u] >= 0:
                offer(v, second[u] + length, runner[u], state)
        if runner[v] >= 0:
            size = push(room.keys, room.nodes, size, second[v], v)
    while size > 0:
        d, v = room.keys[0], room.nodes[0]
        size = pop(room.keys, room.nodes, size)
        if d > second[v]:
            continue
        for arc in range(indptr[v], indptr[v + 1]):
            u = heads[arc]
            if offer(u, d + lengths[arc], runner[v], state):
                size = push(room.keys, room.nodes, size, second[u], u)


@njit(cache=True, nogil=True)
def offer(v: Any, distance: Any, center: Any, state: Any) -> Any:
    """Let a centre that is not the first of v be its second, if it is nearer than who is. Whether it is."""
    if center == state.owner[v] or distance >= state.second[v]:
        return False
    state.second[v], state.runner[v] = distance, center
    return True
