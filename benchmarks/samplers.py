"""Exact noise beside OpenDP's, draw for draw."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from benchmarks.bar import Bar, best_seconds
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.noise import discrete_gaussian, discrete_laplace, k_norm

N = 100_000


def run() -> Iterator[Bar]:
    dp.enable_features("contrib")
    source, zeros = SystemEntropy(), [0] * N
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = best_seconds(lambda: dp.m.make_laplace(*space, scale=1000.0)(zeros), 3)
    mine = best_seconds(lambda: discrete_laplace(source, Fraction(1, 1000), N))
    yield Bar("discrete Laplace, scale 1000, 1e5 draws: OpenDP / kveil", theirs / mine, 20, " times", at_least=True)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = best_seconds(lambda: dp.m.make_gaussian(*space, scale=1000.0)(zeros), 3)
    mine = best_seconds(lambda: discrete_gaussian(source, Fraction(10**6), N))
    yield Bar("discrete Gaussian, scale 1000, 1e5 draws: OpenDP / kveil", theirs / mine, 20, " times", at_least=True)
    wide = best_seconds(lambda: k_norm(source, Fraction(2**20), 10, 784))
    narrow = best_seconds(lambda: discrete_laplace(source, Fraction(1, 2**20), 7840))
    yield Bar("rounded K-norm, 10 x 784, against discrete Laplace of as many draws", wide / narrow, 10, " times")
    codes = np.random.default_rng(0).integers(-(2**15) + 1, 2**15, (1_000_000, 20)).astype(np.int16)
    yield _sums(codes)


def _sums(codes: np.ndarray) -> Bar:
    from kveil.questions._kernels import add_rows

    owner = np.random.default_rng(1).integers(0, 16, len(codes)).astype(np.int32)
    floats = codes.astype(np.float64)

    def add(rows: np.ndarray, kind: type) -> None:
        add_rows(rows, owner, np.zeros(16, dtype=np.int64), np.zeros((16, rows.shape[1]), dtype=kind))

    add(codes[:10], np.int64)
    add(floats[:10], np.float64)
    return Bar(
        "int16 cluster sums against float64 ones",
        best_seconds(lambda: add(codes, np.int64)) / best_seconds(lambda: add(floats, np.float64)),
        1.1,
    )
