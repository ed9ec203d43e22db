"""How often a key occurs among people, from reports that are mostly lies. Statistics are integers; blocks of reports add up."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.collect import _kernels, hashing
from kveil.collect.queries import Keys, Kind, Query
from kveil.kernel.loss import response_weights

LARGE_DOMAIN = 2**12  # from so many keys on Hadamard reports are decoded much faster than hashed ones
SLACK = 1.10  # and are taken if that costs no more than this in variance


class Oracle(NamedTuple):
    """A kind of report on a key, and how many values it may have."""

    kind: Kind
    M: int


def support(query: Query, seeds: Words, reported: Integers, keys: Keys) -> Integers:
    """The statistic of a block of reports for each key: how many support it; for "hrr" those who do less those who do not."""
    if query.kind == "grr":
        return np.bincount(reported, minlength=query.M)[keys.astype(np.int64)]
    if query.kind == "hrr":
        total = np.zeros(1 << query.key_bits, dtype=np.int64)
        np.add.at(total, hashing.rows(seeds, query.key_bits).astype(np.int64), 1 - 2 * reported)
        _kernels.walsh_hadamard(total)
        return np.asarray(total[keys.astype(np.int64)])
    out = np.zeros(len(keys), dtype=np.int64)
    mixed = hashing.mixed_seeds(seeds, hashing.OLH)
    _kernels.support(mixed, hashing.words(reported), hashing.mixed_keys(keys), np.uint64(query.M), out)
    return out


def chances(kind: Kind, M: int, epsilon: Fraction) -> tuple[float, float]:
    """That a report supports its own key, and that it supports another one."""
    a, b = response_weights(epsilon)
    own = a / (a + (M - 1) * b)
    return own, b / (a + (M - 1) * b) if kind == "grr" else 1 / M


def estimates(query: Query, statistic: Integers, received: int, epsilon: Fraction) -> Floats:
    """People with each key, unbiased, among those who answered."""
    own, other = chances(query.kind, query.M, epsilon)
    supporting = (statistic + received) / 2 if query.kind == "hrr" else statistic
    return np.asarray((supporting - received * other) / (own - other), dtype=np.float64)


def variance(kind: Kind, M: int, epsilon: Fraction, share: float = 0.0) -> float:
    """Variance a report of the estimate for a key that this share of people have; 0 is for rare keys."""
    own, other = chances(kind, M, epsilon)
    return (share * own * (1 - own) + (1 - share) * other * (1 - other)) / (own - other) ** 2


def deviation(query: Query, received: int, epsilon: Fraction) -> float:
    """Standard deviation of the estimate for a rare key."""
    return sqrt(received * variance(query.kind, query.M, epsilon))


def best_oracle(n_keys: int, epsilon: Fraction) -> Oracle:
    """The kind of report with the least variance, by public facts; Hadamard bits for large domains if they are about as good."""
    hashed = Oracle("olh", round(exp(epsilon)) + 1)
    if not 2 <= n_keys <= 2**16:
        plain = hashed
    else:
        plain = min(Oracle("grr", n_keys), hashed, key=lambda oracle: variance(oracle.kind, oracle.M, epsilon))
    bits = Oracle("hrr", 2)
    is_close = variance(bits.kind, bits.M, epsilon) <= SLACK * variance(plain.kind, plain.M, epsilon)
    return bits if LARGE_DOMAIN <= n_keys <= 2**20 and is_close else plain
