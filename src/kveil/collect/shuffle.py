"""What reports promise centrally if a trusted shuffler strips who sent them and when: a second, conditional figure.

Neighbours replace one person. Conditions: the reports are those of honest devices of one round, all saw the same manifest, and
the sub-query is drawn inside the randomiser. The claim of a campaign stays the local one.
Reference: "Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification by Shuffling".
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from kveil.kernel.loss import Conditional

DELTA = 1e-8
BLOCKS = 400
ASSUMPTION = (
    "a trusted shuffler hides who sent which report and when, everyone saw the same manifests, and every round had at least "
    "{n} honest devices"
)


def conditional(epsilon: float, n: int, delta: float = DELTA) -> tuple[Conditional, ...]:
    """The line of a guarantee, for rounds of at least n honest reports; none if shuffling brings nothing.

    People of different rounds are different, so the largest figure counts, not the sum.
    """
    amplified = shuffled(epsilon, n, delta)
    return (Conditional(amplified, delta, ASSUMPTION.format(n=n)),) if amplified < epsilon else ()


def shuffled(epsilon: float, n: int, delta: float = DELTA) -> float:
    """Central epsilon at delta of n shuffled reports that are epsilon-private each: the least of both bounds and epsilon."""
    return min(epsilon, closed_form(epsilon, n, delta), numerical(epsilon, n, delta))


def closed_form(epsilon: float, n: int, delta: float = DELTA) -> float:
    """The bound as a formula; infinite where it does not hold."""
    if n < 1 or n < 16 * log(2 / delta) * exp(epsilon):
        return inf
    e = exp(epsilon)
    return log(1 + (e - 1) / (e + 1) * (8 * sqrt(e * log(4 / delta)) / sqrt(n) + 8 * e / n))


@lru_cache(maxsize=64)  # by what a campaign publishes
def numerical(epsilon: float, n: int, delta: float = DELTA) -> float:
    """The same reduction with its two laws compared numerically, rounded up: about a third of the formula."""
    if n < 2 or clone_delta(0.0, epsilon, n) <= delta:
        return 0.0 if n > 1 else epsilon
    if clone_delta(epsilon * (1 - 1e-9), epsilon, n) > delta:
        return epsilon
    found = brentq(lambda e: clone_delta(e, epsilon, n) - delta, 0.0, epsilon * (1 - 1e-9), xtol=1e-9)
    return min(epsilon, float(found) * (1 + 1e-6) + 2e-9)


def clone_delta(central: float, epsilon: float, n: int) -> float:
    """Hockey-stick divergence between (A + B, C - A + 1 - B) and its mirror image.

    C ~ Bin(n-1, e**-epsilon) others look like one of the two inputs, A ~ Bin(C, 1/2) like the first, B ~ Bern(p), p =
    e**epsilon/(1 + e**epsilon). Given C = c the ratio of the laws grows with the first count x: the worst event is x >= x0, where
    x / (c - x + 1) = (e**central p - (1 - p)) / (p - e**central (1 - p)). One more clone is a step that knows no input, so the
    divergence falls with c: a block of values of C counts as its least, which bounds the sum from above.
    """
    p, e = exp(epsilon) / (1 + exp(epsilon)), exp(central)
    others = binom(n - 1, exp(-epsilon))
    middle, reach = others.mean(), 10 * others.std() + 10
    ends = np.linspace(max(0, middle - reach), min(n, middle + reach), BLOCKS).astype(np.int64)
    ends = np.unique([0, *ends, n])
    c, mass = ends[:-1], np.diff(others.cdf(ends - 1))
    ratio = (e * p - (1 - p)) / (p - e * (1 - p))
    x0 = np.ceil(ratio * (c + 1) / (1 + ratio))
    at_least, one_more = binom.sf(x0 - 2, c, 0.5), binom.sf(x0 - 1, c, 0.5)  # P(A >= x0 - 1), P(A >= x0)
    gap = (p * at_least + (1 - p) * one_more) - e * ((1 - p) * at_least + p * one_more)
    return float((mass * np.maximum(gap, 0.0)).sum())
