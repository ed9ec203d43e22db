"""Lower bounds of epsilon, held against exact binomial laws."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from kveil.audit import Bound, OneRun
from kveil.auditing.bound import best_possible, lower_epsilons
from kveil.auditing.check import rounds
from kveil.errors import InvalidValue


def wrong(n: int, p: float, q: float, delta: float, error: float, epsilon: float) -> float:
    """The exact probability that the bound of an event with these chances passes `epsilon`."""
    k, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    passed = lower_epsilons(k, n, j, n, delta, error) > epsilon
    return float((binom.pmf(k, n, p) * binom.pmf(j, n, q))[passed].sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("q", [0.02, 0.2, 0.269])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_true_promise_is_called_broken_with_at_most_the_stated_error(epsilon, q, delta):
    """For the worst event that the promise allows, and its complement, by summing the exact law of both counts."""
    p = min(math.exp(epsilon) * q + delta, 1 - (1 - q - delta) * math.exp(-epsilon))
    for one, other in ((p, q), (1 - q, 1 - p)):
        assert wrong(60, one, other, delta, 0.05, epsilon) <= 0.05


def test_the_same_sum_shows_a_bound_without_limits_to_be_wrong():
    k, j = np.meshgrid(np.arange(61), np.arange(61), indexing="ij")
    naive = k * 1.0 > j * math.e  # shares in the place of limits
    assert float((binom.pmf(k, 60, 0.2 * math.e) * binom.pmf(j, 60, 0.2))[naive].sum()) > 0.4


def test_all_rounds_together_are_wrong_with_at_most_the_error_of_the_audit():
    """Given the earlier rounds a round's events are fixed, so its chance to be wrong is at most its pairs times the exact error
    of one; these add up. Events of the worst law, exactly at the promise, with the fits that every round has."""
    error, epsilon = 0.05, 1.0
    q = 1 / (1 + math.e)
    plan = rounds(7, 800, error)
    total = sum(step.pairs * wrong(step.runs, 1 - q, q, 0.0, step.error / step.pairs, epsilon) for step in plan[1:])
    assert 0.0005 < total <= error
    careless = sum(step.pairs * wrong(step.runs, 1 - q, q, 0.0, 0.9, epsilon) for step in plan[1:])
    assert careless > error, "the sum would not see an error that is not split"


@pytest.mark.parametrize(("n_pairs", "fits"), [(1, 1000), (2, 5000), (7, 10_000), (30, 50_000)])
def test_rounds_spend_neither_more_fits_nor_more_error_than_there_are(n_pairs, fits):
    plan = rounds(n_pairs, fits, 1e-3)
    assert sum(2 * step.pairs * step.runs for step in plan) <= fits
    assert sum(step.error for step in plan) <= 1e-3
    assert plan[0].pairs == n_pairs
    assert plan[0].error == 0
    assert plan[-1].pairs == 1
    assert plan[-1].runs >= 0.24 * fits


def test_a_bound_knows_what_would_have_been_seen():
    p, n = 1 / (1 + math.exp(-1.0)), 5000
    bound = Bound(round(n * p), n, round(n * (1 - p)), n)
    assert 0.85 < bound.epsilon < 1
    factor = bound.power(1.0)
    assert 1.05 < factor < 1.3
    hits = binom.ppf(0.05, n, 1 / (1 + math.exp(-factor * 1.0)))  # the noise is too narrow by that factor, and luck is bad
    assert Bound(int(hits), n, n - int(hits), n).epsilon > 1
    assert Bound(500, 1000, 500, 1000).power(1.0) is None


def test_no_event_of_few_fits_shows_much():
    assert best_possible(5, 0.0, 1e-3) < 1 < best_possible(50, 0.0, 1e-3)
    assert best_possible(50, 0.9, 1e-3) == 0.0


@pytest.mark.parametrize("counts", [(5, 4, 0, 4), (-1, 4, 0, 4), (1, 4, 5, 4)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(InvalidValue):
        Bound(*counts)


# Printed in "Privacy Auditing with One (1) Training Run", arXiv version 1: Appendix D, and section 7.
@pytest.mark.parametrize(("m", "r", "v", "delta", "printed"), [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)])
def test_one_run_arrives_at_the_printed_values(m, r, v, delta, printed):
    assert OneRun(m, r, v, delta).lower(confidence=0.95) == pytest.approx(printed, abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_one_run_is_exact_for_randomised_response_on_every_canary(epsilon):
    """The pure case, with equality: v right guesses are as probable as p_value says."""
    m, chance = 12, 1 / (1 + math.exp(-epsilon))
    for v in range(m + 1):
        exact = sum(math.comb(m, i) * chance**i * (1 - chance) ** (m - i) for i in range(v, m + 1))
        assert OneRun(m, m, v).p_value(epsilon) == pytest.approx(exact, rel=1e-9)


def test_delta_covers_a_mechanism_that_tells_all_now_and_then():
    """With probability delta, canary by canary, the truth is told, else randomised response: (epsilon, delta)-private. Its exact
    law stays below the p-value, and passes that without the term of delta."""
    m, epsilon, delta = 10, 0.5, 0.02
    q = 1 / (1 + math.exp(-epsilon))
    right = delta + (1 - delta) * q
    tails = [float(binom.sf(v - 1, m, right)) for v in range(m + 1)]
    assert all(tail <= OneRun(m, m, v, delta).p_value(epsilon) + 1e-12 for v, tail in enumerate(tails))
    assert any(tail > OneRun(m, m, v).p_value(epsilon) for v, tail in enumerate(tails))


def test_one_run_bounds_grow_with_right_guesses_and_shrink_with_delta():
    bounds = [OneRun(500, 100, v).lower() for v in range(50, 101, 5)]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)
    assert OneRun(500, 100, 90, 1e-3).lower() < OneRun(500, 100, 90).lower()
    with pytest.raises(InvalidValue):
        OneRun(10, 5, 6)
