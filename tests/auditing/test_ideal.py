"""What an ideal attack would find, held against laws that can be written down."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from kveil.auditing.bound import lower_epsilons
from kveil.auditing.ideal import ideal_bound

RUNS, ERROR = 5000, 5e-4


def bound_of(p, q, delta=0.0):
    return float(lower_epsilons(round(RUNS * p), RUNS, round(RUNS * q), RUNS, delta, ERROR))


def test_one_draw_is_randomised_response():
    right = 1 / (1 + math.exp(-1.0))
    assert ideal_bound([1.0], runs=RUNS, error=ERROR) == pytest.approx(bound_of(right, 1 - right))


def test_two_draws_give_the_best_of_their_events():
    a, b = (1 / (1 + math.exp(-epsilon)) for epsilon in (0.3, 0.7))
    events = [(a * b, (1 - a) * (1 - b)), (b, 1 - b), (1 - (1 - a) * (1 - b), 1 - a * b)]  # both, the second, one of them
    best = max(bound_of(*event) for event in events)
    assert ideal_bound([0.3, 0.7], runs=RUNS, error=ERROR) == pytest.approx(best)
    assert ideal_bound([0.7, 0.3], runs=RUNS, error=ERROR) == pytest.approx(best)


def test_gaussian_noise_gives_the_best_threshold():
    rho, delta = 0.1, 1e-6
    cuts = np.linspace(-3, 3, 601)
    p, q = norm.sf(cuts), norm.sf(cuts + math.sqrt(2 * rho))
    best = float(lower_epsilons(np.round(RUNS * p).astype(int), RUNS, np.round(RUNS * q).astype(int), RUNS, delta, ERROR).max())
    assert ideal_bound([], [rho], runs=RUNS, delta=delta, error=ERROR) == pytest.approx(best, abs=0.01)
    assert ideal_bound([], [rho / 2] * 2, runs=RUNS, delta=delta, error=ERROR) == pytest.approx(best, abs=0.01)


def test_a_budget_in_many_parts_shows_less():
    whole, parts, many = (ideal_bound([1 / n] * n, runs=RUNS, error=ERROR) for n in (1, 4, 16))
    assert 0.85 < whole < 1
    assert whole > parts > many > 0
    assert ideal_bound([], runs=RUNS, error=ERROR) == 0.0
