"""How often keys occur: unbiased, with the stated variance, by every oracle; and the quick law is that of real reports."""

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest

from kveil.collect import device, oracles
from kveil.collect.answers import Drawn, FromLaw
from kveil.collect.queries import Query
from kveil.partition.public_map import PublicMap

FALSE_ALARM = 1e-6
CENTRES = np.linspace(-0.9, 0.9, 10, dtype=np.float32)[:, None]
SHARES = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05, 0, 0, 0, 0])


def query(kind, n_values):
    return Query(id=0, kind=kind, M=n_values, kappa=1, key_rule="nearest", centres=(CENTRES,))


KINDS = [query("grr", 10), query("olh", 4), query("olh", 2), query("hrr", 2)]


@pytest.mark.parametrize(
    ("epsilon", "hashed", "hadamard"), [("1/2", 15.8, 16.7), ("1", 3.69, 4.68), ("2", 0.725, 1.72), ("4", 0.076, 1.08)]
)
def test_variances_are_the_published_ones(epsilon, hashed, hadamard):
    e = Fraction(epsilon)
    assert oracles.variance("olh", round(exp(e)) + 1, e) == pytest.approx(hashed, rel=5e-3)
    assert oracles.variance("hrr", 2, e) == pytest.approx(hadamard, rel=5e-3)
    for k in (2, 9, 40):
        assert oracles.variance("grr", k, e) == pytest.approx((exp(e) + k - 2) / (exp(e) - 1) ** 2, rel=1e-6)


def test_the_oracle_is_the_one_of_least_variance_but_hadamard_where_it_is_as_good_and_quicker():
    assert oracles.best_oracle(8, Fraction(1)).kind == "grr"
    assert oracles.best_oracle(12, Fraction(1)) == ("olh", 4)
    assert oracles.best_oracle(4096, Fraction(1)) == ("olh", 4)
    assert oracles.best_oracle(4096, Fraction(1, 2)) == ("hrr", 2)
    assert oracles.best_oracle(2048, Fraction(1, 2)).kind == "olh"
    assert oracles.best_oracle(2**40, Fraction(1, 2)).kind == "olh"
    assert oracles.best_oracle(1, Fraction(1)).kind == "olh"


@pytest.mark.statistical
@pytest.mark.parametrize("asked", KINDS, ids=lambda asked: f"{asked.kind}-{asked.M}")
def test_estimates_of_real_reports_are_unbiased(asked):
    """Bernstein: each of 10 estimates strays by more than the bound with chance below 1e-6/10. An estimator that forgets to take
    the expected support of others off is out by thousands."""
    n, epsilon = 60_000, Fraction(1)
    keys = np.repeat(np.arange(10), (SHARES * n).astype(int))
    seeds = np.random.default_rng().integers(0, 2**64, n, dtype=np.uint64)
    values, _ = device.reports(asked, CENTRES[keys].astype(float), seeds, epsilon)
    told = Drawn({0: (seeds, values)}, 1).support(asked, np.arange(10, dtype=np.uint64))
    estimates = oracles.estimates(asked, told, n, epsilon)
    own, other = oracles.chances(asked.kind, asked.M, epsilon)
    unit, tail = 1 / (own - other), log(2 * 10 / FALSE_ALARM)
    for share, estimate in zip(SHARES, estimates, strict=True):
        bound = sqrt(2 * n * oracles.variance(asked.kind, asked.M, epsilon, share) * tail) + 2 / 3 * unit * tail
        assert abs(estimate - share * n) <= bound
    blind = told * unit if asked.kind != "hrr" else (told + n) / 2 * unit
    assert abs(blind[9]) > 2 * bound


@pytest.mark.statistical
@pytest.mark.parametrize("asked", KINDS, ids=lambda asked: f"{asked.kind}-{asked.M}")
def test_the_quick_law_of_support_is_that_of_real_reports(asked):
    """400 rounds of 200 people, by real devices and by the shortcut: a chi-square of homogeneity on sextiles of both together,
    at 1e-9 for 1e-6 claimed; a shortcut that takes the oracle of half the epsilon must fail."""
    rounds, people, epsilon, rng = 400, 200, Fraction(2), np.random.default_rng()
    keys = np.repeat(np.arange(10), (SHARES * people).astype(int))
    points = CENTRES[keys].astype(float)
    seeds = rng.integers(0, 2**64, rounds * people, dtype=np.uint64)
    values, _ = device.reports(asked, np.tile(points, (rounds, 1)), seeds, epsilon)
    looked = np.array([0], dtype=np.uint64)
    real = [
        Drawn({0: (seeds[i : i + people], values[i : i + people])}, 1).support(asked, looked)[0]
        for i in range(0, rounds * people, people)
    ]

    def quick(e):
        return [FromLaw({0: points}, e, rng).support(asked, looked)[0] for _ in range(rounds)]

    assert homogeneity(real, quick(epsilon)) < 60  # chi-square of 5 degrees passes 51 with chance 1e-9
    assert homogeneity(real, quick(epsilon / 2)) > 60


def homogeneity(first, second):
    """Chi-square of two samples of one size on about six cells."""
    both = np.sort(np.concatenate([first, second]))
    edges = np.unique(both[(np.arange(1, 6) * len(both)) // 6])
    a, b = (np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1) for part in (first, second))
    return float(((a - b) ** 2 / np.maximum(a + b, 1)).sum())


def test_blocks_of_reports_add_up_to_all_of_them():
    rng = np.random.default_rng(0)
    one = PublicMap.drawn(2, 2, rng)
    for asked in (*KINDS, Query(id=0, kind="hrr", M=2, kappa=1, key_rule="cell", maps=(one,), depth=5)):
        seeds, values = rng.integers(0, 2**64, 300, dtype=np.uint64), rng.integers(0, asked.M, 300)
        keys = np.arange(asked.n_keys, dtype=np.uint64)
        whole = oracles.support(asked, seeds, values, keys)
        parts = [oracles.support(asked, seeds[part], values[part], keys) for part in (slice(0, 100), slice(100, 300))]
        assert (whole == parts[0] + parts[1]).all()
        order = rng.permutation(300)
        assert (oracles.support(asked, seeds[order], values[order], keys) == whole).all()


def test_hadamard_sums_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    one = PublicMap.drawn(2, 2, rng)
    asked = Query(id=0, kind="hrr", M=2, kappa=1, key_rule="cell", maps=(one,), depth=3)
    seeds, values = rng.integers(0, 2**64, 40, dtype=np.uint64), rng.integers(0, 2, 40)
    from kveil.collect import hashing

    rows = hashing.rows(seeds, 3)
    for key in range(8):
        signs = [(-1) ** (bin(int(row) & key).count("1") + int(value)) for row, value in zip(rows, values, strict=True)]
        assert oracles.support(asked, seeds, values, np.array([key], dtype=np.uint64))[0] == sum(signs)
