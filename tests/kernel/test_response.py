"""The local randomiser: exact weights by enumeration, the law with real entropy, and input that is anything at all."""

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from vault_laws import chi_square, chi_square_miss
from vault_sources import Served

from kveil.errors import InvalidValue
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.loss import OTHER_WEIGHT
from kveil.kernel.loss import response_weights as weights
from kveil.kernel.response import chosen, subset_select

SYSTEM = SystemEntropy()
EPSILONS = [Fraction(1, 9999), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(9999, 1000), Fraction(10)]


def e_low(epsilon):
    """A lower bound of e**epsilon: 60 terms of its series."""
    total = term = Fraction(1)
    for i in range(1, 60):
        term *= epsilon / i
        total += term
    return total


def counted(subset, n_values, a, b):
    """How many of all draws give each value: every draw is tried."""
    size = len(subset)
    draws = np.arange(size * a + (n_values - size) * b)
    return np.bincount(chosen(draws, np.tile(subset, (len(draws), 1)), a, b), minlength=n_values)


def widths(subset, n_values, a, b):
    """The same for large weights: a value owns one run of draws, whose two ends are tried."""
    size, start, runs = len(subset), 0, {}
    total = size * a + (n_values - size) * b
    while start < total:
        width = a if start < size * a else b
        first, last = chosen(np.array([start, start + width - 1]), np.tile(subset, (2, 1)), a, b)
        assert first == last
        assert first not in runs
        runs[int(first)] = width
        start += width
    assert start == total
    return [runs[j] for j in range(n_values)]


@pytest.mark.parametrize(
    ("epsilon", "a"), [(Fraction(1, 2), 7081203937), (1, 11674931554), (2, 31735754293), (4, 234497268814), (8, 12803117065094)]
)
def test_the_weights_are_the_published_integers(epsilon, a):
    assert weights(Fraction(epsilon)) == (a, OTHER_WEIGHT) == (a, 2**32)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_of_weights_is_just_below_e_to_the_epsilon(epsilon):
    a, b = weights(epsilon)
    assert Fraction(a, b) <= e_low(epsilon)
    assert Fraction(a, b) > e_low(epsilon) * (1 - Fraction(1, 2**30))
    assert Fraction(a + 1, b) > e_low(epsilon), "the next integer would break the promise"


@pytest.mark.parametrize("n_values", [2, 3, 4, 5])
def test_every_draw_of_a_tiny_range_is_tried_and_counts_are_the_weights(n_values):
    for size in range(1, n_values):
        for subset in itertools.combinations(range(n_values), size):
            counts = counted(subset, n_values, 7, 3)
            assert counts.tolist() == [7 if j in subset else 3 for j in range(n_values)]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
@pytest.mark.parametrize("n_values", range(2, 9))
def test_any_two_subsets_give_any_output_with_a_ratio_of_a_over_b_at_most(n_values, epsilon):
    a, b = weights(epsilon)
    for size in range(1, n_values):
        laws = [widths(subset, n_values, a, b) for subset in itertools.combinations(range(n_values), size)]
        assert len(laws) == comb(n_values, size)
        assert {sum(law) for law in laws} == {size * a + (n_values - size) * b}
        ratios = {Fraction(p, q) for one in laws for other in laws for p, q in zip(one, other, strict=True)}
        assert max(ratios) == Fraction(a, b) <= e_low(epsilon)


def test_a_weight_that_is_one_too_large_would_be_noticed():
    a, b = weights(Fraction(1))
    laws = [widths(subset, 4, a + 1, b) for subset in itertools.combinations(range(4), 2)]
    worst = max(Fraction(p, q) for one in laws for other in laws for p, q in zip(one, other, strict=True))
    assert worst > e_low(Fraction(1))


@pytest.mark.parametrize(
    "raw",
    [None, "what?", [[float("nan")]], [[1.5]], [[-1]], [[4]], [[10**30]], [[True]], [[0], [1]], [0], [[0, 1]], object(),
     np.array([[2**64 - 1]], dtype=np.uint64), np.array([[2**63]], dtype=np.uint64), [[]]],
)  # fmt: skip
def test_a_report_on_anything_is_a_report_on_the_first_values(raw):
    """A refusal, or a warning, would tell what the point was."""
    response = subset_select("answer", 4, 1, Fraction(1))
    words = [0, 2**62, 2**63, 2**63 + 2**61]  # preferred, preferred, others
    assert [int(response.draw(Served(word), raw)[0]) for word in words] == [0, 0, 2, 3]


class Breaking:
    """An object that raises whatever it is asked."""

    def __array__(self, *args, **kwargs):
        raise ArithmeticError("no")


def test_one_bad_row_leaves_the_others_alone_and_an_exception_is_no_silence():
    response = subset_select("answer", 5, 2, Fraction(9), n_reports=3)
    words = [0, 0, 0]  # the least draw gives the first preferred value
    assert response.draw(Served(*words), [[3, 1], [2, 2], [4, 3]]).tolist() == [1, 0, 3]
    assert response.draw(Served(*words), Breaking()).tolist() == [0, 0, 0]


def test_how_many_words_are_read_does_not_depend_on_the_point():
    response = subset_select("answer", 6, 2, Fraction(1), n_reports=2)
    for raw in ([[0, 1], [4, 5]], [[2, 3], [2, 3]], None):
        source = Served(2**64 - 1, 5, 7, 9)  # the first is rejected: one more word than reports
        response.draw(source, raw)
        assert source.left == 1


@pytest.mark.statistical
def test_reports_with_real_entropy_follow_their_law():
    """False alarm at most 1e-6 (vault_laws). Catches an epsilon 15 % off with probability above 1 - 1e-7."""
    n, subset = 60_000, [0, 3]

    def law(epsilon):
        a, b = weights(epsilon)
        chances = np.array([a if j in subset else b for j in range(6)], dtype=float)
        return chances / chances.sum()

    def drawn(epsilon):
        response = subset_select("answer", 6, 2, epsilon, n_reports=n)
        return np.bincount(response.draw(SYSTEM, np.tile(subset, (n, 1))), minlength=6)

    assert chi_square(drawn(Fraction(2)), law(Fraction(2))).passes
    twin = Fraction(23, 10)
    assert chi_square_miss(n, law(Fraction(2)), law(twin)) < 1e-7
    assert not chi_square(drawn(twin), law(Fraction(2))).passes


@pytest.mark.parametrize(("n_values", "size"), [(1, 1), (4, 0), (4, 4), (2**16 + 1, 1), (4, -1)])
def test_sizes_that_are_no_subset_are_refused(n_values, size):
    with pytest.raises(InvalidValue, match="preferred"):
        subset_select("answer", n_values, size, Fraction(1))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(101, 10)])
def test_an_epsilon_outside_of_its_range_is_refused(epsilon):
    with pytest.raises(InvalidValue, match="epsilon"):
        subset_select("answer", 4, 1, epsilon)


def test_the_largest_weights_fit_into_64_bits():
    a, b = weights(Fraction(10))
    assert (2**16 - 1) * a + b < 2**63
    response = subset_select("answer", 2**16, 2**16 - 1, Fraction(10))
    assert response.draw(Served(2**64 - 2**50, 2**63), np.arange(1, 2**16)[None, :]).shape == (1,)
