"""What an ideal attack would find, held against laws that can be written down."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from kveil.auditing.best_event import best_event
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


def test_laplace_noise_gives_half_of_the_outcomes_all_that_they_can():
    best = bound_of(0.5, math.exp(-1.0) / 2)
    assert best <= ideal_bound([], laplace=[1.0], runs=RUNS, error=ERROR) < best + 0.05  # some more, nearer to the middle
    assert ideal_bound([], laplace=[1.0], runs=RUNS, error=ERROR) < ideal_bound([1.0], runs=RUNS, error=ERROR)


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


def test_noise_of_a_vector_allows_no_bound_of_seven_tenths():
    """Why "lloyd, delta" is not asked for one. Density exp(-epsilon |x|) in 4 columns, shifted by 1: where x is long, the loss is
    epsilon times a cosine. Beside it a count, as randomised response; both as `make audit` has them."""
    of_count, of_vector, n = 0.147, 0.853, 200_000
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(n, 4))
    x = ways / np.linalg.norm(ways, axis=1, keepdims=True) * rng.gamma(4, 1 / of_vector, size=(n, 1))
    losses = of_vector * (np.linalg.norm(x - np.eye(4)[0], axis=1) - np.linalg.norm(x, axis=1))
    right = 1 / (1 + math.exp(-of_count))
    both = np.concatenate([losses + of_count, losses - of_count])
    order = np.argsort(-both)
    chances = np.repeat([right, 1 - right], n)[order] / n
    law = np.column_stack([chances, chances * np.exp(-both[order])])
    groups = np.add.reduceat(law, np.arange(0, 2 * n, 400), axis=0)
    assert groups.sum(axis=0) == pytest.approx([1.0, 1.0], abs=0.01)
    assert best_event(groups, runs=10_000) < 0.6


def test_a_replaced_row_that_moves_two_counts_shows_no_more_than_two_halves():
    """Two counts with noise for a move of 2 in all, one of which goes up and one down, by the law of the noise itself."""
    rate, steps = 0.45, np.arange(-60, 61)
    noise = np.exp(-rate * np.abs(steps))
    here, there = np.append(0.0, noise) / noise.sum(), np.append(noise, 0.0) / noise.sum()
    law = np.column_stack([np.outer(here, there).ravel(), np.outer(there, here).ravel()])
    law = law[(law > 0).all(axis=1)]
    assert best_event(law, runs=RUNS) == pytest.approx(ideal_bound([rate, rate], runs=RUNS), abs=0.02)
    assert ideal_bound([rate, rate], runs=RUNS) < ideal_bound([2 * rate], runs=RUNS) - 0.05
