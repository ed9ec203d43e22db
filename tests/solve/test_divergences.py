"""Divergences by their definitions, their bounds by search, and seeds drawn with them."""

import math

import numpy as np
import pytest

from kveil import seeding
from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box

MATRIX = [[2.0, 0.5], [0.5, 1.0]]


def bregman(f, gradient, a, c):
    """F(a) - F(c) - <grad F(c), a - c>."""
    return f(a) - f(c) - gradient(c) @ (a - c)


def jensen(f, alpha, p, q):
    gap = alpha * f(p) + (1 - alpha) * f(q) - f(alpha * p + (1 - alpha) * q)
    return gap / (alpha * (1 - alpha)) / math.sqrt(1 + (f(p) - f(q)) ** 2 / ((p - q) @ (p - q)))


def entropy(x):
    return float((x * np.log(x) - x).sum())


def smoothed(x, share=0.01):
    return (1 - share) * x / x.sum() + share / len(x)


CASES = {
    "mahalanobis": (seeding.Mahalanobis(MATRIX), lambda a, c: (a - c) @ np.array(MATRIX) @ (a - c)),
    "kullback-leibler": (seeding.KullbackLeibler(0.01), lambda a, c: bregman(entropy, np.log, smoothed(a), smoothed(c))),
    "itakura-saito": (seeding.ItakuraSaito(0.1), lambda a, c: bregman(lambda x: -np.log(x).sum(), lambda x: -1 / x, a, c)),
    "total squares": (seeding.TotalJensen("squares", 0.3), lambda a, c: jensen(lambda x: x @ x, 0.3, a, c)),
    "total entropy": (seeding.TotalJensen("entropy", 0.5), lambda a, c: jensen(entropy, 0.5, a, c)),
    "total burg": (seeding.TotalJensen("burg", 0.7), lambda a, c: jensen(lambda x: -np.log(x).sum(), 0.7, a, c)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_definition_and_zero_on_the_centre(name):
    divergence, defined = CASES[name]
    rows = np.random.default_rng(0).uniform(0.2, 3.0, (20, 2))
    for center in rows[:3]:
        found = divergence.to_center(rows, center)
        others = (rows != center).any(axis=1)
        assert found[others] == pytest.approx([defined(row, center) for row in rows[others]], rel=1e-9, abs=1e-12)
        assert found[~others] == pytest.approx(0.0, abs=1e-12)
        assert (found >= 0).all()


@pytest.mark.parametrize("name", [*CASES, "squares"])
def test_no_pair_of_the_domain_passes_the_bound(name):
    """Corners and random places; bounds of the Bregman divergences are attained."""
    divergence = seeding.SquaredEuclidean() if name == "squares" else CASES[name][0]
    domain = Box(np.array([0.2, 0.2]), np.array([3.0, 3.0]))
    corners = np.array([[a, b] for a in (0.2, 3.0) for b in (0.2, 3.0)])
    rows = np.vstack([corners, np.random.default_rng(1).uniform(0.2, 3.0, (60, 2))])
    worst = max(divergence.to_center(rows, center).max() for center in rows)
    assert worst <= divergence.bound(domain) * (1 + 1e-12)
    if name in ("itakura-saito", "squares"):
        assert worst == pytest.approx(divergence.bound(domain))
    if name == "kullback-leibler":
        ends = np.eye(2)
        assert divergence.to_center(ends, ends[0]).max() == pytest.approx(divergence.bound(domain))


def test_a_ball_has_its_diameter_and_a_divergence_without_bound_says_so():
    assert seeding.SquaredEuclidean().bound(Ball(np.zeros(3), 2.0)) == 16.0
    assert seeding.TotalJensen("burg").bound(Box([0.0], [1.0])) == math.inf
    assert seeding.TotalJensen("entropy").bound(Box([-1.0], [1.0])) == math.inf
    assert seeding.TotalJensen("entropy").bound(Box([0.0], [2.0])) == pytest.approx(4.0)  # from -1 at 1 to 0 at 0


@pytest.mark.parametrize("name", CASES)
def test_seeds_fall_into_both_of_two_clusters(name):
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.uniform([0.2, 2.8], [0.25, 3.0], (50, 2)), rng.uniform([2.8, 0.2], [3.0, 0.25], (50, 2))])
    for s in range(20):
        centers = seeding.kvariates(rows, 2, divergence=CASES[name][0], random_state=s).centers
        assert sorted(centers[:, 0] > 1) == [False, True]


def test_the_mean_is_the_best_centre_of_a_bregman_divergence():
    """Data first, centre second: moving away from the mean costs more, whatever the generator."""
    rows = np.random.default_rng(3).uniform(0.5, 2.0, (30, 2))
    for name in ("mahalanobis", "itakura-saito"):
        divergence = CASES[name][0]
        at_mean = divergence.to_center(rows, rows.mean(axis=0)).sum()
        for move in ([0.05, 0.0], [0.0, -0.05], [0.03, 0.03]):
            assert divergence.to_center(rows, rows.mean(axis=0) + move).sum() > at_mean


@pytest.mark.parametrize(
    "make",
    [
        lambda: seeding.Mahalanobis([[1.0, 2.0]]),
        lambda: seeding.Mahalanobis([[1.0, 0.0], [0.0, -1.0]]),
        lambda: seeding.Mahalanobis([[1.0, 2.0], [0.0, 1.0]]),
        lambda: seeding.KullbackLeibler(0.0),
        lambda: seeding.ItakuraSaito(0.0),
        lambda: seeding.TotalJensen("cubes"),
        lambda: seeding.TotalJensen(alpha=1.0),
        lambda: seeding.ProductLaplace(0.0),
        lambda: seeding.kvariates([[-1.0, 2.0]], 1, divergence=seeding.KullbackLeibler()),
        lambda: seeding.kvariates([[0.0, 0.0]], 1, divergence=seeding.KullbackLeibler()),
        lambda: seeding.kvariates([[-1.0]], 1, divergence=seeding.TotalJensen("entropy")),
        lambda: seeding.kvariates([[0.0]], 1, divergence=seeding.TotalJensen("burg")),
    ],
)
def test_parameters_and_rows_outside_their_range_are_refused(make):
    with pytest.raises(InvalidValue, match=r"must|for rows"):
        make()


def test_densities_tell_their_ratio():
    box, ball = Box(np.zeros(3), np.array([2.0, 4.0, 6.0])), Ball(np.zeros(4), 3.0)
    assert seeding.ProductLaplace(2.0).log_ratio(box) == pytest.approx(12 / 2)
    assert seeding.ProductLaplace(2.0).log_ratio(ball) == pytest.approx(2 * 3 * math.sqrt(4) / 2, rel=1e-3)
    assert seeding.Dirac().log_ratio(box) == seeding.UniformOver([0]).log_ratio(box) == math.inf
    assert seeding.Dirac().variance(np.zeros((2, 1))).tolist() == [0.0, 0.0]
    assert seeding.Dirac().mean(np.ones((2, 1))).tolist() == [[1.0], [1.0]]


def test_only_a_public_synopsis_sees_records_one_by_one():
    """A synopsis that was made from the rows shows a row by what the others are."""
    assert seeding.Identity().is_recordwise
    assert not seeding.NearestOf([[0.0]]).is_recordwise
    assert seeding.NearestOf([[0.0]], is_public=True).is_recordwise
