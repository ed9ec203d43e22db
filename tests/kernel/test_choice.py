"""The exponential mechanism: its law by enumeration, with real entropy, and the privacy that follows from it."""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vault_choices import log_law, realised_law
from vault_laws import chi_square, chi_square_miss
from vault_sources import Served

from kveil.errors import InvalidValue
from kveil.kernel import choice
from kveil.kernel.choice import select, selection
from kveil.kernel.exact import SystemEntropy

SYSTEM = SystemEntropy()

CASES = {
    "a < b": ([0, 1, 5, 30, 200, 1000], Fraction(1, 100)),
    "a > b": ([0, 1, 2, 5, 9], Fraction(7, 2)),
    "a = b": ([3, 4, 4, 6], Fraction(1)),
    "negative costs": ([-1000, -7, -1, 0, 13], Fraction(3, 64)),
    "all negative": ([-(2**40), -(2**40) + 5, -(2**40) + 999], Fraction(1, 37)),
    "ties": ([5, 5, 5, 5], Fraction(2, 3)),
    "one": ([42], Fraction(1, 9)),
    "overflow": ([0, 250, 251, 10**6, 2**61], Fraction(1)),
    "overflow at a fine rate": ([-(2**61), 2**61, 2**61 + 1], Fraction(5, 2**30)),
    "far apart and steep": ([0, 2**61], Fraction(1000)),
    "rate below 2**-64": ([-(2**61), 0, 2**61], Fraction(1, 2**92)),
    "not in lowest buckets": ([10**9, 10**9 + 64, 10**9 + 63, 10**9 + 65, 10**9 + 128], Fraction(1, 65)),
}


@pytest.mark.parametrize(("costs", "rate"), CASES.values(), ids=CASES)
def test_the_law_of_a_selection_is_exactly_exponential_by_enumeration(costs, rate, monkeypatch):
    """No sampling: exponent_i - rate cost_i must be one rational for all i."""
    exponents = realised_law(lambda: select(SYSTEM, np.array(costs), rate), monkeypatch)
    assert sorted(exponents) == list(range(len(costs)))
    assert len({exponents[i] - rate * cost for i, cost in enumerate(costs)}) == 1


ANY_COSTS = st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=8)
ANY_RATE = st.one_of(st.fractions(Fraction(1, 10**6), 50), st.builds(Fraction, st.integers(1, 2**40), st.integers(1, 2**80)))


@given(ANY_COSTS, ANY_RATE)
@settings(max_examples=60, deadline=None)
def test_the_law_is_exact_for_any_costs_and_any_rate(costs, rate):
    with pytest.MonkeyPatch.context() as monkeypatch:
        exponents = realised_law(lambda: select(SYSTEM, np.array(costs), rate), monkeypatch)
    assert len({exponents[i] - rate * cost for i, cost in enumerate(costs)}) == 1
    assert len(exponents) == len(costs)


def test_a_law_with_a_fault_is_noticed_by_the_enumeration(monkeypatch):
    """The guard: buckets that are wider than the shift says break the exactness, and the enumeration says so."""
    real = choice.exp_bounds
    monkeypatch.setattr(choice, "exp_bounds", lambda num, den, prec: real(2 * num, den, prec))
    with pytest.raises(AssertionError):
        realised_law(lambda: select(SYSTEM, np.array([0, 3, 9]), Fraction(1, 3)), monkeypatch)


def test_a_refused_proposal_starts_again_with_a_new_uniform(monkeypatch):
    proposals, coins = iter([0, 5 << 160, 0]), iter([False, False, True])
    monkeypatch.setattr(choice, "uniform_below", lambda source, total: next(proposals) % total)
    monkeypatch.setattr(choice, "bernoulli_exp", lambda *args, **more: next(coins))
    assert select(SYSTEM, np.array([1, 1, 1]), Fraction(1)) == 0
    assert next(coins, None) is None


def test_four_costs_by_hand_with_scripted_bits():
    """Costs 0, 0, 1, 1 at rate 1: bucket 0 weighs 2 x 2**160, bucket 1 weighs 2 x ceil(2**160/e). Bits are served by hand."""
    c1 = choice.exp_bounds(1, 1, 160)[1]
    total = 2 * 2**160 + 2 * c1
    width = (total - 1).bit_length()
    costs = np.array([0, 1, 0, 1])
    yes = 0
    for r, index in [(0, 0), (2**160 - 1, 0), (2**160, 2), (2**161, 1), (2**161 + c1, 3), (total - 1, 3)]:
        source = Served(r, yes)
        assert select(source, costs, Fraction(1)) == index
        assert source.asked == [width, 64]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("costs", "rate"), [([0, 3, 5, 9, 9, 20], Fraction(1, 6)), ([-4, -3, -3, -1], Fraction(9, 8))], ids=["a < b", "a > b"]
)
def test_selections_with_real_entropy_follow_the_exponential_law(costs, rate):
    """False alarm at most 1e-6 (vault_laws). Catches a rate 30 % off with probability above 1 - 1e-7."""
    n, costs = 15_000, np.array(costs)

    def law(at):
        weights = np.exp(-costs * float(at))
        return weights / weights.sum()

    def drawn(at):
        return np.bincount([select(SYSTEM, costs, at) for _ in range(n)], minlength=len(costs))

    assert chi_square(drawn(rate), law(rate)).passes
    twin = rate * Fraction(13, 10)
    assert chi_square_miss(n, law(rate), law(twin)) < 1e-7
    assert not chi_square(drawn(twin), law(rate)).passes


EPSILON = Fraction(1)
LINE = range(5)  # places of points and of candidate centres; no distance passes 4


def law_on_the_line(points, cost_range, monkeypatch):
    costs = np.array([sum(abs(center - x) for x in points) for center in LINE])
    measurement = selection("centre", cost_range, EPSILON)
    return log_law(realised_law(lambda: measurement.draw(SYSTEM, costs), monkeypatch))


def neighbours(relation):
    """Every pair of data sets with at most three points on the line."""
    sets = [points for size in range(4) for points in combinations_with_replacement(LINE, size)]
    if relation == "add-remove":
        return [(few, tuple(sorted((*few, x)))) for few in sets if len(few) < 3 for x in LINE]
    rest = [points for points in sets if len(points) < 3]
    return [(tuple(sorted((*few, x))), tuple(sorted((*few, y)))) for few in rest for x in LINE for y in LINE]


@pytest.mark.parametrize(("relation", "cost_range", "keeps"), [
    ("add-remove", 4, True), ("replace-one", 4, False), ("replace-one", 8, True),
])  # fmt: skip
def test_costs_that_only_rise_have_range_d_under_add_remove_and_twice_that_under_replace_one(
    relation, cost_range, keeps, monkeypatch
):
    """The monotone form, by enumeration of all neighbours: log-ratios stay below epsilon, and in an interval of that length.

    The case in the middle is the guard: charging range D for replace-one would be a false promise, and this shows it.
    """
    pairs = neighbours(relation)
    laws = {points: law_on_the_line(points, cost_range, monkeypatch) for points in {p for pair in pairs for p in pair}}
    ratios = [laws[one] - laws[other] for one, other in pairs]
    worst = max(np.abs(ratio).max() for ratio in ratios)
    widest = max(ratio.max() - ratio.min() for ratio in ratios)
    assert bool(worst <= float(EPSILON) + 1e-12) is keeps
    assert bool(widest <= float(EPSILON) + 1e-12) is keeps


def test_the_charge_of_a_selection_says_range_and_reason():
    charge = selection("swap", 12, Fraction(1, 3), reason="costs only rise", times=4).charge
    assert (charge.mechanism, charge.norm, charge.sensitivity, charge.epsilon) == ("select", "range", 12, Fraction(1, 3))
    assert (charge.reason, charge.times) == ("costs only rise", 4)


def test_a_million_scores_are_no_trouble():
    """All but one are 10**6 worse, so that another index would be a miracle of e**-999986."""
    costs = np.full(10**6, 2**50)
    costs[654_321] -= 10**6
    assert select(SYSTEM, costs, Fraction(1)) == 654_321


@pytest.mark.statistical
def test_a_million_equal_scores_do_not_favour_one_index():
    """False alarm: three draws agree by chance once in 10**12. Catches a choice of the first or last of equals."""
    costs = np.zeros(10**6, dtype=np.int64)
    assert len({select(SYSTEM, costs, Fraction(1, 5)) for _ in range(3)}) > 1


@pytest.mark.parametrize("shape", [(2, 2), (0,), ()])
def test_a_selection_needs_a_vector_with_at_least_one_cost(shape):
    with pytest.raises(InvalidValue, match="at least one cost"):
        select(SYSTEM, np.zeros(shape, dtype=np.int64), Fraction(1))
