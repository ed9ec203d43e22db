"""What to expect, when to refuse, and the conditional figure of a shuffler."""

from fractions import Fraction
from math import ceil, exp, inf, log2, sqrt

import numpy as np
import pytest
from scipy.stats import binom

from kveil.collect.forecast import as_table, plan
from kveil.collect.lae import PAPER, Lae
from kveil.collect.queries import Terms
from kveil.collect.shuffle import clone_delta, closed_form, conditional, numerical, shuffled
from kveil.errors import InvalidValue


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("n", 0), ("n", 1e6), ("n", "5"), ("n", 2**40), ("k", 0), ("k", 5000), ("k", None), ("n_columns", 10**8), ("n_columns", 0),
     ("epsilon", 0), ("epsilon", -1), ("epsilon", "1"), ("epsilon", 20), ("epsilon", float("nan")), ("cost", 0), ("cost", 2),
     ("cost", True), ("protocol", "gird"), ("protocol", None), ("preset", "Paper")],
)  # fmt: skip
def test_public_numbers_that_make_no_sense_are_refused_by_name(name, wrong):
    word = {"n_columns": "columns"}.get(name, name)
    with pytest.raises(InvalidValue, match=rf"\b{word}\b.* must be "):
        plan(**{"n": 10**6, "k": 8, "n_columns": 10, "epsilon": 1, name: wrong})


def test_numbers_of_numpy_make_the_same_plan():
    given = plan(np.int32(100_000), np.int8(100), np.int64(10), np.float32(0.5))
    assert given == plan(100_000, 100, 10, 0.5) == plan(100_000, 100, 10, Fraction(1, 2))
    assert type(given.terms.n) is int


def test_what_people_are_needed_for_depends_on_the_protocol():
    told = [dict(as_table(plan(10**5, 4, columns, 1)))["people needed"] for columns in (1, 5)]
    assert told[0].endswith("for clusters of equal share to stand out")
    assert told[1].endswith("for a cost within a few per cent")
    assert "people needed" not in dict(as_table(plan(10**5, 4, 5, 1, "lma")))
    for preset in ("lite", "paper"):
        assert dict(as_table(plan(10**5, 4, 2, 1, "lae", preset)))["people needed"].endswith("buckets to be seen")


@pytest.mark.parametrize(
    ("n", "k", "d", "epsilon", "expected"),
    [(10**6, 8, 10, 1, "refine"), (10**5, 4, 2, 4, "zoom"), (10**6, 8, 3, 1, "zoom"), (20_000, 8, 3, 1, "refine"),
     (10**5, 4, 1, 1, "grid"), (10**6, 4, 4, 1, "refine"), (140_000, 8, 2, 1, "refine"), (10**5, 4, 2, 1, "refine")],
)  # fmt: skip
def test_auto_follows_the_public_rule(n, k, d, epsilon, expected):
    assert plan(n, k, d, epsilon).protocol == expected


MEASURED = [
    (10**6, 8, 10, 1, 1.066), (10**6, 8, 10, 2, 1.006), (10**6, 8, 10, 0.5, 1.45), (10**6, 10, 20, 1, 1.33),
    (10**6, 10, 20, 2, 1.03),
    (10**5, 8, 5, 4, 1.03), (10**5, 8, 10, 2, 1.15), (10**5, 10, 20, 2, 2.6), (10**5, 10, 20, 1, 9.1), (10**5, 16, 10, 2, 5.3),
    (10**5, 16, 2, 2, 1.26), (10**6, 16, 3, 1, 1.28), (10**6, 8, 2, 1, 1.02),
]  # fmt: skip


@pytest.mark.parametrize(("n", "k", "d", "epsilon", "measured"), MEASURED)
def test_the_forecast_is_near_what_was_measured(n, k, d, epsilon, measured):
    """Medians of a few campaigns each: the excess within a factor of 2.5, or 0.1."""
    excess = plan(n, k, d, epsilon).excess
    assert (measured - 1) / 2.5 - 0.1 <= excess <= (measured - 1) * 2.5 + 0.1


def test_the_excess_in_two_columns_is_a_power_of_quality_and_of_the_usual_cost_over_the_cost():
    """k = 4: the usual cost is 0.12 / 4 = 0.03. Half of it costs 2**0.6 times as much more, and twice of it as much less."""
    usual = plan(100_000, 4, 2, 1, "refine")
    assert usual.excess == pytest.approx(6.5 * usual.quality**-0.64)
    for cost, factor in ((0.03, 1.0), (0.015, 2**0.6), (0.06, 2**-0.6)):
        assert plan(100_000, 4, 2, 1, "refine", cost=cost).excess == pytest.approx(factor * usual.excess)


def test_narrower_clusters_are_expected_to_cost_more_in_cells_of_the_same_width():
    """Three columns: cells of a grid at depth 12 have side 3/16; a quarter of cell**2/(4 cost) is what it is expected to lose."""
    ratios = [plan(140_000, 8, 3, 1, "grid", cost=cost).ratio for cost in (0.0288, 0.0144, 0.0072)]
    assert ratios == sorted(ratios)
    assert ratios[2] - ratios[1] == pytest.approx((3 / 16) ** 2 / 16 * (1 / 0.0072 - 1 / 0.0144))


@pytest.mark.parametrize(
    ("d", "protocol"),
    [
        (1, "grid"),
        (2, "grid"),
        (2, "zoom"),
        (3, "zoom"),
        (2, "refine"),
        (3, "grid"),
        (3, "refine"),
        (4, "refine"),
        (10, "refine"),
    ],
)
def test_a_forecast_has_a_range_which_is_narrower_if_the_cost_is_known(d, protocol):
    blind, given = plan(10**6, 8, d, 1, protocol), plan(10**6, 8, d, 1, protocol, cost=0.02)
    for told in (blind, given):
        assert 1 < told.ratio_range[0] < told.ratio < told.ratio_range[1] <= 1 / 0.0144
    assert np.diff(np.log(np.subtract(given.ratio_range, 1))) <= np.diff(np.log(np.subtract(blind.ratio_range, 1)))
    assert f"{blind.ratio_range[0]:.3g} to {blind.ratio_range[1]:.3g} times" in dict(as_table(blind))["expect"]


def test_no_range_is_told_of_protocols_that_were_not_tried_on_many_tables():
    assert plan(10**6, 8, 4, 1, "lae").ratio_range is plan(10**6, 8, 4, 1, "lma").ratio_range is None


def test_no_forecast_passes_the_cost_of_one_centre_in_the_middle():
    told = plan(100, 8, 2, 0.1, "refine", cost=0.5)
    assert told.ratio == told.ratio_range[1] == 2.0


# Table, people, k, columns, epsilon, cost without privacy, and the median of three campaigns over it: of refinement at epsilon 1,
# of one grid at epsilon 4.
FOUND = [
    ("s1", 10**5, 8, 2, 1, 0.0223, 1.109), ("s1", 10**5, 8, 2, 4, 0.0223, 1.006), ("s2", 10**5, 8, 2, 1, 0.0251, 1.148),
    ("s2", 10**5, 8, 2, 4, 0.0251, 1.024), ("s4", 10**5, 8, 2, 1, 0.0178, 1.218), ("s4", 10**5, 8, 2, 4, 0.0178, 1.033),
    ("a1", 10**5, 8, 2, 1, 0.0179, 1.279), ("a1", 10**5, 8, 2, 4, 0.0179, 1.022), ("birch1", 10**5, 8, 2, 1, 0.0361, 1.144),
    ("birch1", 10**5, 8, 2, 4, 0.0361, 1.025), ("birch3", 10**5, 8, 2, 1, 0.0259, 1.197),
    ("birch3", 10**5, 8, 2, 4, 0.0259, 1.026), ("unbalance", 10**5, 8, 2, 1, 0.000606, 20.795),
    ("unbalance", 10**5, 8, 2, 4, 0.000606, 3.577), ("uk", 10**5, 8, 2, 1, 0.0132, 1.331),
    ("uk", 10**5, 8, 2, 4, 0.0132, 1.083), ("cities", 10**5, 8, 2, 1, 0.00769, 1.385),
    ("cities", 10**5, 8, 2, 4, 0.00769, 1.040), ("city", 10**5, 8, 2, 1, 0.00348, 1.507),
    ("city", 10**5, 8, 2, 4, 0.00348, 1.213), ("s1", 10**5, 15, 2, 1, 0.00412, 2.117), ("s1", 10**5, 15, 2, 4, 0.00412, 1.028),
    ("s2", 10**5, 15, 2, 1, 0.00595, 1.946), ("s2", 10**5, 15, 2, 4, 0.00595, 1.014), ("s4", 10**5, 15, 2, 1, 0.00765, 1.277),
    ("s4", 10**5, 15, 2, 4, 0.00765, 1.052), ("a1", 10**5, 15, 2, 1, 0.00692, 1.528), ("a1", 10**5, 15, 2, 4, 0.00692, 0.990),
    ("birch1", 10**5, 15, 2, 1, 0.0188, 1.233), ("birch1", 10**5, 15, 2, 4, 0.0188, 1.030),
    ("birch3", 10**5, 15, 2, 1, 0.0112, 1.294), ("birch3", 10**5, 15, 2, 4, 0.0112, 1.022),
    ("unbalance", 10**5, 15, 2, 1, 0.000402, 13.782), ("unbalance", 10**5, 15, 2, 4, 0.000402, 3.427),
    ("uk", 10**5, 15, 2, 1, 0.00683, 1.628), ("uk", 10**5, 15, 2, 4, 0.00683, 1.187),
    ("cities", 10**5, 15, 2, 1, 0.00358, 1.936), ("cities", 10**5, 15, 2, 4, 0.00358, 1.261),
    ("city", 10**5, 15, 2, 1, 0.00187, 2.530), ("city", 10**5, 15, 2, 4, 0.00187, 1.258),
]  # fmt: skip


# The same of "zoom": medians of several campaigns each.
ZOOMED = [
    ("s1", 50000, 8, 2, 4, 0.0192, 1.015), ("s1", 200000, 8, 2, 2, 0.0192, 1.014), ("s1", 100000, 15, 2, 4, 0.00357, 1.026),
    ("s2", 50000, 8, 2, 4, 0.0216, 1.050), ("s2", 200000, 8, 2, 2, 0.0215, 1.047), ("s2", 100000, 15, 2, 4, 0.00529, 1.025),
    ("s4", 50000, 8, 2, 4, 0.0148, 1.053), ("s4", 200000, 8, 2, 2, 0.0149, 1.055), ("s4", 100000, 15, 2, 4, 0.00631, 1.030),
    ("a1", 50000, 8, 2, 4, 0.0112, 1.021), ("a1", 100000, 15, 2, 4, 0.00417, 1.102), ("birch1", 50000, 8, 2, 4, 0.0362, 1.022),
    ("birch1", 200000, 8, 2, 2, 0.0363, 1.031), ("birch1", 100000, 15, 2, 4, 0.0189, 1.028),
    ("birch3", 50000, 8, 2, 4, 0.0231, 1.009), ("birch3", 200000, 8, 2, 2, 0.0232, 1.015),
    ("birch3", 100000, 15, 2, 4, 0.00969, 1.044), ("unbalance", 50000, 8, 2, 4, 7.37e-05, 2.852),
    ("unbalance", 200000, 8, 2, 2, 7.36e-05, 4.016), ("unbalance", 100000, 15, 2, 4, 4.92e-05, 2.266),
    ("uk", 50000, 8, 2, 4, 0.0135, 1.052), ("uk", 200000, 8, 2, 2, 0.0134, 1.031), ("uk", 100000, 15, 2, 4, 0.00696, 1.092),
    ("cities", 50000, 8, 2, 4, 0.00782, 1.038), ("cities", 200000, 8, 2, 2, 0.00782, 1.020),
    ("cities", 100000, 15, 2, 4, 0.00358, 1.038), ("london", 50000, 8, 2, 4, 0.00375, 1.081),
    ("london", 200000, 8, 2, 2, 0.00377, 1.214), ("london", 100000, 15, 2, 4, 0.002, 1.240),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "protocol"), [(FOUND, None), (ZOOMED, "zoom")], ids=["refine and grid", "zoom"])
def test_four_campaigns_of_five_lie_in_the_range_of_the_forecast_and_half_of_them_near_it(rows, protocol):
    """Recorded campaigns on tables of two columns; near is within 0.1, or a fifth."""
    inside, near = [], []
    for _, n, k, d, epsilon, cost, found in rows:
        told = plan(n, k, d, epsilon, protocol or ("refine" if epsilon == 1 else "grid"), cost=cost)
        inside.append(told.ratio_range[0] <= found <= told.ratio_range[1])
        near.append(abs(np.log(told.ratio / found)) <= 0.2 or abs(told.ratio - found) <= 0.1)
    assert np.mean(inside) >= 0.75
    assert np.mean(near) >= 0.6


def test_more_people_and_a_larger_epsilon_promise_a_lower_cost():
    for d in (2, 10):
        assert plan(10**6, 8, d, 1).excess < plan(10**5, 8, d, 1).excess
        assert plan(10**6, 8, d, 2).excess < plan(10**6, 8, d, 1).excess
        assert plan(10**6, 8, d, 1).min_detectable < plan(10**5, 8, d, 1).min_detectable


@pytest.mark.parametrize(
    ("n", "k", "d", "epsilon"), [(10**5, 4, 2, 0.01), (1000, 8, 10, 1), (10**5, 16, 20, 0.5), (500, 8, 3, 1)]
)
def test_auto_refuses_where_nothing_could_be_learned_and_a_named_protocol_warns(n, k, d, epsilon):
    forecast = plan(n, k, d, epsilon)
    with pytest.raises(InvalidValue, match="too few people"):
        forecast.check()
    named = plan(n, k, d, epsilon, forecast.protocol)
    assert named.check() is named
    assert any(text.startswith("noise_dominated") for text in named.warnings)


def test_between_good_and_hopeless_there_are_warnings_of_growing_weight():
    told = [plan(n, 8, 10, 1).warnings for n in (2_000_000, 600_000, 200_000, 60_000)]
    assert told[0] == told[1] == ()
    assert "a good deal more" in told[2][0]
    assert "several times" in told[3][0]
    assert all(plan(n, 8, 10, 1).refusal is None for n in (600_000, 60_000))


def test_the_paper_s_constants_need_billions_of_people():
    """Published: about 2.3e9 at k = 8, d = 4, epsilon 1; and the lite preset about a thousandth of that."""
    paper, lite = plan(10**6, 8, 4, 1, "lae", "paper"), plan(10**6, 8, 4, 1, "lae")
    assert paper.people_needed == pytest.approx(2.3e9, rel=0.03)
    assert lite.people_needed < 5e6
    assert paper.warnings
    families = sum(1 for _ in Lae(Terms(10**6, 8, 4, Fraction(1)), b"", PAPER).parts())
    printed = ceil(log2(10**6 / sqrt(8 * 10**6))) * 20 * 7 * 17  # F, rounded up; L = lg n; M; and R with the rotated grid's p(1)
    assert (families, printed) == (2_574, 21_420)
    assert printed / families * paper.people_needed == pytest.approx(19e9, rel=0.03)


def test_a_plan_says_what_a_campaign_costs_everyone():
    forecast = plan(10**6, 8, 10, 1)
    assert (forecast.rounds, forecast.bytes, forecast.people) == (4, 22, (2e5, 3e5, 2.5e5, 2.5e5))
    lines = dict(as_table(forecast))
    assert lines["protocol"].startswith("refine")
    assert "1.0" in lines["expect"]
    assert "refused" in dict(as_table(plan(1000, 8, 10, 1)))


@pytest.mark.parametrize(
    "given", [("magic",), ("lae", "printed"), ("grid", "paper"), (None,)],
)  # fmt: skip
def test_unknown_protocols_and_presets_are_refused(given):
    with pytest.raises(InvalidValue):
        plan(1000, 2, 2, 1, *given)


CLOSED = {
    10**4: (0.106, 0.241, 0.555, inf, inf),
    10**5: (0.035, 0.082, 0.210, 0.591, inf),
    10**6: (0.011, 0.027, 0.071, 0.226, 0.539),
}
NUMERICAL = {
    10**4: (0.027, 0.069, 0.197, 0.755),
    10**5: (0.008, 0.021, 0.059, 0.215, 0.657),
    10**6: (0.002, 0.006, 0.018, 0.064, 0.190),
}


@pytest.mark.parametrize("n", CLOSED)
def test_the_shuffled_figures_are_the_published_ones(n):
    epsilons = (0.5, 1.0, 2.0, 4.0, 6.0)
    assert [closed_form(e, n) for e in epsilons] == pytest.approx(CLOSED[n], abs=6e-4)
    assert [numerical(e, n) for e in epsilons[: len(NUMERICAL[n])]] == pytest.approx(NUMERICAL[n], abs=1e-3, rel=0.01)


def test_the_divergence_is_at_least_that_of_all_pairs_of_counts():
    """Brute force over C, A and B; ours bounds it from above, and closely."""
    epsilon, n, central = 1.0, 60, 0.4
    p = exp(epsilon) / (1 + exp(epsilon))
    first, second = {}, {}
    for c in range(n):
        for a in range(c + 1):
            chance = binom.pmf(c, n - 1, exp(-epsilon)) * binom.pmf(a, c, 0.5)
            for b, weight in ((1, p), (0, 1 - p)):
                one, two = (a + b, c - a + 1 - b), (a + 1 - b, c - a + b)
                first[one] = first.get(one, 0) + chance * weight
                second[two] = second.get(two, 0) + chance * weight
    exact = sum(max(0.0, first[x] - exp(central) * second.get(x, 0.0)) for x in first)
    assert exact * (1 - 1e-9) <= clone_delta(central, epsilon, n) <= exact * 1.001 + 1e-12


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 6.0, 10.0])
def test_the_figure_is_one_that_the_divergence_proves(epsilon):
    """A root finder stops on either side of a root; the figure must lie where the divergence is at most delta."""
    for n in (2, 50, 10**4, 10**7):
        for delta in (1e-6, 1e-8, 1e-12):
            figure = numerical(epsilon, n, delta)
            assert figure == epsilon or clone_delta(figure, epsilon, n) <= delta


def k_ary_counts(chances, n):
    """Chances of all pairs (how many reports are 0, how many are 1), for reports with the given chances of 0 and 1."""
    law = np.zeros((n + 1, n + 1))
    law[0, 0] = 1.0
    for zero, one in chances:
        law = law * (1 - zero - one) + zero * np.roll(law, 1, axis=0) + one * np.roll(law, 1, axis=1)
    return law


@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 60), (1.0, 40), (3.0, 80)])
def test_shuffled_reports_of_a_real_randomiser_keep_within_the_figure(epsilon, n):
    """All counts of 3-ary responses: one person changes from 0 to 1, and all others have 0, 1 or 2, the worst for that person."""
    own, other = exp(epsilon) / (exp(epsilon) + 2), 1 / (exp(epsilon) + 2)
    report = {0: (own, other), 1: (other, own), 2: (other, other)}
    for delta in (1e-2, 1e-5):
        bound = exp(shuffled(epsilon, n, delta))
        for rest in report.values():
            first, second = (k_ary_counts([report[value], *[rest] * (n - 1)], n) for value in (0, 1))
            assert np.maximum(first - bound * second, 0).sum() <= delta
            assert np.maximum(second - bound * first, 0).sum() <= delta


def test_a_shuffler_never_makes_it_worse_and_few_reports_gain_nothing():
    for e in (0.1, 1.0, 8.0):
        for n in (0, 1, 2, 10, 1000):
            assert 0 < shuffled(e, n) <= e
    assert conditional(1.0, 1) == ()
    (line,) = conditional(4.0, 100_000)
    assert line.epsilon == pytest.approx(0.215, abs=1e-3)
    assert (line.delta, "100000 honest devices" in line.assumption) == (1e-8, True)


def test_larger_delta_and_more_reports_promise_more():
    assert shuffled(2.0, 10**5, 1e-6) < shuffled(2.0, 10**5, 1e-8) < shuffled(2.0, 10**4, 1e-8)
    assert np.isfinite(plan(10, 2, 2, Fraction(1, 3)).min_detectable)


def test_a_plan_reads_line_by_line():
    forecast = plan(1_000_000, 8, 10, 1)
    assert str(forecast).splitlines() == [f"{name}: {text}" for name, text in as_table(forecast)]
    assert str(forecast).startswith("protocol: refine")
