"""Compiled passes over rows of distances, for searches among the points of a universe. Arrays in, arrays out.

Distances are int32 steps, weights and sums int64: whatever the blocks and the order, sums are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit


class State(NamedTuple):
    """k centres and what a search needs to know of the m demands; kept up to date swap by swap."""

    weights: Any  # (m,) int64
    is_squared: Any  # the loss, see kveil.solve.loss
    shift: Any
    centers: Any  # (k,) int64
    is_center: Any  # (n,) bool
    diameter: Any
    apart: Any  # (m, k) int32, distances of the demands to the centres
    owner: Any  # (m,) int32, position of the nearest centre
    runner: Any  # (m,) int32, of the second nearest
    first: Any  # (m,) int32, how far they are
    second: Any
    removal: Any  # (k,) int64, what removing each centre would cost


@njit(cache=True, nogil=True)
def loss_at(distance: Any, is_squared: Any, shift: Any) -> Any:
    steps = np.int64(distance)
    return (steps * steps if is_squared else steps) >> shift


@njit(cache=True, nogil=True)
def find_two_nearest(apart: Any, diameter: Any, owner: Any, runner: Any, first: Any, second: Any) -> None:
    """From distances (m, k) of m points to k centres: the nearest and second nearest centre (ties to the lowest) and how far
    they are. With one centre the second is as far as a point can be."""
    for o in range(apart.shape[0]):
        scan(apart[o], diameter, o, owner, runner, first, second)


@njit(cache=True, nogil=True)
def scan(apart: Any, diameter: Any, o: Any, owner: Any, runner: Any, first: Any, second: Any) -> None:
    """The two nearest of all centres, for point o."""
    one, two, nearest, next_one = np.int64(apart[0]), np.int64(diameter) + 1, 0, 0
    for i in range(1, apart.size):
        if apart[i] < one:
            two, next_one = one, nearest
            one, nearest = np.int64(apart[i]), i
        elif apart[i] < two:
            two, next_one = np.int64(apart[i]), i
    first[o], second[o], owner[o], runner[o] = one, min(two, diameter), nearest, next_one


@njit(cache=True, nogil=True)
def take_stock(state: Any) -> Any:
    """Fill in what removing each centre would cost, its points going to their second nearest. Returns the cost as it is."""
    cost = np.int64(0)
    state.removal[:] = 0
    for o in range(state.weights.size):
        near = loss_at(state.first[o], state.is_squared, state.shift)
        cost += state.weights[o] * near
        state.removal[state.owner[o]] += state.weights[o] * (loss_at(state.second[o], state.is_squared, state.shift) - near)
    return cost


@njit(cache=True, nogil=True)
def swap_eagerly(table: Any, picks: Any, candidates: Any, idle: Any, patience: Any, state: Any) -> Any:
    """Try candidates in turn, each against all centres at once, and swap as soon as the cost falls.

    Candidate j has distances table[picks[j]] to the demands. Stops early after `patience` candidates in a row without a swap,
    `idle` of them before this call. Returns how many there are at the end.

    Only demands nearer to the candidate than to their second centre matter, few if there are many centres. They are gathered
    without a branch, which the processor would guess wrong too often.
    """
    weights, owner, first, second, removal = state.weights, state.owner, state.first, state.second, state.removal
    change, matter = np.empty(removal.size, dtype=np.int64), np.empty(weights.size + 1, dtype=np.int64)
    for j in range(picks.size):
        if idle >= patience:
            break
        idle += 1
        if state.is_center[candidates[j]]:
            continue
        row = table[picks[j]]
        n_matter = 0
        for o in range(weights.size):
            matter[n_matter] = o
            n_matter += row[o] < second[o]
        gain = np.int64(0)
        change[:] = removal
        for p in range(n_matter):
            o = matter[p]
            there, near = loss_at(row[o], state.is_squared, state.shift), loss_at(first[o], state.is_squared, state.shift)
            gain += weights[o] * max(near - there, 0)
            change[owner[o]] -= weights[o] * (loss_at(second[o], state.is_squared, state.shift) - max(there, near))
        x = np.argmin(change)
        if change[x] < gain:
            swap(x, candidates[j], row, state)
            idle = 0
    return idle


@njit(cache=True, nogil=True)
def swap(x: Any, y: Any, row: Any, state: Any) -> None:
    """Put point y, whose distances are `row`, in the place of centre x."""
    owner, runner, first, second = state.owner, state.runner, state.first, state.second
    state.is_center[state.centers[x]], state.is_center[y] = False, True
    state.centers[x] = y
    for o in range(row.size):
        state.apart[o, x] = row[o]
        is_near = row[o] <= second[o]
        if owner[o] == x and is_near:
            first[o] = row[o]
        elif owner[o] == x or (runner[o] == x and not is_near):
            scan(state.apart[o], state.diameter, o, owner, runner, first, second)
        elif row[o] < first[o]:
            first[o], second[o], owner[o], runner[o] = row[o], first[o], x, owner[o]
        elif row[o] < second[o]:
            second[o], runner[o] = row[o], x
    take_stock(state)


@njit(cache=True, nogil=True)
def add_swaps(rows: Any, weights: Any, near: Any, far: Any, owner: Any, loss: Any, stays: Any, moves: Any) -> None:
    """Add a block of demand to the costs of all swaps: rows (demands, candidates), stays (candidates,), moves (k, candidates).

    A demand o whose centre goes pays the lesser of `far`, its loss at the second nearest centre, and its loss at candidate y; any
    other demand the lesser of `near` and that. `stays` holds the latter for all demands, `moves` the difference for those whose
    centre goes. `loss` is (is_squared, shift). Sums stop at 2**62 - 1, and so must every weight times a loss.
    """
    is_squared, shift = loss
    most = np.int64(2**62 - 1)
    for o in range(rows.shape[0]):
        one, two, weight, gone = near[o], far[o], weights[o], moves[owner[o]]
        for y in range(rows.shape[1]):
            there = loss_at(rows[o, y], is_squared, shift)
            low = min(one, there)
            stays[y] = min(stays[y] + weight * low, most)
            gone[y] = min(gone[y] + weight * (min(two, there) - low), most)
