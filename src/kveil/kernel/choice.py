"""Exact selection: the exponential mechanism over integer costs.

Costs fall into buckets half as wide as the scale of the mechanism. A bucket is drawn by an upper bound of its weight,
a member of it uniformly, and the member is accepted with exactly the probability that corrects the bound; so array work
is O(N) once, and only the accepted cost meets high precision.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.exact import Entropy, bernoulli_exp, exp_bounds, uniform_below
from kveil.kernel.loss import Charge, Measurement

Integers = NDArray[np.int64]

LAST = 192  # buckets beyond this one hold less than e**-95 of the best weight each; they share one bound
PRECISION = 160


def selection(label: str, cost_range: int, epsilon: Fraction, **more: Any) -> Measurement[Integers, int]:
    """The index of a low cost: P(i) ~ exp(-cost_i epsilon / cost_range).

    Private:      the costs.  Public: how many there are and the parameters.
    Sensitivity:  cost_range bounds max_i - min_i of (cost_i(D) - cost_i(D')) over neighbours; the caller proves it. Costs
                  that move by at most D either way have range 2 D; costs that only rise, by at most D, when a record is
                  ADDED have range D under add-remove (the monotone form) and 2 D under replace-one.
    Cost:         epsilon: the log-ratio of any outcome is a difference of two such moves, scaled by epsilon/cost_range. It
                  stays in an interval of length epsilon (bounded range), hence epsilon**2/8-zCDP.
    """
    charge = Charge("select", label, cost_range, "range", epsilon, **more)
    return Measurement(charge, lambda source, raw: select(source, raw, epsilon / cost_range))


def select(source: Entropy, costs: Integers, rate: Fraction) -> int:
    """An index with P(i) ~ exp(-costs[i] rate). Costs are int64 in (-2**62, 2**62), saturated by the caller.

    A bucket is 2**s costs wide, 1/2 < 2**s rate <= 1; above rate 1 it is one cost wide, and the law is exact all the same.
    """
    if costs.ndim != 1 or not costs.size:
        raise InvalidValue("a selection needs a vector with at least one cost.")
    a, b = rate.numerator, rate.denominator
    shift = max(0, (b // a).bit_length() - 1)
    keys = costs >> shift
    base = int(keys.min())
    bucket = np.minimum(keys - base, LAST)
    sizes = np.bincount(bucket).tolist()
    bounds = [exp_bounds((j << shift) * a, b, PRECISION)[1] for j in range(len(sizes))]
    total = sum(size * bound for size, bound in zip(sizes, bounds, strict=True))
    while True:
        rest, j = uniform_below(source, total), 0
        while rest >= sizes[j] * bounds[j]:
            rest, j = rest - sizes[j] * bounds[j], j + 1
        index = int(np.flatnonzero(bucket == j)[rest // bounds[j]])
        above = int(costs[index]) - (base << shift)  # at least j << shift, so the coin below has probability at most 1
        if bernoulli_exp(source, above * a, b, mult=1 << PRECISION, div=bounds[j]):
            return index
