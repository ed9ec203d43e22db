"""Tables in [-1, 1]^d and neighbours that hurt: rows at corners, rows alone in their cell, no numbers, duplicates, no rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

N_ALONE = 5


class Pairs(NamedTuple):
    """A table and some neighbours of it."""

    table: Any
    neighbours: list[Any]


def odd(d: int) -> Floats:
    """Rows that a neighbour may have more: two corners, far outside, no numbers, the middle, nearly the middle."""
    rows = [np.ones(d), -np.ones(d), np.full(d, 1e308), np.full(d, np.nan), np.zeros(d), np.full(d, -5e-324)]
    rows[3][1:] = np.inf
    return np.array(rows)


def mixed(d: int, seed: int = 0) -> Floats:
    """Rows alone where no other is, first; then three clusters, one of them of equal rows."""
    rng = np.random.default_rng([d, seed])
    alone = np.array([np.ones(d), np.where(np.arange(d) % 2, 0.9, -0.9), np.full(d, 0.07), np.full(d, -0.97), np.full(d, np.nan)])
    places = rng.choice([-0.7, -0.2, 0.5], size=(3, d)) + 0.1 * rng.uniform(-1, 1, size=(3, d))
    around = places[rng.integers(2, size=28)] + 0.04 * rng.standard_normal((28, d))
    return np.vstack([alone, around, np.tile(places[2], (7, 1))])


def rows_moved(d: int, relation: str) -> Iterator[Pairs]:
    """Neighbours under a relation."""
    return replaced(d) if relation == "replace-one" else added_and_removed(d)


def added_and_removed(d: int) -> Iterator[Pairs]:
    """One row more, one row less, in another order; and hardly any rows at all."""
    table, rows = mixed(d), odd(d)
    fewer = [np.delete(table, i, axis=0) for i in (0, 1, N_ALONE - 1, len(table) - 1)]
    more = [np.vstack([table, row]) for row in rows[1:4]]
    yield Pairs(table, [shuffled(other) for other in fewer + more])
    few = table[:N_ALONE]
    yield Pairs(few, [np.delete(few, i, axis=0) for i in range(N_ALONE)])
    yield Pairs(rows[:1], [rows[:0], np.vstack([rows[:1], rows[3]])])
    yield Pairs(rows[:0], [rows[i : i + 1] for i in (1, 3)])


def replaced(d: int) -> Iterator[Pairs]:
    """One row for another one."""
    table, rows = mixed(d), odd(d)
    swaps = [(0, rows[1]), (1, rows[0]), (2, rows[3]), (3, rows[2]), (4, rows[5]), (len(table) - 1, rows[1]), (9, rows[4])]
    yield Pairs(table, [shuffled(np.vstack([np.delete(table, i, axis=0), row])) for i, row in swaps])
    yield Pairs(table[:N_ALONE], [np.vstack([table[1:N_ALONE], row]) for row in rows[1:4]])
    yield Pairs(rows[:1], [rows[1:2], rows[3:4]])


def stairs(d: int, relation: str, steps: Iterable[int] = (0, 1, 2, 4)) -> Iterator[Pairs]:
    """So many equal rows, far from the others, and one more or less: somewhere on the way a threshold lies between."""
    others = mixed(d)[N_ALONE:]
    flights = {n: np.vstack([others, np.full((n, d), 0.93)]) for step in steps for n in (step, step + 1)}
    for n in steps:
        yield Pairs(flights[n], [flights[n + 1]])
        yield Pairs(flights[n + 1], [flights[n]])


def halves(d: int, relation: str) -> Iterator[Pairs]:
    """Equally many rows at either end, and one more or less at one of them: the median of every column is there or there."""
    low, high = np.full((6, d), -0.5), np.full((6, d), 0.93)
    even, more, less = np.vstack([low, high]), np.vstack([low, high, high[:1]]), np.vstack([low, high[1:]])
    yield Pairs(even, [more, less])


def faint(d: int, relation: str) -> Iterator[Pairs]:
    """Two clusters in the first columns; all others are as good as constant, and a row more moves half of them away from their
    bound: they tell more than the rest then, if anyone asks rows for their mean, and not what was released."""
    rng = np.random.default_rng(0)
    table = np.full((40, d), -0.99)
    table[:, :6] = rng.choice([-0.9, 0.4], (40, 1)) + 0.05 * rng.standard_normal((40, 6))
    tilt = np.where(np.arange(d) % 2, 1.0, -1.0)
    yield Pairs(table, [np.vstack([table, tilt]), np.vstack([table, -tilt])])
    for n in range(20, 40):
        yield Pairs(table[:n], [table[: n + 1]])


def growing(d: int, relation: str, sizes: Iterable[int]) -> Iterator[Pairs]:
    """Rows everywhere, so many of them, and one more or less: how many cells hold rows passes a threshold on the way."""
    rows = np.random.default_rng(0).uniform(-1, 1, (200, d))
    for n in sizes:
        yield Pairs(rows[:n], [rows[: n + 1]])
        yield Pairs(rows[: n + 1], [rows[:n]])


DEMAND = np.array([3, 17, 28, np.nan, 1e308] + [5] * 6 + [6, 11, 12] * 3 + [22] * 12)[:, None]  # rows alone first
OTHERS = np.array([0, 29, 17, -1, 0.5, np.nan, 10])[:, None]


def demands(d: int, relation: str) -> Iterator[Pairs]:
    """Points of a universe by index: some with one row, many with none, and what is no index."""
    if relation == "replace-one":
        yield Pairs(DEMAND, [shuffled(np.vstack([np.delete(DEMAND, i, axis=0), row])) for i, row in enumerate(OTHERS)])
        yield Pairs(OTHERS[1:2], [OTHERS[:1], OTHERS[5:6]])
    else:
        fewer = [np.delete(DEMAND, i, axis=0) for i in (*range(N_ALONE), len(DEMAND) - 1)]
        yield Pairs(DEMAND, [shuffled(other) for other in (*fewer, *(np.vstack([DEMAND, row]) for row in OTHERS))])
        yield Pairs(OTHERS[1:2], [OTHERS[:0], OTHERS[:2]])
        yield Pairs(OTHERS[:0], [row[None] for row in OTHERS])


def people(table: Floats, others: Floats, most: int, relation: str) -> Iterator[Pairs]:
    """Column 0 tells whose row it is. One person more, one less, or one with other rows, among them more than are counted."""
    rows = np.column_stack([np.arange(len(table)) // 2 + 10.0, table])
    clear, opposite, apart = (np.tile(others[:1], (most + 2, 1)), np.tile(others[1:2], (most, 1)), others[[1, 3, 0]])
    full, *rest = (np.vstack([rows, _of(3.0, of)]) for of in (clear, opposite, apart, others[:1]))
    if relation == "replace-one":
        yield Pairs(full, [shuffled(other) for other in rest])
    else:
        yield Pairs(rows, [shuffled(other) for other in (full, *rest, rows[2:], rows[rows[:, 0] != 12])])
        yield Pairs(_of(3.0, clear), [rows[:0]])


def _of(person: float, rows: Floats) -> Floats:
    return np.column_stack([np.full(len(rows), person), rows])


def shuffled(rows: Floats) -> Floats:
    return rows[np.random.default_rng(len(rows)).permutation(len(rows))]
