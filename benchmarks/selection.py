"""The exact exponential mechanism over many scores, beside OpenDP's noisy max."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from benchmarks.bar import Bar, best_seconds
from kveil.kernel.choice import select
from kveil.kernel.exact import SystemEntropy


def run() -> Iterator[Bar]:
    dp.enable_features("contrib")
    source = SystemEntropy()
    costs = np.random.default_rng(0).integers(0, 10**9, 200_000)
    mine = best_seconds(lambda: select(source, costs, Fraction(1, 10**6)), 9)
    yield Bar("selection over 200 000 scores", 1000 * mine, 30, " ms")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    scores = costs.tolist()
    noisy_max = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1e6, negate=True)
    theirs = best_seconds(lambda: noisy_max(scores), 3)
    yield Bar("selection over 200 000 scores: OpenDP / kveil", theirs / mine, 10, " times", at_least=True)
