"""Compiled passes over rows of distances, for searches among the points of a universe. Arrays in, arrays out.

Distances are int32 steps, weights and sums int64: whatever the blocks and the order, sums are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

UNTRIED, FULL = np.int64(-(2**62)), np.int64(2**61)  # a bound that says nothing; the most that bounds may stand off


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
    bound: Any  # (n,) int64, see `may_pay`
    totals: Any  # (2,) int64, the cost as it is, and the drift of the bounds


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
    state.totals[0] = cost
    return cost


@njit(cache=True, nogil=True)
def may_pay(y: Any, state: Any) -> Any:
    """Whether a swap for point y may lower the cost, by what was found when it was last tried.

    Then the least cost with y in the place of a centre was g(y) = bound[y] - drift. Since then swaps brought in points b for
    centres a. With t_x(o) the loss of demand o at the centres without x, the cost with y for x is the sum of min(t_x(o), loss at
    y). A swap lowers t_x(o) by at most max(t_x(o) - loss at b, 0), whatever the metric; and by nothing if x is a, since then the
    centres without b are those that were without a. `note_swap` adds the largest sum of that over o to the drift.
    """
    return state.bound[y] - state.totals[1] < state.totals[0]


@njit(cache=True, nogil=True)
def note_swap(x: Any, gain: Any, change: Any, state: Any) -> None:
    """Let the bounds of all points stand off by what a swap for centre x can lower them; gain and change are its own."""
    most = np.int64(0)
    for i in range(change.size):
        if i != x:
            most = max(most, gain + state.removal[i] - change[i])
    state.totals[1] += most
    if state.totals[1] >= FULL:  # before sums could overflow
        state.bound[:], state.totals[1] = UNTRIED, 0


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
        y = candidates[j]
        if state.is_center[y] or not may_pay(y, state):
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
            note_swap(x, gain, change, state)
            swap(x, y, row, state)
            idle = 0
        else:
            state.bound[y] = state.totals[0] + change[x] - gain + state.totals[1]
    return idle


@njit(cache=True, nogil=True)
def try_all(rows: Any, places: Any, order: Any, state: Any) -> None:
    """The bounds of all points at once, from demand o's distances to them, rows[places[o]]; `order` is the demands by owner.

    The owner of a row is one centre, so its sums run along the row without a gather: a quarter of the time of trying points one
    by one. Four rows share each visit to the sums.
    """
    is_squared, shift = state.is_squared, state.shift
    gain, best = np.zeros(rows.shape[1], dtype=np.int64), np.full(rows.shape[1], 2**62)
    saved = np.empty(rows.shape[1], dtype=np.int64)
    start = 0
    for x in range(state.removal.size):
        saved[:] = 0
        stop = start
        while stop < order.size and state.owner[order[stop]] == x:
            stop += 1
        while start + 4 <= stop:
            a, b, c, d = order[start], order[start + 1], order[start + 2], order[start + 3]
            add_four(
                (rows[places[a]], rows[places[b]], rows[places[c]], rows[places[d]]),
                (terms(a, state), terms(b, state), terms(c, state), terms(d, state)), is_squared, shift, gain, saved,
            )  # fmt: skip
            start += 4
        while start < stop:
            add_one(rows[places[order[start]]], terms(order[start], state), is_squared, shift, gain, saved)
            start += 1
        for y in range(best.size):
            best[y] = min(best[y], state.removal[x] - saved[y])
    for y in range(best.size):
        state.bound[y] = state.totals[0] + best[y] - gain[y] + state.totals[1]


@njit(cache=True, nogil=True)
def terms(o: Any, state: Any) -> Any:
    """The weight of demand o and its losses at the nearest and the second nearest centre."""
    near, far = loss_at(state.first[o], state.is_squared, state.shift), loss_at(state.second[o], state.is_squared, state.shift)
    return state.weights[o], near, far


@njit(cache=True, nogil=True)
def add_one(row: Any, term: Any, is_squared: Any, shift: Any, gain: Any, saved: Any) -> None:
    """What a demand gains by each point beside its centre, and saves of the loss of that centre."""
    weight, near, far = term
    for y in range(gain.size):
        there = loss_at(row[y], is_squared, shift)
        gain[y] += weight * max(near - there, 0)
        saved[y] += weight * max(far - max(there, near), 0)


@njit(cache=True, nogil=True)
def add_four(rows: Any, four: Any, is_squared: Any, shift: Any, gain: Any, saved: Any) -> None:
    """`add_one` for four demands of one centre."""
    (row_a, row_b, row_c, row_d), (a, b, c, d) = rows, four
    (weight_a, near_a, far_a), (weight_b, near_b, far_b), (weight_c, near_c, far_c), (weight_d, near_d, far_d) = a, b, c, d
    for y in range(gain.size):
        at_a, at_b = loss_at(row_a[y], is_squared, shift), loss_at(row_b[y], is_squared, shift)
        at_c, at_d = loss_at(row_c[y], is_squared, shift), loss_at(row_d[y], is_squared, shift)
        gain[y] += (
            weight_a * max(near_a - at_a, 0) + weight_b * max(near_b - at_b, 0)
            + weight_c * max(near_c - at_c, 0) + weight_d * max(near_d - at_d, 0)
        )  # fmt: skip
        saved[y] += (
            weight_a * max(far_a - max(at_a, near_a), 0) + weight_b * max(far_b - max(at_b, near_b), 0)
            + weight_c * max(far_c - max(at_c, near_c), 0) + weight_d * max(far_d - max(at_d, near_d), 0)
        )  # fmt: skip


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
