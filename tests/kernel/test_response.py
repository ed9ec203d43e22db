"""Randomised response: exact ratios, the law with real entropy, and input that is out of range."""

import math
from fractions import Fraction

import numpy as np
import pytest
from vault_choices import log_law, realised_law
from vault_laws import chi_square, chi_square_miss

from kveil.errors import InvalidValue
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.response import kary_response

SYSTEM = SystemEntropy()


@pytest.mark.parametrize("n_values", [2, 3, 8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**30), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1024)])
def test_the_truth_is_e_to_the_epsilon_times_as_likely_as_any_other_value(n_values, epsilon, monkeypatch):
    """By enumeration: the exponents differ by exactly epsilon, so the ratio of an output on two inputs is e**+-epsilon or 1."""
    response = kary_response("answer", n_values, epsilon)
    assert response.charge.pure() == epsilon
    for truth in range(n_values):
        exponents = realised_law(lambda truth=truth: response.draw(SYSTEM, truth), monkeypatch)
        assert sorted(exponents) == list(range(n_values))
        assert {exponents[other] - exponents[truth] for other in range(n_values) if other != truth} == {epsilon}


@pytest.mark.parametrize("n_values", [2, 5])
def test_no_output_tells_two_inputs_apart_by_more_than_epsilon(n_values, monkeypatch):
    response = kary_response("answer", n_values, Fraction(3, 2))
    laws = [log_law(realised_law(lambda t=t: response.draw(SYSTEM, t), monkeypatch)) for t in range(n_values)]
    ratios = [one - other for one in laws for other in laws]
    assert max(np.abs(ratio).max() for ratio in ratios) == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("outside", [-1, 4, 10**30, -(10**30), np.int64(77), True + 3])
def test_a_value_out_of_range_is_taken_as_the_first_and_never_refused(outside, monkeypatch):
    """A refusal would tell what the value was."""
    response = kary_response("answer", 4, Fraction(1))
    as_first = realised_law(lambda: response.draw(SYSTEM, 0), monkeypatch)
    assert realised_law(lambda: response.draw(SYSTEM, outside), monkeypatch) == as_first


@pytest.mark.statistical
def test_responses_with_real_entropy_follow_their_law():
    """False alarm at most 1e-6 (vault_laws). Catches an epsilon 15 % off with probability above 1 - 1e-7."""
    n, k, truth = 15_000, 4, 2

    def law(epsilon):
        weights = np.ones(k)
        weights[truth] = math.exp(epsilon)
        return weights / weights.sum()

    def drawn(epsilon):
        response = kary_response("answer", k, epsilon)
        return np.bincount([response.draw(SYSTEM, truth) for _ in range(n)], minlength=k)

    assert chi_square(drawn(Fraction(2)), law(2.0)).passes
    twin = Fraction(23, 10)
    assert chi_square_miss(n, law(2.0), law(float(twin))) < 1e-7
    assert not chi_square(drawn(twin), law(2.0)).passes


@pytest.mark.parametrize("n_values", [1, 0, -3])
def test_a_response_needs_two_values(n_values):
    with pytest.raises(InvalidValue, match="at least two"):
        kary_response("answer", n_values, Fraction(1))
