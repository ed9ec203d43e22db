"""Sums of whole numbers of at least 0 that stop at MOST instead of wrapping, also if there are more rows than `max_rows` says.

A cost that wrapped would move a choice by 2**64 for one row. One that stops moves by at most what the row adds: min(sum, MOST)
is what comes out, in any order and grouping.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from kveil.arrays import Integers

MOST = 2**62 - 1  # two of them still fit into int64


def add(one: Integers, other: Integers) -> Integers:
    """Of numbers in 0 .. MOST. A `combine` for `Source.map_reduce`."""
    return np.asarray(np.minimum(one + other, MOST))


def running(values: Integers) -> Integers:
    """All partial sums of numbers in 0 .. MOST."""
    if values.sum(dtype=np.float64) < MOST / 2:  # far from the end, rounding included
        return np.cumsum(values)
    return np.fromiter(accumulate(values.tolist(), lambda a, b: min(a + b, MOST)), np.int64, len(values))


def product(counts: Integers, values: Integers) -> Integers:
    """counts * values, both at least 0."""
    return np.where((values > 0) & (counts > MOST // np.maximum(values, 1)), MOST, counts * values)


def total(values: Integers) -> int:
    """The sum of numbers in 0 .. MOST."""
    low = int((values & (2**31 - 1)).sum())
    return min((int((values >> 31).sum()) << 31) + low, MOST)
