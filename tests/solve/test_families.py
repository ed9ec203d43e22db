"""Exponential families around an anchor: their laws, moments and ratios."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from kveil import seeding
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box

FALSE_ALARM = 1e-7  # had the seeds not been public and fixed: this passes for good once it has
ANCHOR = np.array([[2.0, 5.0, 3.0]])
COVARIANCE = [[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]]
N = 2000


def draws(density, anchor=ANCHOR, n=N):
    rng = np.random.default_rng(7)
    return np.array([density.draw(anchor, 0, rng) for _ in range(n)])


def continuous(values, law):
    return stats.kstest(values, law.cdf).pvalue


def counted(values, law):
    """Chi-square of whole numbers, cells of at least eight expected ones."""
    edges = [x for x in range(int(law.ppf(1 - 8 / N)) + 1) if law.cdf(x) * N >= 8]
    expected = np.diff([0, *law.cdf(edges[:-1]), 1]) * N
    seen = np.histogram(values, [-np.inf, *(np.array(edges[:-1]) + 0.5), np.inf])[0]
    return stats.chisquare(seen, expected).pvalue


def of_column(kind, column, wrong=1.0):
    """The law of one column, by scipy; `wrong` scales its width: a density that is that much too wide or too narrow."""
    mean = ANCHOR[0, column]
    return {
        "round": lambda: stats.norm(mean, 0.7 * wrong),
        "full": lambda: stats.norm(mean, wrong * math.sqrt(COVARIANCE[column][column])),
        "poisson": lambda: stats.poisson(mean * wrong),
        "gamma": lambda: stats.gamma(4.0 / wrong**2, scale=mean * wrong**2 / 4.0),
        "multinomial": lambda: stats.binom(30, min(1.0, mean / 10 * wrong)),
    }[kind]()


DENSITIES = {
    "round": seeding.Gaussian(0.7),
    "full": seeding.Gaussian(covariance=COVARIANCE),
    "poisson": seeding.Poisson(),
    "gamma": seeding.Gamma(4.0),
    "multinomial": seeding.Multinomial(30),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", DENSITIES)
def test_every_column_follows_its_law(kind):
    """And a law that is 30 % wider (of counts: with a mean 30 % larger) does not fit them, in any column."""
    found = draws(DENSITIES[kind]) * (30 if kind == "multinomial" else 1)
    fit = counted if kind in ("poisson", "multinomial") else continuous
    for column in range(3):
        assert fit(found[:, column], of_column(kind, column)) > FALSE_ALARM
        assert fit(found[:, column], of_column(kind, column, 1.3)) < FALSE_ALARM


@pytest.mark.statistical
def test_columns_are_independent_or_as_the_covariance_says():
    """A correlation of 2000 draws is within 5.4 / sqrt(2000) of its own with probability above 1 - 1e-7, by the normal law."""
    for kind in DENSITIES:
        expected = np.eye(3)
        if kind == "full":
            expected = np.array(COVARIANCE) / np.sqrt(np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)))
        if kind == "multinomial":
            shares = ANCHOR[0] / 10
            odds = np.sqrt(np.outer(shares / (1 - shares), shares / (1 - shares)))
            expected = np.where(np.eye(3) == 1, 1.0, -odds)
        assert np.abs(np.corrcoef(draws(DENSITIES[kind]).T) - expected).max() < 5.4 / math.sqrt(N)
    assert abs(COVARIANCE[0][1] / math.sqrt(2.0)) > 2 * 5.4 / math.sqrt(N)  # independent noise would be seen


@pytest.mark.parametrize("kind", DENSITIES)
def test_moments_are_those_of_the_laws(kind):
    rows, scale = np.vstack([ANCHOR, ANCHOR]), 30 if kind == "multinomial" else 1
    laws = [of_column(kind, column) for column in range(3)]
    assert DENSITIES[kind].mean(rows)[1] * scale == pytest.approx([law.mean() for law in laws])
    assert DENSITIES[kind].variance(rows) * scale**2 == pytest.approx([sum(law.var() for law in laws)] * 2)


def test_only_frequencies_have_a_bounded_ratio():
    """By all corners of a box: densities of 3 trials, at every outcome."""
    box = Box(np.array([1.0, 2.0, 1.0]), np.array([2.0, 6.0, 3.0]))
    corners = np.array(list(product([1.0, 2.0], [2.0, 6.0], [1.0, 3.0])))
    shares = corners / corners.sum(axis=1, keepdims=True)
    outcomes = [x for x in product(range(4), repeat=3) if sum(x) == 3]
    logs = np.array([[stats.multinomial(3, share).logpmf(x) for x in outcomes] for share in shares])
    assert seeding.Multinomial(3).log_ratio(box) == pytest.approx(np.ptp(logs, axis=0).max())
    assert seeding.Multinomial(3).log_ratio(Box([0.0, 1.0], [1.0, 2.0])) == math.inf
    for density in (seeding.Gaussian(1.0), seeding.Poisson(), seeding.Gamma(1.0)):
        assert density.log_ratio(box) == math.inf


def test_they_are_plugs_of_the_loop():
    rows = np.random.default_rng(0).uniform(1, 9, (40, 3))
    for density in DENSITIES.values():
        found = seeding.kvariates(rows, 3, density=density, divergence=seeding.ItakuraSaito(0.01), random_state=1)
        assert found.centers.shape == (3, 3)
        assert not np.isin(found.centers, rows).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: seeding.Gaussian(),
        lambda: seeding.Gaussian(1.0, covariance=[[1.0]]),
        lambda: seeding.Gaussian(0.0),
        lambda: seeding.Gaussian(-1.0),
        lambda: seeding.Gaussian(math.nan),
        lambda: seeding.Gaussian(covariance=[[1.0, 2.0], [2.0, 1.0]]),
        lambda: seeding.Gaussian(covariance=[1.0]),
        lambda: seeding.kvariates(ANCHOR, 1, density=seeding.Gaussian(covariance=np.eye(2))),
        lambda: seeding.Gamma(0.0),
        lambda: seeding.Multinomial(0),
        lambda: seeding.Multinomial(2.5),
        lambda: seeding.kvariates([[-1.0]], 1, density=seeding.Poisson()),
        lambda: seeding.kvariates([[0.0]], 1, density=seeding.Gamma(1.0)),
        lambda: seeding.kvariates([[0.0]], 1, density=seeding.Multinomial(2)),
    ],
)
def test_parameters_and_rows_outside_their_range_are_refused(make):
    with pytest.raises(InvalidValue, match=r"must|pass either|for rows|column"):
        make()
