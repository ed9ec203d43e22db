"""Exact selection: the exponential mechanism over integer costs, and secret coins for more cells than anyone could visit.

Costs fall into buckets half as wide as the scale of the mechanism. A bucket is drawn by an upper bound of its weight,
a member of it uniformly, and the member is accepted with exactly the probability that corrects the bound; so array work
is O(N) once, and only the accepted cost meets high precision.

Cells without rows are many and alike: independent coins of one bias. How many of them fail before the next success is one
geometric draw, so the time follows the occupied cells and the successes, not the number of cells.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.exact import Entropy, bernoulli_exp, exp_bounds, neglog_bounds, uniform_below
from kveil.kernel.loss import Charge, Measurement
from kveil.kernel.noise import COIN_MARGIN, Histogram

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


def active_cells(
    label: str, n_cells: int, least: int, l1_sensitivity: int, epsilon: Fraction, **more: Any
) -> Measurement[Histogram, list[int]]:
    """Those of the cells 0 .. n_cells-1 whose noisy count is at least `least`, ascending; empty cells take part too.

    Private:      the counts of occupied cells, {cell: count}.  Public: n_cells, however large, and the parameters.
    Sensitivity:  l1_sensitivity bounds the L1 distance between the histograms of neighbours; the caller proves it.
    Cost:         epsilon: the result is a function of all counts, each with discrete Laplace noise Z of that rate. Only what
                  the result needs is drawn: whether Z reaches a gap, P(Z >= j) = q**j/(1+q) for j >= 0, q = exp(-rate).
    """
    rate = epsilon / l1_sensitivity
    if least * rate < 1:
        raise InvalidValue("the least count must be at least l1_sensitivity/epsilon, or a share of all empty cells would pass.")

    def draw(source: Entropy, raw: Histogram) -> list[int]:
        cells = sorted(raw)
        gaps = [least - raw[cell] for cell in cells]
        reached = _reaches(source, rate, [gap if gap > 0 else 1 - gap for gap in gaps])  # Z >= gap unless -Z >= 1 - gap
        passing = [cell for cell, gap, is_reached in zip(cells, gaps, reached, strict=True) if is_reached == (gap > 0)]
        return sorted(passing + _passing_empty(source, rate, least, n_cells, cells))

    return Measurement(Charge("discrete-laplace", label, l1_sensitivity, "l1", epsilon, **more), draw)


def _reaches(source: Entropy, rate: Fraction, gaps: list[int]) -> list[bool]:
    """Whether discrete Laplace noise, drawn for each gap >= 0 on its own, reaches it: coins of q**gap, then of 1/(1+q)."""
    words = source.words(len(gaps))
    with np.errstate(all="ignore"):  # a far gap underflows to 0
        away = words.astype(np.float64) * 2.0**-64 - np.exp(-np.array(gaps, dtype=np.float64) * float(rate))
    heads: list[bool] = (away < 0).tolist()
    for i in np.flatnonzero(np.abs(away) <= COIN_MARGIN).tolist():
        heads[i] = bernoulli_exp(source, gaps[i] * rate.numerator, rate.denominator, head=(int(words[i]), 64))
    return [head and _is_not_negative(source, rate) for head in heads]


def _is_not_negative(source: Entropy, rate: Fraction) -> bool:
    """A coin of probability 1/(1+q): a round says yes with probability 1/2, no with q/2, and else there is another."""
    while not source.bits(1):
        if bernoulli_exp(source, rate.numerator, rate.denominator):
            return False
    return True


def _passing_empty(source: Entropy, rate: Fraction, least: int, n_cells: int, occupied: list[int]) -> list[int]:
    """The empty cells that pass. The empty cell of rank r is cell r + (number of occupied cells before it)."""
    before = [cell - i for i, cell in enumerate(occupied)]  # how many empty cells lie before each occupied one
    found, rank = [], -1
    while (rank := rank + 1 + _failures(source, least * rate.numerator, rate.denominator)) < n_cells - len(occupied):
        if _is_not_negative(source, rate):
            found.append(rank + bisect_right(before, rank))
    return found


def _failures(source: Entropy, num: int, den: int) -> int:
    """How many coins of probability x = exp(-num/den) <= 1/e fail before one succeeds: floor(ln U / ln(1-x)), lazily."""
    step = 2 * (num // den) + 64  # x > 2**-step, so that the logarithm of 1-x keeps its leading bits
    w = b = 0
    while True:
        w, b = (w << step) | source.bits(step), b + step
        prec = b + step
        x_low, x_high = exp_bounds(num, den, prec)
        fastest, slowest = (neglog_bounds((1 << prec) - x, prec, prec) for x in (x_high, x_low))
        low, high = neglog_bounds(w + 1, b, prec)[0], neglog_bounds(w, b, prec)[1] if w else math.inf
        if high < math.inf and (floor := low // fastest[1]) == int(high) // slowest[0]:
            return floor


def selections(label: str, cost_range: int, epsilon: Fraction, **more: Any) -> Measurement[Integers, Integers]:
    """For every row of a table of costs (groups, choices) the index of a low one, as `selection` draws it: one charge for all.

    Sensitivity:  cost_range bounds the sum over groups of max_i - min_i of how a neighbour moves the group's costs.
    Cost:         epsilon, as in `selection`: this is one selection among all tuples of indices, whose cost is the sum over
                  groups. Its weight is a product over groups, so they are drawn one by one; its range is the sum of theirs.
    """
    charge = Charge("select", label, cost_range, "range", epsilon, **more)
    rate = epsilon / cost_range
    return Measurement(charge, lambda source, raw: np.array([select(source, costs, rate) for costs in raw], dtype=np.int64))
