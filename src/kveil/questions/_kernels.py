"""Compiled sums over a block of rows. Arrays in, arrays out; no privacy logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def add_ones(owner: Any, counts: Any) -> None:
    """Count every row at its owner. In place: where owners are many more than rows, a table per block takes longer than they."""
    for i in range(owner.shape[0]):
        counts[owner[i]] += 1


@njit(cache=True, nogil=True)
def add_rows(codes: Any, owner: Any, counts: Any, sums: Any) -> None:
    """Add every row to the count and the sum of its owner."""
    n_rows, n_columns = codes.shape
    for i in range(n_rows):
        c = owner[i]
        counts[c] += 1
        for j in range(n_columns):
            sums[c, j] += codes[i, j]


@njit(cache=True, nogil=True)
def add_sparse_rows(values: Any, columns: Any, starts: Any, owner: Any, counts: Any, sums: Any) -> None:
    """The same for the rows of a CSR matrix."""
    for i in range(owner.shape[0]):
        c = owner[i]
        counts[c] += 1
        for j in range(starts[i], starts[i + 1]):
            sums[c, columns[j]] += values[j]


@njit(cache=True, nogil=True)
def find_blocks(codes: Any, key: Any, n_blocks: int, block: Any) -> None:
    """The block of every row: a keyed hash of its codes (SplitMix64 over the columns), brought down to 0 .. n_blocks-1."""
    for i in range(codes.shape[0]):
        h = key[0]
        for j in range(codes.shape[1]):
            h = (h ^ np.uint64(codes[i, j])) + key[1]
            h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            h ^= h >> np.uint64(31)
        block[i] = np.int64(((h >> np.uint64(32)) * np.uint64(n_blocks)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def add_to_blocks(codes: Any, measured: Any, block: Any, centers: Any, counts: Any, sums: Any) -> None:
    """Add every row to the nearest centre of its own block; ties to the lowest index. All in integers."""
    n_centers, n_columns = centers.shape[1:]
    for i in range(codes.shape[0]):
        b, best, least = block[i], 0, np.iinfo(np.int64).max
        for c in range(n_centers):
            square = 0
            for j in range(n_columns):
                away = measured[i, j] - centers[b, c, j]
                square += away * away
            if square < least:
                best, least = c, square
        counts[b, best] += 1
        for j in range(n_columns):
            sums[b, best, j] += codes[i, j]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def squared_norm(row: Any) -> Any:
    """|row|^2 of whole numbers, in any order: a sum that is exact has no order, so several are added at a time."""
    square = row[0] * 0
    for j in range(row.shape[0]):
        square += row[j] * row[j]
    return square


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def squared_distance(row: Any, base: Any) -> Any:
    """|row - base|^2, as above."""
    square = row[0] * 0
    for j in range(row.shape[0]):
        square += (row[j] - base[j]) * (row[j] - base[j])
    return square


@njit(cache=True, nogil=True)
def shrink_row(row: Any, radius: int) -> None:
    """Make a row's norm at most `radius`, in integers: the divisor exceeds the norm by at least 1, and rounding is towards 0. The
    squared norm must stay below 2**63, and below 2**53 in float64: rows of a grid do, and projections, in integers, are cut
    before."""
    square = squared_norm(row)
    if square > radius * radius:
        divisor = int(math.sqrt(float(square))) + 2
        for j in range(row.shape[0]):
            part = abs(int(row[j])) * radius // divisor
            row[j] = part if row[j] >= 0 else -part


@njit(cache=True, nogil=True)
def centre_rows(rows: Any, middle: Any, radius: int, centred: Any) -> None:
    """Rows about a middle, their norm at most `radius`, as `shrink_row` makes it.

    By float division, which is exact as in `add_residuals`. A coordinate is below 2**25.5 (1 + 1/sqrt(d)) + 4 (`Frame`), or 2**26
    in one column, and a radius that is passed below 2**26.5 + 4: so their product is below 2**53. A quotient is at most the
    radius. Rounding moves it by 2**-27 at most, and it is 1/divisor or more off the next whole number if it is not whole.
    """
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            centred[i, j] = rows[i, j] - middle[j]
        square = squared_norm(centred[i])
        if square > float(radius) * radius:
            divisor = float(int(math.sqrt(square)) + 2)
            for j in range(rows.shape[1]):
                centred[i, j] = np.trunc(centred[i, j] * radius / divisor)


@njit(cache=True, nogil=True)
def cut_components(products: Any, bits: int, radius: int, rows: Any) -> None:
    """Products, whole numbers in float64, without their last bits, as rows of norm at most `radius`. Coordinates are cut at twice
    that before they are squared: in floats, which tell of nearly all rows that they are short, and else in integers."""
    most, scale, short = 2.0 * radius, 0.5**bits, (1 - 1e-9) * float(radius) * radius
    for i in range(products.shape[0]):
        square = 0.0
        for j in range(products.shape[1]):
            part = min(max(np.floor(products[i, j] * scale), -most), most)
            square += part * part
            rows[i, j] = int(part)
        if square > short:
            shrink_row(rows[i], radius)


@njit(cache=True, nogil=True)
def add_squares(rows: Any, scale: int, top: int, sums: Any) -> None:
    """Add the square of every coordinate, after bringing `scale` down to `top`, rounding towards 0: by float division, which is
    exact as in `add_residuals`."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            part = int(abs(rows[i, j]) * top / scale)
            sums[j] += part * part


@njit(cache=True, nogil=True)
def find_squares(rows: Any, bases: Any, owner: Any, squares: Any) -> None:
    """The squared distance of every row to its owner's base."""
    for i in range(rows.shape[0]):
        squares[i] = squared_distance(rows[i], bases[owner[i]])


@njit(cache=True, nogil=True)
def correct(rows: Any, bases: Any, others: Any, between: Any, owner: Any, squares: Any) -> int:
    """Make guessed owners those of the nearest base, ties to the lowest index, and find the squared distances to them.

    By the triangle inequality a base that is more than twice as far from the guessed one as the row is cannot be as near to the
    row. `others` lists the bases around each one, `between` their squared distances to it, ascending. Squares are whole numbers
    up to 2**53, and four times one is exact too, so no base is left out that counts. Returns how many others were tried.
    """
    tried = 0
    for i in range(rows.shape[0]):
        guess = best = owner[i]
        least = squared_distance(rows[i], bases[best])
        most = 4.0 * least
        for j in range(others.shape[1]):  # by both indices: to cut out a row of each takes longer than all the rest
            if between[guess, j] > most:
                break
            tried += 1
            other = others[guess, j]
            square = squared_distance(rows[i], bases[other])
            if square < least or (square == least and other < best):
                best, least = other, square
        owner[i], squares[i] = best, least
    return tried


@njit(cache=True, nogil=True)
def add_lengths(squares: Any, owner: Any, edges: Any, counts: Any) -> None:
    """Count rows by owner and squared distance: bin b holds squares in (edges[b+1], edges[b]], edges descending; the last bin the
    rest."""
    for i in range(squares.shape[0]):
        b = 0
        for j in range(edges.shape[0]):  # all of them, so that it needs no guess of the processor
            b += squares[i] <= edges[j]
        counts[owner[i], b] += 1


@njit(cache=True, nogil=True)
def first_not_below(codes: Any, low: int, high: int, code: int) -> int:
    """The first place in codes[low:high], which ascend, whose code is at least `code`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def add_cells(codes: Any, deeper: int, places: Any, new_bits: int, counts: Any) -> None:
    """Count rows, of which the cells `deeper` halvings further down are given, in the children of kept cells; `places` has the
    place of every cell among those that are kept, or -1."""
    last = (1 << new_bits) - 1
    for i in range(codes.shape[0]):
        code = np.int64(codes[i]) >> deeper
        place = places[code >> new_bits]
        if place >= 0:
            counts[(place << new_bits) + (code & last)] += 1


@njit(cache=True, nogil=True)
def add_deviations(rows: Any, codes: Any, first: Any, last: Any, anchors: Any, counts: Any, sums: Any) -> None:
    """Add every row, relative to its cell's anchor, to that cell. Cells are disjoint ranges first..last of codes, ascending."""
    for i in range(rows.shape[0]):
        cell = first_not_below(first, 0, first.shape[0], codes[i] + 1) - 1
        if cell >= 0 and codes[i] <= last[cell]:
            counts[cell] += 1
            for j in range(rows.shape[1]):
                sums[cell, j] += rows[i, j] - anchors[cell, j]


@njit(cache=True, nogil=True)
def add_residuals(rows: Any, owner: Any, bases: Any, radii: Any, top: int, counts: Any, sums: Any) -> None:
    """Add every row, relative to its owner's base, clipped to the owner's radius, and scaled so that the radius is `top`.

    Rounded towards 0 by float division, in a third of the time and exact: away * top is below 2**46 (`Frame` keeps rows and
    bases below 2**28; top is 2**16), and a quotient that is not whole is 1/divisor or more off the next whole number, further
    than rounding reaches below 2**53.
    """
    for i in range(rows.shape[0]):
        c = owner[i]
        counts[c] += 1
        square = squared_distance(rows[i], bases[c])
        divisor = radii[c]
        if square > divisor * divisor:
            divisor = int(math.sqrt(float(square))) + 2
        for j in range(rows.shape[1]):
            sums[c, j] += int(float((rows[i, j] - bases[c, j]) * top) / divisor)


@njit(cache=True, nogil=True)
def find_cubes(rows: Any, low: Any, side: int, half: int, active: Any, ends: Any, codes: Any) -> None:
    """The child cube of every row: down from the root through active cubes, whose codes of level l are
    active[ends[l] : ends[l+1]]; -1 for a row that leaves them."""
    n_axes, depth = low.shape[0], ends.shape[0] - 1
    for i in range(rows.shape[0]):
        rank = 0
        for level in range(1, depth + 2):
            code = rank
            for a in range(n_axes):
                y = min(max(rows[i, a], -half), half)
                code = (code << 1) | ((((y - low[a]) << level) // side) & 1)
            if level > depth:
                break
            left = first_not_below(active, ends[level - 1], ends[level], code)
            if left == ends[level] or active[left] != code:
                code = -1
                break
            rank = left - ends[level - 1]
        codes[i] = code


@njit(cache=True, nogil=True)
def find_losses(row: Any, points: Any, is_squared: bool, scale: float, losses: Any) -> None:
    """floor(scale times the squared distance, or the distance) of a row to every point, `points` being (axes, points).

    Whole numbers below 2**53 in float64, so all but the root is exact, and a root is the same everywhere. The inner loops run
    along the points, so that they vectorise.
    """
    losses[:] = 0.0
    for a in range(points.shape[0]):
        for j in range(points.shape[1]):
            away = row[a] - points[a, j]
            losses[j] += away * away
    for j in range(points.shape[1]):
        losses[j] = np.floor((losses[j] if is_squared else math.sqrt(losses[j])) * scale)


@njit(cache=True, nogil=True)
def find_nearest(rows: Any, centers: Any, is_squared: bool, scale: float, owner: Any, first: Any, second: Any) -> None:
    """The nearest of the centres (axes, k) for every row, and its losses there and at the second nearest, or infinity."""
    losses = np.empty(centers.shape[1], dtype=np.float64)
    for i in range(rows.shape[0]):
        find_losses(rows[i], centers, is_squared, scale, losses)
        owner[i], first[i], second[i] = 0, losses[0], np.inf
        for c in range(1, losses.shape[0]):
            if losses[c] < first[i]:
                owner[i], first[i], second[i] = c, losses[c], first[i]
            elif losses[c] < second[i]:
                second[i] = losses[c]


@njit(cache=True, nogil=True)
def add_swaps(
    rows: Any, owner: Any, first: Any, second: Any, candidates: Any, is_squared: bool, scale: float, stays: Any, moves: Any
) -> None:
    """Add every row's loss with candidate y beside all centres (`stays`), and how much more it is without its own centre."""
    losses = np.empty(candidates.shape[1], dtype=np.float64)
    for i in range(rows.shape[0]):
        find_losses(rows[i], candidates, is_squared, scale, losses)
        more = moves[owner[i]]
        for y in range(losses.shape[0]):
            near = min(first[i], losses[y])
            stays[y] += near
            more[y] += min(second[i], losses[y]) - near


@njit(cache=True, nogil=True)
def add_pulls(rows: Any, owner: Any, bases: Any, smoothing: float, top: int, counts: Any, pulls: Any, weights: Any) -> None:
    """Add to every row's owner its pull (x - z)/q and its weight smoothing/q, q = sqrt(|x - z|^2 + smoothing^2), times `top`.

    One row after the other, in float64 without fused or reordered operations: a function of that row and its base alone.
    Whatever the rounding did, the clips in integers leave a pull no longer than `top` and a weight in 0 .. top.
    """
    n_columns = rows.shape[1]
    parts = np.empty(n_columns, dtype=np.int64)
    for i in range(rows.shape[0]):
        c = owner[i]
        square = 0
        for j in range(n_columns):
            away = rows[i, j] - bases[c, j]
            square += away * away
        q = math.sqrt(float(square) + smoothing * smoothing)
        length = 0
        for j in range(n_columns):
            parts[j] = int(float(rows[i, j] - bases[c, j]) * top / q)  # towards 0
            length += parts[j] * parts[j]
        if length > top * top:
            divisor = int(math.sqrt(float(length))) + 2
            for j in range(n_columns):
                part = abs(parts[j]) * top // divisor
                parts[j] = part if parts[j] >= 0 else -part
        counts[c] += 1
        weights[c] += min(max(int(smoothing * top / q), 0), top)
        for j in range(n_columns):
            pulls[c, j] += parts[j]


@njit(cache=True, nogil=True)
def add_place_costs(rows: Any, owner: Any, bases: Any, places: Any, radius: float, top: int, costs: Any) -> None:
    """Add to each place of a row's owner how much farther it is than the owner's base, times top / radius, within -top .. top."""
    for i in range(rows.shape[0]):
        c = owner[i]
        square = 0
        for j in range(rows.shape[1]):
            away = rows[i, j] - bases[c, j]
            square += away * away
        base = math.sqrt(float(square))
        for p in range(places.shape[1]):
            square = 0
            for j in range(rows.shape[1]):
                away = rows[i, j] - places[c, p, j]
                square += away * away
            costs[c, p] += min(max(int((math.sqrt(float(square)) - base) * top / radius), -top), top)
