"""Several different choices for one charge: their exact law, what a neighbour can do to it, and what is refused."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from kveil.errors import InvalidValue
from kveil.kernel import choice
from kveil.kernel.choice import peeled
from kveil.kernel.exact import SystemEntropy

SYSTEM = SystemEntropy()
FALSE_ALARM = 1e-6


def peel_logs(costs, rounds, rate):
    """Logarithms of the probabilities of every sequence of different choices."""
    logs = {}
    for picks in permutations(range(len(costs)), rounds):
        left, log = list(range(len(costs))), 0.0
        for pick in picks:
            weights = np.exp(-rate * np.array([costs[i] for i in left], dtype=np.float64))
            log += -rate * costs[pick] - np.log(weights.sum())
            left.remove(pick)
        logs[picks] = log
    return logs


def test_every_round_is_a_selection_among_what_is_left(monkeypatch):
    """The law of `select` is known: here it is told what to choose, in every way, and notes what it was asked."""
    costs, measurement = np.array([5, -2, 7, 0]), peeled("columns", 3, 2, 4, Fraction(5))
    found = {}
    for places in product(range(4), range(3), range(2)):
        asked, script = [], iter(places)
        with monkeypatch.context() as patch:
            patch.setattr(choice, "select", lambda source, c, rate, a=asked, s=script: (a.append((c.tolist(), rate)), next(s))[1])
            (picks,) = measurement.draw(SYSTEM, costs[None])
        found[places] = tuple(picks.tolist())
        left = costs.tolist()
        for (seen, rate), place, pick in zip(asked, places, picks, strict=True):
            assert (seen, rate) == (left, Fraction(5, 2 * 2 + 4))
            assert left.pop(place) == costs[pick]
    assert sorted(found.values()) == sorted(permutations(range(4), 3))


def largest_ratio(rounds, moves, rate):
    """Over neighbours of some tables that differ by one of `moves`. In the last a choice is all but sure."""
    tables = [np.zeros(4), np.array([0, -3, -3, 5]), np.array([-20 / rate, 0, 0, 0])]
    pairs = [(peel_logs(t, rounds, rate), peel_logs(t + move, rounds, rate)) for t, move in product(tables, moves)]
    return max(abs(one[picks] - other[picks]) for one, other in pairs for picks in one)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_neighbour_moves_log_ratios_up_to_epsilon_and_no_further(rounds):
    """Moves of at most 3 each and 5 together: the charge is attained, so a rate that is 1 % larger costs more than it says."""
    every = [move for move in product(range(-3, 4), repeat=4) if sum(map(abs, move)) == 5]
    moves = [np.array(move) for move in [*every[::12], (-3, 2, 0, 0), (-3, 1, 1, 0), (3, -1, 0, -1), (-2, 3, 0, 0)]]
    for epsilon in (0.25, 4.0):
        charge = peeled("columns", rounds, 3, 5, Fraction(epsilon)).charge
        expected = ("peel", 3 * (rounds - 1) + 5, Fraction(epsilon) ** 2 / 2)
        assert (charge.mechanism, charge.sensitivity, charge.zcdp()) == expected
        rate = epsilon / charge.sensitivity
        assert largest_ratio(rounds, moves, rate) <= epsilon * (1 + 1e-12)
        assert largest_ratio(rounds, moves, 1.01 * rate) > epsilon


def test_log_ratios_have_no_bounded_range_so_they_are_not_charged_as_a_selection():
    """Two rounds, one choice moved up and another down: log-ratios stretch over more than the epsilon that bounds their size."""
    epsilon = 4.0
    rate = epsilon / peeled("columns", 2, 3, 6, Fraction(4)).charge.sensitivity
    one, other = peel_logs(np.array([0, 0, 40]), 2, rate), peel_logs(np.array([3, -3, 40]), 2, rate)
    ratios = [other[picks] - one[picks] for picks in one]
    assert max(map(abs, ratios)) <= epsilon < 1.2 * (max(ratios) - min(ratios))


def disagrees(draws, law):
    counts = dict.fromkeys(law, 0)
    for picks in draws:
        counts[tuple(picks)] += 1
    level = FALSE_ALARM / (2 * len(law))
    ends = {picks: stats.binom.ppf([level, 1 - level], len(draws), np.exp(log)) for picks, log in law.items()}
    return any(not ends[picks][0] <= counts[picks] <= ends[picks][1] for picks in law)


@pytest.mark.statistical
def test_real_draws_follow_the_law_and_a_rate_half_again_as_large_is_noticed():
    """2000 groups of equal costs are 2000 draws. False alarm 1e-6; the twin is missed less often than that."""
    costs, rounds, n = np.array([0, 2, 3]), 2, 2000
    law = peel_logs(costs, rounds, 2 / 3)
    assert not disagrees(peeled("columns", rounds, 1, 2, Fraction(2)).draw(SYSTEM, np.tile(costs, (n, 1))).tolist(), law)
    assert disagrees(peeled("columns", rounds, 1, 2, Fraction(3)).draw(SYSTEM, np.tile(costs, (n, 1))).tolist(), law)


@pytest.mark.parametrize("rounds", [0, 4])
def test_more_rounds_than_choices_are_refused(rounds):
    with pytest.raises(InvalidValue, match="round"):
        peeled("columns", rounds, 1, 1, Fraction(1)).draw(SYSTEM, np.zeros((2, 3), dtype=np.int64))
