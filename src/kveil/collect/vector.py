"""Vectors of the unit ball, released through a codebook; and signed sums of them for any key, known or guessed later.

A report names one of M codewords, drawn anew for every report from its seed, and prefers the kappa best aligned with the
vector's direction. The codeword over m is an unbiased estimate: rotating the codebook gives the direction, and that codewords
are exchangeable gives m. Its noise is not isotropic: the second moment is t2/m**2 along the direction and
(1 - t2)/((dim - 1) m**2) across it. Near-optimal, as in "Exact Optimality of Communication-Privacy-Utility Tradeoffs in
Distributed Mean Estimation".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, lgamma, log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from kveil.arrays import Floats, Integers, Words
from kveil.collect import _kernels, hashing
from kveil.collect.queries import Keys, Query, Sums
from kveil.kernel.loss import response_weights

SIZE = 256  # codewords: within 1.5 % of what any release of the kind can do, and one byte on the wire
SHIFT = 16  # squares of codewords lose this many bits, so that 2**31 of them fit into 63


@dataclass(frozen=True)
class Codebook:
    """Constants of a release. variance: second moment of a coordinate of one report, averaged over coordinates: 1/(dim m**2)."""

    dim: int
    M: int
    kappa: int
    m: float
    t2: float

    @property
    def variance(self) -> float:
        return 1 / (self.dim * self.m**2)

    @property
    def along(self) -> float:
        """The second moment along the vector itself."""
        return self.t2 / self.m**2


@lru_cache(maxsize=256)
def codebook(dim: int, epsilon: Fraction, *, hemisphere: bool = False) -> Codebook:
    """The best number of preferred codewords for a dimension and epsilon, and its constants.

    hemisphere: half of all codewords, the mechanism of "Local Privacy and Statistical Minimax Rates"; for reproductions.
    """
    a, b = response_weights(epsilon)
    if dim == 1:  # +1 or -1: randomised response
        return Codebook(1, 2, 1, (a - b) / (a + b), 1.0)
    kappa = SIZE // 2 if hemisphere else min(max(round(SIZE * best_mass(dim, float(epsilon))), 1), SIZE - 1)
    top, top2 = (aligned_moment(dim, kappa, power) for power in (1, 2))
    inside = kappa * a / (kappa * a + (SIZE - kappa) * b)
    m = top * (inside - (1 - inside) * kappa / (SIZE - kappa))
    t2 = inside * top2 + (1 - inside) * (SIZE / dim - kappa * top2) / (SIZE - kappa)
    return Codebook(dim, SIZE, kappa, m, t2)


def best_mass(dim: int, epsilon: float) -> float:
    """The share of directions that the best cap mechanism prefers (PrivUnit of "Protection Against Reconstruction")."""
    q = np.linspace(0.002, 0.5, 4981)
    t = cosine_quantile(dim, 1 - q)
    c = exp(lgamma(dim / 2) - lgamma((dim - 1) / 2) - log(pi) / 2)
    inside = q * exp(epsilon) / (q * exp(epsilon) + 1 - q)
    gain = c * (1 - t**2) ** ((dim - 1) / 2) / ((dim - 1) * q) * (inside - (1 - inside) * q / (1 - q))
    return float(q[np.argmax(gain)])


def aligned_moment(dim: int, kappa: int, power: int) -> float:
    """Mean power of the cosine between a direction and one of the kappa best aligned of SIZE random codewords.

    (SIZE/kappa) times the integral over t of F^-1(t)**power P[Bin(SIZE - 1, 1 - t) <= kappa - 1]: a codeword at quantile t is
    among the best if at most kappa - 1 others are above it.
    """
    n_nodes = 4096
    angle = (np.arange(n_nodes) + 0.5) * pi / n_nodes  # t = sin(angle/2)**2: many nodes at both ends, where the quantile is steep
    t = np.sin(angle / 2) ** 2
    chance = betainc(SIZE - kappa, kappa, t)
    return float(SIZE / kappa * pi / (2 * n_nodes) * (np.sin(angle) * cosine_quantile(dim, t) ** power * chance).sum())


def cosine_quantile(dim: int, t: NDArray[np.float64]) -> Floats:
    """Quantiles of the cosine between a direction and a uniform one."""
    return np.asarray(2 * betaincinv((dim - 1) / 2, (dim - 1) / 2, t) - 1)


def codewords(seeds: Words, reported: Integers, dim: int) -> Integers:
    """The codewords that reports name, as integers of 2**-24."""
    out = np.empty((len(reported), dim), dtype=np.int64)
    if dim == 1:
        out[:, 0] = np.where(reported == 0, 1, -1) << 24
    else:
        _kernels.codewords(hashing.mixed_seeds(seeds, hashing.CODEBOOK), reported.astype(np.int64), out)
    return out


def best_aligned(seeds: Words, directions: Floats, M: int, kappa: int) -> Integers:
    """The preferred codewords of every report."""
    if directions.shape[1] == 1:
        return np.where(directions > 0, 0, 1).astype(np.int64)
    out = np.empty((len(seeds), kappa), dtype=np.int64)
    _kernels.best_aligned(hashing.mixed_seeds(seeds, hashing.CODEBOOK), np.ascontiguousarray(directions), M, kappa, out)
    return out


def signed_sums(seeds: Words, words: Integers, keys: Keys) -> Sums:
    """For every key the sum of codewords with their signs, and the sum of squares: exact, and independent of the order."""
    out = np.zeros((len(keys), words.shape[1]), dtype=np.int64)
    mixed = hashing.mixed_seeds(seeds, hashing.SIGN)
    _kernels.signed_sums(mixed, np.ascontiguousarray(words), hashing.mixed_keys(keys), out)
    return Sums(out, np.asarray(((words * words) >> SHIFT).sum(axis=0)))


def decoded(query: Query, seeds: Words, reported: Integers, keys: Keys, dim: int, start: int = 0) -> Sums:
    """The statistic of a block of reports; blocks add up."""
    return signed_sums(seeds, codewords(seeds, reported, dim)[:, start:], keys)


@dataclass(frozen=True, eq=False)
class Released:
    """Unbiased sums a key, in units of the released vectors; and the standard deviation of a column, by the reports' squares."""

    sums: Floats
    sd: Floats


def released(statistic: Sums, book: Codebook) -> Released:
    unit = 2.0**-24 / book.m
    return Released(np.asarray(statistic.sums * unit), np.asarray(np.sqrt(statistic.squares * 2.0**SHIFT) * unit))
