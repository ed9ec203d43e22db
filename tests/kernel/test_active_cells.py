"""Cells that many rows share: the coins are those of thresholded discrete Laplace noise, for empty cells too."""

from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from vault_laws import chi_square, chi_square_miss
from vault_sources import Served, Thirds, TwoStreams

from kveil.errors import InvalidValue
from kveil.kernel import choice
from kveil.kernel.choice import active_cells
from kveil.kernel.exact import SystemEntropy

SYSTEM = SystemEntropy()


def passes(count, least, q):
    """P(count + Z >= least), P(Z = z) ~ q**|z|; exact if q is a Fraction."""
    gap = least - count
    return q**gap / (1 + q) if gap >= 0 else 1 - q ** (1 - gap) / (1 + q)


@pytest.mark.parametrize("q", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10), Fraction(999, 1000)])
@pytest.mark.parametrize("least", [1, 2, 7, 60])
def test_the_coin_is_the_best_that_keeps_both_inequalities(q, least):
    """In exact rationals: a neighbour's coin is at most 1/q = e**epsilon times as likely, either way up, for every count; and
    from its first value on no such coin rises faster."""
    coins = [passes(m, least, q) for m in range(3 * least + 5)]
    assert coins[0] == q**least / (1 + q)
    for one, more in pairwise(coins):
        assert one < more <= one / q
        assert 1 - more < 1 - one <= (1 - more) / q
        assert more == min(one / q, 1 - q * (1 - one))


def test_noise_that_reaches_a_gap_is_a_coin_of_the_gap_and_a_coin_of_the_sign(monkeypatch):
    """A coin of q**gap, then 1/(1+q); at the threshold and above it the complement of the coin for 1 - gap."""
    monkeypatch.setattr(choice, "COIN_MARGIN", np.inf)
    asked = []

    def coin(source, num, den, *, head=(0, 0)):
        asked.append((Fraction(num, den), head))
        return asked_answers[len(asked) - 1]

    monkeypatch.setattr(choice, "bernoulli_exp", coin)
    monkeypatch.setattr(choice, "_failures", lambda *args: 10**9)
    rate, raw = Fraction(2, 7), {0: 1, 3: 4, 4: 5, 9: 8}  # gaps 4, 1, 0, -3
    asked_answers = [True, True, True, True]
    words = [5, 6, 7, 8]
    found = active_cells("cells", 10, 5, 1, rate).draw(Served(*words, 1, 1, 1, 1), raw)  # every sign coin says yes at once
    assert found == [0, 3]
    assert asked == [(rate * j, (word, 64)) for j, word in zip([4, 1, 1, 4], words, strict=True)]
    asked, asked_answers = [], [False] * 4
    assert active_cells("cells", 10, 5, 1, rate).draw(Served(*words), raw) == [4, 9]


def test_the_sign_coin_says_yes_half_the_time_no_with_q_of_the_rest_and_else_asks_again(monkeypatch):
    """P(yes) = 1/2 + (1-q)/2 P(yes), hence 1/(1+q)."""
    rate, coins = Fraction(1, 3), iter([True, False, False, True])
    monkeypatch.setattr(choice, "bernoulli_exp", lambda source, num, den: Fraction(num, den) == rate and next(coins))
    assert choice._is_not_negative(Served(1), rate) is True
    assert choice._is_not_negative(Served(0), rate) is False
    assert choice._is_not_negative(Served(0, 0, 0), rate) is False
    assert next(coins, None) is None


@given(st.lists(st.integers(0, 400), max_size=30), st.fractions(Fraction(1, 1000), 3), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_floats_decide_as_the_integers_would(gaps, rate, seed):
    fast, exact = TwoStreams(seed), TwoStreams(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "_is_not_negative", lambda source, rate: True)
        decided = choice._reaches(fast, rate, gaps)
        patch.setattr(choice, "COIN_MARGIN", np.inf)
        assert choice._reaches(exact, rate, gaps) == decided


@given(st.integers(1, 2**200), st.fractions(1, 60), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_run_of_failures_is_a_ratio_of_logarithms(head, exponent, near_one):
    """floor(ln U / ln(1 - x)) for x = exp(-exponent), against 400 digits; U goes on as 0101... behind its first bits."""
    num, den = exponent.numerator, exponent.denominator
    bits = 2 * (num // den) + 64
    w = head % 2**bits
    w = 2**bits - 1 - w if near_one else w
    rest = Thirds([])

    class First:
        def __init__(self):
            self.answers = [w]

        def bits(self, k):
            return self.answers.pop() if self.answers else rest.bits(k)

    with mpmath.workdps(400):
        u = (mpmath.mpf(w) + mpmath.mpf(1) / 3) / mpmath.mpf(2) ** bits
        expected = int(mpmath.floor(mpmath.log(u) / mpmath.log1p(-mpmath.exp(-mpmath.mpf(num) / den))))
    assert choice._failures(First(), num, den) == expected


@pytest.mark.parametrize("p", range(7))
def test_ranks_of_empty_cells_are_the_cells_that_are_not_occupied(p, monkeypatch):
    """Exhaustive in the ranks, for many sets of occupied cells, none and all of them included."""
    n = 2**p
    monkeypatch.setattr(choice, "_failures", lambda *args: 0)  # every empty cell passes, in turn
    monkeypatch.setattr(choice, "_is_not_negative", lambda *args: True)
    rng = np.random.default_rng(p)
    sets = product((0, 1), repeat=n) if n <= 8 else (rng.random((300, n)) < rng.random((300, 1))).astype(int).tolist()
    for is_occupied in sets:
        occupied = [cell for cell in range(n) if is_occupied[cell]]
        empty = [cell for cell in range(n) if not is_occupied[cell]]
        assert choice._passing_empty(SYSTEM, Fraction(1), 9, n, occupied) == empty


LEAST, RATE, RAW = 3, Fraction(2, 5), {2: 2, 5: 4}


def joint_law(rate, *, counts_empties=True):
    """Chances of all 64 outcomes on 6 cells, of which two are occupied."""
    q = float(np.exp(-float(rate)))
    coins = [passes(RAW.get(cell, 0), LEAST, q) if counts_empties or cell in RAW else 0.0 for cell in range(6)]
    outcomes = np.array(list(product((0, 1), repeat=6)))
    return np.where(outcomes, coins, 1 - np.array(coins)).prod(axis=1)


def drawn(rate, n):
    measurement = active_cells("cells", 6, LEAST, 1, rate)
    outcomes = [sum(32 >> cell for cell in measurement.draw(SYSTEM, RAW)) for _ in range(n)]
    return np.bincount(outcomes, minlength=64)


@pytest.mark.statistical
def test_cells_pass_independently_with_the_probability_of_noise_above_the_threshold():
    """All joint outcomes, so marginals and independence at once. False alarm at most 1e-6 (vault_laws).

    Catches a rate 20 % off, and empty cells that are skipped, with probability above 1 - 1e-7.
    """
    n, law = 8_000, joint_law(RATE)
    seen = drawn(RATE, n)
    assert chi_square(seen, law).passes
    twin = joint_law(RATE * Fraction(6, 5))
    assert chi_square_miss(n, law, twin) < 1e-7
    assert not chi_square(drawn(RATE * Fraction(6, 5), n), law).passes
    skipping = joint_law(RATE, counts_empties=False)
    assert chi_square_miss(n, law, skipping) < 1e-7
    assert not chi_square(np.random.default_rng(0).multinomial(n, skipping), law).passes


@pytest.mark.statistical
def test_more_cells_than_atoms_are_no_trouble():
    """The number of empty cells that pass is nearly Poisson. False alarm below 1e-6; twice as many would be caught."""
    rate, n, p = Fraction(1, 10), 400, 100
    least = int(np.ceil(p * np.log(2) / float(rate)))
    occupied = {7**i % 2**p: 5 for i in range(1, 40)}
    measurement = active_cells("cells", 2**p, least, 1, rate)
    found = [cell for _ in range(n) for cell in measurement.draw(SYSTEM, occupied)]
    with mpmath.workdps(50):
        mean = float(n * mpmath.mpf(2) ** p * passes(0, least, mpmath.exp(-mpmath.mpf(1) / 10)))
    low, high = stats.poisson.ppf([2.5e-7, 1 - 2.5e-7], mean)
    assert low <= len(found) <= high
    assert stats.poisson.cdf(high, 2 * mean) < 1e-7
    assert all(0 <= cell < 2**p for cell in found)


def test_two_thousand_bits_of_a_cell_are_no_trouble_either():
    least = int(np.ceil(2000 * np.log(2) * 10))
    found = active_cells("cells", 2**2000, least, 1, Fraction(1, 10)).draw(SYSTEM, {2**1999: 10**6, 5: 1})
    assert 2**1999 in found
    assert found == sorted(set(found))
    assert found[-1] < 2**2000


def test_the_charge_is_that_of_the_noisy_histogram_and_a_low_threshold_is_refused():
    charge = active_cells("cells", 2**70, 40, 3, Fraction(1, 4)).charge
    assert (charge.mechanism, charge.sensitivity, charge.norm, charge.pure()) == ("discrete-laplace", 3, "l1", Fraction(1, 4))
    assert charge.zcdp() == Fraction(1, 32)
    with pytest.raises(InvalidValue, match="least count"):
        active_cells("cells", 8, 11, 3, Fraction(1, 4))
