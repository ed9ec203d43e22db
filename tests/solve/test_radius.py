"""The clip radius of a step, from released distances."""

import numpy as np
import pytest

from kveil.solve.radius import LEAST_KEPT, balanced, excess, kept_part, quantile
from kveil.solve.synopsis import Distances

OUTER = 16.0 * 2.0 ** (-np.arange(40) / 4)


def at(rows, deviation=0.0):
    """Rows by the number of their bin."""
    counts = np.zeros(40)
    counts[list(rows)] = list(rows.values())
    return Distances(counts, deviation, OUTER, is_pure=False)


def test_a_quantile_is_the_outer_edge_of_its_bin():
    assert quantile(at({4: 10, 8: 90}), 0.85) == OUTER[8]
    assert quantile(at({4: 20, 8: 80}), 0.85) == OUTER[4]
    assert quantile(at({4: 20, 8: 80}, deviation=11.0), 0.85) == OUTER[8]  # the outer count may be noise
    assert quantile(at({8: 1}, deviation=1.0), 0.85) is None


def test_excess_is_the_mean_of_what_rows_are_longer():
    found = excess(at({4: 25, 8: 75}), np.array([0.0, 4.0, 16.0]))
    middles = OUTER[[4, 8]] * 2**-0.125
    assert found == pytest.approx([middles @ [0.25, 0.75], 0.25 * (middles[0] - 4), 0.0])
    assert excess(at({8: 1}, deviation=1.0), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_less_noise_means_a_wider_radius():
    far = at({0: 50, 8: 950})
    radii = [balanced(far, noise) for noise in (0.0, 0.003, 0.03, 0.3)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] >= OUTER[0] * 2**-0.125  # without noise nothing is clipped
    assert radii[-1] < OUTER[8]


def test_the_radius_minimises_noise_and_clipping_together():
    """Every row at one distance t, so the sum (s r)² + (t - r)² is least at t/(1 + s²)."""
    middle, noise = OUTER[8] * 2**-0.125, 0.5
    assert balanced(at({8: 1000}), noise) == pytest.approx(middle / (1 + noise**2), rel=0.05)


def test_noise_as_long_as_the_radius_leaves_the_quantile():
    assert balanced(at({4: 10, 8: 90}), 1.0) == OUTER[8]
    assert balanced(at({8: 1}, deviation=1.0), 0.1) is None


def test_what_clipping_leaves_of_rows_is_their_mean_length_over_the_radius():
    counts = np.zeros(40)
    counts[[8, 12]] = 300, 100  # between 1.68 and 2, and between .84 and 1
    distances = Distances(counts, 1.0, 8.0 * 2.0 ** (-np.arange(40) / 4), True)
    long, short = distances.middles[[8, 12]]
    assert kept_part(distances, 0.5) == pytest.approx((300 * 0.5 / long + 100 * 0.5 / short) / 400)
    assert kept_part(distances, short) == pytest.approx((300 * short / long + 100) / 400)
    assert kept_part(distances, 3.0) == 1.0


def test_nothing_is_made_longer_where_no_distance_shows_or_noise_says_too_much():
    nothing = Distances(np.full(40, -1.0), 1.0, 8.0 * 2.0 ** (-np.arange(40) / 4), True)
    assert kept_part(nothing, 0.1) == 1.0
    far = Distances(np.eye(1, 40, 0).ravel() * 100, 1.0, 8.0 * 2.0 ** (-np.arange(40) / 4), True)
    assert kept_part(far, 1e-6) == LEAST_KEPT
