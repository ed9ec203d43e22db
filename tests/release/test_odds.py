"""How sure somebody can become who was 50 % sure: bounds that pairs of laws attain, and words that fit the relation."""

from __future__ import annotations

from fractions import Fraction
from math import e, exp, isclose, log

import numpy as np
import pytest

from kveil.kernel.loss import Charge, Plan, PrivacyUnit, guarantee, zcdp_epsilon
from kveil.release.odds import in_words, odds, percent


def pure(epsilon=1, **terms):
    return promised((Charge("discrete-laplace", "counts", 1, "l1", Fraction(epsilon)),), **terms)


def gaussian(rho, delta, **terms):
    return promised((Charge("discrete-gaussian", "counts", 1, "l2", rho=Fraction(rho)),), delta=delta, **terms)


def promised(charges, *, delta=0, relation="add-remove", unit=PrivacyUnit(), trust="curator"):
    return guarantee(Plan(charges, relation, unit, Fraction(delta)), trust=trust)


def threshold(epsilon, delta):
    return promised((Charge("threshold", "words", 1, "l1", Fraction(epsilon), delta=Fraction(delta)),), delta=delta)


def right_guesses(with_person, without):
    """How often the better guess is right, each table being as likely."""
    return float(np.maximum(with_person, without).sum() / 2)


def test_a_pure_epsilon_of_1_leaves_73_percent_and_randomised_response_attains_it():
    found = odds(pure(1))
    assert found.surest == found.guess == pytest.approx(e / (1 + e))
    assert found.failing == 0.0
    law = np.array([e / (1 + e), 1 / (1 + e)])
    assert right_guesses(law, law[::-1]) == pytest.approx(found.guess)
    assert (law / (law + law[::-1])).max() == pytest.approx(found.surest)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.2])
def test_with_a_delta_guesses_are_bounded_and_the_bound_is_attained(epsilon, delta):
    """Randomised response that tells all with probability delta is (epsilon, delta)-private."""
    found = odds(threshold(epsilon, delta))
    share = exp(epsilon) / (1 + exp(epsilon))
    law = np.array([delta, (1 - delta) * share, (1 - delta) * (1 - share), 0.0])
    assert np.maximum(law - exp(epsilon) * law[::-1], 0).sum() == pytest.approx(delta)
    assert right_guesses(law, law[::-1]) == pytest.approx(found.guess, rel=1e-9)
    assert found.guess == pytest.approx((exp(epsilon) + delta) / (1 + exp(epsilon)))


@pytest.mark.parametrize(("rho", "delta"), [("1/100", "1/1000000"), ("1/50", "1/1000"), ("1/2", "1/100000"), ("4", "1/100")])
def test_for_zcdp_the_bound_holds_for_gaussian_noise_and_is_below_that_of_epsilon_and_delta(rho, delta):
    promise = gaussian(rho, delta)
    sigma = 1 / (2 * float(Fraction(rho))) ** 0.5
    places = np.arange(-400, 402)
    law = np.exp(-(places**2) / (2 * sigma**2))
    law /= law.sum()
    one, two = law, np.roll(law, 1)
    found = odds(promise)
    assert right_guesses(one, two) <= found.guess <= (exp(promise.epsilon) + promise.delta) / (1 + exp(promise.epsilon))
    sure = np.maximum(one, two) / np.maximum(one + two, 1e-300)
    beyond = sure > found.surest
    assert max(one[beyond].sum(), two[beyond].sum()) <= found.failing
    if float(Fraction(rho)) < 0.1:
        assert found.guess == 0.5 + (float(Fraction(rho)) / 8) ** 0.5


def test_how_often_somebody_gets_surer_is_attained_up_to_its_own_rounding():
    """Outcomes of ratio just above 2 e^epsilon may have probability 2 delta: a bound of delta alone would be wrong."""
    epsilon, delta = 0.5, 0.01
    ratio = 2 * exp(epsilon) * 1.0001
    mass = delta / (1 - exp(epsilon) / ratio)
    one = np.array([mass, mass / ratio, 1 - mass - mass / ratio])
    two = one[[1, 0, 2]]
    assert np.maximum(one - exp(epsilon) * two, 0).sum() == pytest.approx(delta)
    found = odds(threshold(epsilon, delta))
    sure = np.maximum(one, two) / (one + two)
    assert one[sure > found.surest].sum() == pytest.approx(found.failing, rel=1e-3)
    assert one[sure > found.surest].sum() > 2 * delta


def test_large_epsilons_do_not_overflow_and_bounds_are_rounded_up():
    assert odds(pure(1000)).surest == 1.0
    assert [percent(share) for share in (0.5, 0.731058, 0.732, 0.9995, 0.999999, 1 - 1e-9, 1.0)] == [
        "50.0 %", "73.2 %", "73.2 %", "99.95 %", "99.9999 %", "100 %", "100 %",
    ]  # fmt: skip
    for share in np.random.default_rng(0).uniform(0.5, 1.0, 200):
        assert float(percent(share).split()[0]) / 100 >= share * (1 - 1e-12)


def test_the_sentence_says_whom_by_which_relation_and_what_is_seen():
    start = "Somebody who was 50 % sure"
    person = PrivacyUnit("person", 3, "id")
    end = "can become at most 73.2 % sure by seeing this release, whatever else they know."
    assert in_words(pure(1)) == f"{start} that a given record is in the data {end}"
    assert f"{start} that a given person is in the data can" in in_words(pure(1, unit=person))
    assert f"{start} which of two values a given record has in the data can" in in_words(pure(1, relation="replace-one"))
    assert f"{start} which of two sets of records a given person has in the data can" in in_words(
        pure(1, relation="replace-one", unit=person)
    )
    assert f"{start} which of two points a given person has can" in in_words(pure(1, trust="local", unit=person))
    assert "by seeing every message of the run" in in_words(pure(1, trust="federation"))


def test_with_a_delta_the_sentence_is_about_guesses_and_names_the_exception():
    epsilon = zcdp_epsilon(Fraction(1, 50), Fraction(1, 10**6))
    words = in_words(gaussian("1/50", "1/1000000"))
    assert "and guesses after seeing this release, is right at most 55.0 % of the time" in words
    surest = 2 * exp(epsilon) / (1 + 2 * exp(epsilon))
    assert f"They become more than {percent(surest)} sure with a probability of at most" in words
    assert isclose(log(surest / (1 - surest)), epsilon + log(2))


def test_nothing_is_said_where_nothing_is_promised(invalid, none):
    assert in_words(invalid) == in_words(none) == ""
