"""Exact selection: the exponential mechanism over integer costs, secret coins for more cells than anyone could visit, and
noisy points at secret picks.

Costs fall into buckets half as wide as the scale of the mechanism. A bucket is drawn by an upper bound of its weight,
a member of it uniformly, and the member is accepted with exactly the probability that corrects the bound; so array work
is O(N) once, and only the accepted cost meets high precision.

Cells without rows are many and alike: independent coins of one bias. How many of them fail before the next success is one
geometric draw, so the time follows the occupied cells and the successes, not the number of cells.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.kernel.exact import Entropy, bernoulli_exp, exp_bounds, neglog_bounds, uniform_below
from kveil.kernel.loss import Charge, Measurement
from kveil.kernel.noise import COIN_MARGIN, discrete_laplace, k_norm, laplace_noise

Histogram = Mapping[int, int]  # rows by code of a cell; cells that are not in it hold none

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


def peeled(
    label: str, rounds: int, largest: int, l1_sensitivity: int, epsilon: Fraction, **more: Any
) -> Measurement[Integers, Integers]:
    """For every row of a table of costs (groups, choices) `rounds` different indices of low ones (groups, rounds), in the order
    drawn: each time P(i) ~ exp(-rate cost_i) over what is left, rate = epsilon/((rounds - 1) largest + l1_sensitivity).

    Private:      the costs.  Public: the shape of the table and the parameters.
    Sensitivity:  with m_g how a neighbour moves the costs of group g, `largest` bounds the sum over groups of max |m_g|, and
                  `l1_sensitivity` that of the L1 norms; the caller proves both.
    Cost:         epsilon, attained. The log-ratio of an outcome is a sum over its picks: rate times how far the pick's cost
                  moved its way, and the log-ratio of the total weight of what was left, which is at most rate M, M the largest
                  move the other way. Picks differ; the choice that moved by M is not among those that moved their way. So the
                  first add up to at most rate (|m_g|_1 - M), and with `rounds` totals that is rate (|m_g|_1 + (rounds - 1) M).
    Not covered:  a bounded range: log-ratios may come near epsilon both ways, so rho is epsilon**2/2, not that of `selection`.
    """
    if rounds < 1:
        raise InvalidValue("several choices take one round at least.")
    moved = (rounds - 1) * largest + l1_sensitivity
    rate = epsilon / moved

    def draw(source: Entropy, raw: Integers) -> Integers:
        if rounds > raw.shape[1]:
            raise InvalidValue("as many different choices as rounds are needed.")
        return np.array([_peel(source, costs, rounds, rate) for costs in raw], dtype=np.int64)

    return Measurement(Charge("peel", label, moved, "l1", epsilon, **more), draw)


def _peel(source: Entropy, costs: Integers, rounds: int, rate: Fraction) -> list[int]:
    left, found = np.arange(len(costs)), []
    for _ in range(rounds):
        place = select(source, costs[left], rate)
        found.append(int(left[place]))
        left = np.delete(left, place)
    return found


class Places(Protocol):
    """Records that own places: record i as many of 0 .. total-1 as its score, one after the other. All of it is secret."""

    @property
    def total(self) -> int:
        """How many places are owned."""

    def at(self, places: list[int]) -> Integers:
        """(places, d): the codes of the records that own these places; 0, the centre of the domain, past the last one."""


def noisy_picks(
    label: str, diameter: int, epsilon: Fraction, *, norm: Literal["l1", "l2"] = "l1", n_picks: int = 1, score: int = 1,
    rows: int = 1, public_total: int = 1, **more: Any,
) -> Measurement[Places, Integers]:  # fmt: skip
    """Codes (n_picks, d) at distinct places drawn from 0 .. T-1, T = max(total, public_total), each plus noise of its own.

    Private:      the records, their scores, the places drawn, and which of them nobody owns.  Public: all parameters.
    Sensitivity:  two codes lie at most `diameter` apart in `norm`, so noise of rate eps0/diameter is eps0-DP for any two. A
                  record scores at most `score`, and a person has at most `rows` records; the caller proves these.
    Cost:         epsilon = ln(1 + g (e**eps0 - 1)), add-remove and replace-one alike. One pick: g = rows score/public_total.
                  Several, each record owning at most one place: g = n_picks/public_total and epsilon/rows, by group privacy.
                  Both laws are (1-g) Q + g Z with one common Q: for one pick, what others own, and what nobody owns in both;
                  for several, what is drawn when the one place that changes hands is not. Given that it is, draws can be
                  coupled to differ in one row; so at any output all parts lie within a factor e**eps0, and the ratio is largest,
                  1 + g (e**eps0 - 1), where Q is least. Not covered: places drawn with replacement; scores that depend on
                  other records.  docs/guarantees.md has the cases.
    """
    if min(n_picks, score) > 1 or n_picks * score * (rows if n_picks == 1 else 1) > public_total:
        raise InvalidValue(
            "public_total must be at least what a person, or all picks together, may own; several picks own one each."
        )
    share = Fraction(rows * score if n_picks == 1 else n_picks, public_total)
    rate = unamplified(epsilon if n_picks == 1 else epsilon / rows, share) / diameter
    laplace_noise(label, diameter, rate * diameter)  # refuses noise that is too wide

    def draw(source: Entropy, raw: Places) -> Integers:
        places: dict[int, None] = {}  # distinct, in the order drawn: where a record comes out must tell nothing
        while len(places) < n_picks:
            places[uniform_below(source, max(raw.total, public_total))] = None
        codes = raw.at(list(places))
        noise = discrete_laplace(source, rate, codes.size) if norm == "l1" else k_norm(source, 1 / rate, *codes.shape)
        return codes + noise.reshape(codes.shape)

    return Measurement(Charge("pick", label, diameter, norm, epsilon, **more), draw)


def unamplified(epsilon: Fraction, share: Fraction) -> Fraction:
    """The largest eps0, as a multiple of 2**-60 rounded down, with ln(1 + share (e**eps0 - 1)) <= epsilon; share in (0, 1]."""
    prec = 512
    _, least = exp_bounds(epsilon.numerator, epsilon.denominator, prec)  # e**epsilon is at least 2**prec/least
    odds = 1 + (Fraction(1 << prec, least) - 1) / share
    inverse = -(-(odds.denominator << prec) // odds.numerator)
    return Fraction(neglog_bounds(inverse, prec, prec)[0] >> prec - 60, 1 << 60)
