"""Noisy points at secret picks: which places are drawn, how wide the noise is, and what one record can change."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import exp, expm1, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from vault_laws import FALSE_ALARM

from kveil.errors import InvalidValue
from kveil.kernel import choice
from kveil.kernel.choice import noisy_picks, unamplified
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.loss import Plan, compose

SYSTEM = SystemEntropy()


class Owned:
    """Records on a line, (code, score) each, and the places they own."""

    def __init__(self, *records):
        self.codes = [code for code, score in records for _ in range(score)]
        self.total = len(self.codes)

    def at(self, places):
        return np.array([[self.codes[place] if place < self.total else 0] for place in places], dtype=np.int64)


class TestAmplification:
    @given(st.fractions(Fraction(1, 2**40), 60), st.fractions(Fraction(1, 2**60), 1))
    @settings(max_examples=200, deadline=None)
    def test_the_inner_epsilon_is_rounded_down_and_barely(self, epsilon, share):
        found = unamplified(epsilon, share)
        with mpmath.workprec(400):
            e, g = mpmath.mpf(epsilon.numerator) / epsilon.denominator, mpmath.mpf(share.numerator) / share.denominator
            truth = mpmath.log1p(mpmath.expm1(e) / g)
            assert found.numerator <= truth * found.denominator
            assert truth - mpmath.mpf(found.numerator) / found.denominator < 2 * mpmath.mpf(2) ** -60

    def test_it_round_trips_and_a_whole_share_amplifies_nothing(self):
        for epsilon in (0.01, 0.3, 1.0, 4.0):
            assert float(unamplified(Fraction(epsilon), Fraction(1))) == pytest.approx(epsilon, abs=1e-15)
            for share in (1.0, 0.4, 1e-3, 1e-6):
                inner = float(unamplified(Fraction(epsilon), Fraction(share)))
                assert log(1 + share * expm1(inner)) == pytest.approx(epsilon, abs=1e-12)

    def test_figures_of_the_paper_s_three_sets(self):
        """k rows of m at epsilon 1."""
        for m, k, inner in [(26_733, 3, 9.6), (34_112, 2.5, 10.1), (169_308, 5, 11.0)]:
            assert float(unamplified(Fraction(1), Fraction(k) / m)) == pytest.approx(inner, abs=0.06)

    def test_an_epsilon_beyond_the_precision_is_still_rounded_down(self):
        assert 0 < unamplified(Fraction(1024), Fraction(1, 2**62)) <= 1024 + 63


def realised(measurement, raw, monkeypatch):
    """{codes picked, in order: chance}, and the rate of the noise, over all ways the places can fall."""
    law, rates, waiting = Counter(), set(), [()]

    def noise(source, rate, n):
        rates.add(rate)
        return np.zeros(n, dtype=np.int64)

    while waiting:
        forced, taken, chance, later = waiting.pop(), [], [Fraction(1)], []

        def below(source, n, forced=forced, taken=taken, chance=chance, later=later):
            left = [place for place in range(n) if place not in taken]  # a place drawn again is drawn anew: condition on that
            place = forced[len(taken)] if len(taken) < len(forced) else left[0]
            if len(taken) >= len(forced):
                later += [(*taken, other) for other in left[1:]]
            taken.append(place)
            chance[0] *= Fraction(1, len(left))
            return place

        with monkeypatch.context() as patch:
            patch.setattr(choice, "uniform_below", below)
            patch.setattr(choice, "discrete_laplace", noise)
            codes = measurement.draw(SYSTEM, raw)
        law[tuple(codes.ravel().tolist())] += chance[0]
        waiting += later
    assert sum(law.values()) == 1
    (rate,) = rates
    return law, rate


class TestWhatIsDrawn:
    def test_a_record_is_picked_by_its_score_and_the_centre_by_what_nobody_owns(self, monkeypatch):
        raw = Owned((-3, 2), (5, 0), (3, 1))
        law, rate = realised(noisy_picks("c", 10, Fraction(1), score=2, public_total=8), raw, monkeypatch)
        assert law == {(-3,): Fraction(2, 8), (3,): Fraction(1, 8), (0,): Fraction(5, 8)}
        assert rate == unamplified(Fraction(1), Fraction(2, 8)) / 10

    def test_a_total_above_the_public_one_is_what_shares_are_of(self, monkeypatch):
        raw = Owned((-3, 2), (3, 2), (4, 2))
        law, rate = realised(noisy_picks("c", 10, Fraction(1), score=2, public_total=3), raw, monkeypatch)
        assert law == {(-3,): Fraction(1, 3), (3,): Fraction(1, 3), (4,): Fraction(1, 3)}
        assert rate == unamplified(Fraction(1), Fraction(2, 3)) / 10  # by the public number, not the secret one

    def test_no_records_give_the_centre(self, monkeypatch):
        assert realised(noisy_picks("c", 10, Fraction(1), public_total=2), Owned(), monkeypatch)[0] == {(0,): 1}

    def test_several_picks_are_distinct_and_in_random_order(self, monkeypatch):
        raw = Owned((1, 1), (2, 1), (3, 1))
        law, rate = realised(noisy_picks("s", 10, Fraction(1), n_picks=2, public_total=4), raw, monkeypatch)
        slots = (1, 2, 3, 0)
        assert law == {pair: Fraction(1, 12) for pair in permutations(slots, 2)}
        assert rate == unamplified(Fraction(1), Fraction(2, 4)) / 10

    def test_a_place_that_was_drawn_is_drawn_anew(self, monkeypatch):
        answers = iter([1, 1, 0])
        monkeypatch.setattr(choice, "uniform_below", lambda source, n: next(answers))
        monkeypatch.setattr(choice, "discrete_laplace", lambda source, rate, n: np.zeros(n, dtype=np.int64))
        codes = noisy_picks("s", 10, Fraction(1), n_picks=2, public_total=2).draw(SYSTEM, Owned((7, 1), (8, 1)))
        assert codes.tolist() == [[8], [7]]

    def test_a_person_with_several_rows_pays_by_share_or_by_group(self, monkeypatch):
        one = noisy_picks("c", 10, Fraction(1), score=2, rows=3, public_total=60)
        assert realised(one, Owned(), monkeypatch)[1] == unamplified(Fraction(1), Fraction(6, 60)) / 10
        several = noisy_picks("s", 10, Fraction(1), n_picks=2, rows=3, public_total=20)
        assert realised(several, Owned(), monkeypatch)[1] == unamplified(Fraction(1, 3), Fraction(2, 20)) / 10
        assert one.charge.epsilon == several.charge.epsilon == 1

    def test_one_vector_of_noise_is_k_norm_of_the_same_rate(self, monkeypatch):
        seen = []
        monkeypatch.setattr(
            choice, "k_norm", lambda source, beta, *shape: seen.append((beta, shape)) or np.zeros(shape, np.int64)
        )
        noisy_picks("c", 10, Fraction(1), norm="l2", public_total=5).draw(SYSTEM, Owned((3, 1)))
        assert seen == [(10 / unamplified(Fraction(1), Fraction(1, 5)), (1, 1))]

    @pytest.mark.parametrize(
        "bad", [{"score": 3}, {"rows": 3}, {"n_picks": 3}, {"n_picks": 2, "score": 2, "public_total": 9}, {"public_total": 0}]
    )
    def test_shares_above_one_and_several_picks_by_score_are_refused(self, bad):
        with pytest.raises(InvalidValue, match="public_total"):
            noisy_picks("c", 10, Fraction(1), **{"public_total": 2, **bad})

    def test_noise_that_is_too_wide_is_refused_before_anything_is_drawn(self):
        with pytest.raises(InvalidValue, match="wider"):
            noisy_picks("c", 2**50, Fraction(1, 2**30))

    def test_it_is_charged_as_a_pure_mechanism(self):
        charge = noisy_picks("c", 10, Fraction(1, 4), public_total=5, times=3).charge
        assert (charge.mechanism, charge.sensitivity, charge.norm, charge.pure(), charge.zcdp()) == (
            "pick", 10, "l1", Fraction(3, 4), Fraction(3, 32),
        )  # fmt: skip
        assert compose(Plan((charge,), "add-remove")).route == "pure"


OUTPUTS = np.arange(-3, 4)  # codes are -2 .. 2: farther out all ratios are those at the ends


def mixture(law, rate):
    """Up to one factor for all laws of that rate: the chance of every output (of one pick)."""
    return sum(float(p) * np.exp(-rate * np.abs(OUTPUTS - code)) for (code,), p in law.items())


def shares(records, public_total, *, rule="bounded"):
    """{(code,): chance} of one pick. `rule` "plain" divides by the total alone; "fallback" picks any record where all score 0."""
    total = sum(score for _, score in records)
    whole = {"bounded": max(total, public_total), "plain": total, "fallback": max(total, public_total)}[rule]
    if total == 0 and rule == "fallback" and records:
        records, whole = [(code, 1) for code, _ in records], len(records)
        total = whole
    if whole == 0:
        return {(0,): 1.0}
    law = Counter({(0,): 1 - total / whole})
    for code, score in records:
        law[(code,)] += score / whole
    return law


CAP = 2
KINDS = [(code, score) for code in (-2, 0, 2) for score in range(CAP + 1)]


def neighbours(most):
    """All pairs of tables of at most `most` records of those kinds that differ by one record, added or replaced."""
    for size in range(most):
        for shared in combinations_with_replacement(KINDS, size):
            for record in KINDS:
                yield shared, (*shared, record)
            for one, other in product(KINDS, KINDS):
                if one < other:
                    yield (*shared, one), (*shared, other)


def worst_excess(rule, epsilons=(0.3, 1.0, 2.0), totals=(2, 3, 4, 6)):
    """The largest |ln ratio| minus what is claimed, and the largest ratio of the two, over all pairs and outputs."""
    excess, times, pairs = -np.inf, 0.0, 0
    for epsilon, public_total in product(epsilons, totals):
        rate = float(unamplified(Fraction(epsilon), Fraction(CAP, public_total))) / 4
        known = {}

        def law(table, public_total=public_total, rate=rate, known=known):
            if table not in known:
                known[table] = np.log(mixture(shares(list(table), public_total, rule=rule), rate))
            return known[table]

        for one, other in neighbours(4):
            loss = np.abs(law(tuple(sorted(one))) - law(tuple(sorted(other)))).max()
            excess, times, pairs = max(excess, loss - epsilon), max(times, loss / epsilon), pairs + 1
    return excess, times, pairs


class TestBoundedShare:
    def test_no_pair_of_neighbours_passes_what_is_charged(self):
        excess, times, pairs = worst_excess("bounded")
        assert pairs == 118_800
        assert excess < 1e-12
        assert times > 0.6  # and some come near it

    def test_the_law_above_is_the_one_that_is_drawn(self, monkeypatch):
        for table, public_total in product([(), ((-2, 2),), ((-2, 2), (0, 1)), ((2, 0), (2, 2), (-2, 2))], (2, 3, 6)):
            measurement = noisy_picks("c", 4, Fraction(1), score=CAP, public_total=public_total)
            law, _ = realised(measurement, Owned(*table), monkeypatch)
            expected = {code: p for code, p in shares(list(table), public_total).items() if p}
            assert {code: float(p) for code, p in law.items()} == pytest.approx(expected)

    @pytest.mark.parametrize("rule", ["plain", "fallback"])
    def test_other_rules_break_it(self, rule):
        """Controls: dividing by the total itself, and falling back to any record where all score 0."""
        excess, times, _ = worst_excess(rule, epsilons=(0.3, 1.0))
        assert excess > 0.5
        assert times > 2

    def test_the_bound_is_tight_under_adversarial_parts(self):
        """Random parts of the proof: shared score, two scores, S^, and densities anywhere in [u, u E]."""
        rng = np.random.default_rng(0)
        n = 200_000
        inner, cap = rng.uniform(0.1, 6, n), rng.integers(1, 50, n).astype(float)
        public = cap * (1 + rng.exponential(5, n) * (rng.random(n) < 0.8))
        shared = rng.exponential(5, n) * cap * (rng.random(n) < 0.8)
        one, other = cap * rng.choice([0, 0.3, 1], n), cap * rng.choice([0, 0.7, 1], n)
        most = np.exp(inner)
        of_shared, of_one, of_other, of_centre = (np.where(rng.random(n) < 0.5, 1.0, most) for _ in range(4))

        def density(score, at):
            whole = np.maximum(shared + score, public)
            return (shared * of_shared + score * at + (whole - shared - score) * of_centre) / whole

        ratio = np.abs(np.log(density(one, of_one) / density(other, of_other)))
        bound = np.log(1 + cap / public * (most - 1))
        assert (ratio <= bound + 1e-9).all()
        assert (ratio / bound).max() > 0.999


def sample_law(codes, n_slots, s, *, replacement=False):
    """{ordered codes: chance} of s slots of max(len, n_slots), the rest of which hold nothing."""
    slots = [*codes, *[0] * (n_slots - len(codes))]
    law = Counter()
    picks = list(product(range(len(slots)), repeat=s) if replacement else permutations(range(len(slots)), s))
    for pick in picks:
        law[tuple(slots[i] for i in pick)] += 1 / len(picks)
    return law


def sample_density(law, rate, s):
    grid = np.arange(-1, 2)
    return np.array([
        sum(p * exp(-rate * sum(abs(x - a) for x, a in zip(out, codes, strict=True))) for codes, p in law.items())
        for out in product(grid, repeat=s)
    ])  # fmt: skip


def slot_pairs():
    """Tables of codes -1 and 1 (and 0, like nothing) that differ by one record, added or replaced, up to four records."""
    for size in range(4):
        for shared in combinations_with_replacement((-1, 0, 1), size):
            yield from ((shared, (*shared, code)) for code in (-1, 0, 1))
            yield from (((*shared, a), (*shared, b)) for a, b in ((-1, 0), (-1, 1), (0, 1)))


def worst_sample(*, replacement):
    worst = 0.0
    for s, n_slots, inner in product((1, 2), (2, 3, 5), (1.0, 3.0, 5.0)):
        claimed = log(1 + s / n_slots * expm1(inner))
        for one, other in slot_pairs():
            if replacement and not one:
                continue
            densities = [
                sample_density(sample_law(table, n_slots, s, replacement=replacement), inner / 2, s) for table in (one, other)
            ]
            worst = max(worst, np.abs(np.log(densities[0] / densities[1])).max() / claimed)
    return worst


class TestSlots:
    def test_no_pair_of_neighbours_passes_what_is_charged(self):
        assert 0.8 < worst_sample(replacement=False) <= 1 + 1e-12

    def test_drawing_with_replacement_breaks_it(self):
        assert worst_sample(replacement=True) > 1.05

    def test_the_law_above_is_the_one_that_is_drawn(self, monkeypatch):
        for codes, n_slots in [((), 3), ((1,), 3), ((-1, 1, 1), 2)]:
            raw = Owned(*((code, 1) for code in codes))
            law, _ = realised(noisy_picks("s", 2, Fraction(1), n_picks=2, public_total=n_slots), raw, monkeypatch)
            assert {c: float(p) for c, p in law.items()} == pytest.approx(sample_law(codes, n_slots, 2))


CERTAIN = Fraction(1000)  # noise of this epsilon is 0 but with probability e**-100


@pytest.mark.statistical
def test_the_centre_and_a_slot_come_as_often_as_they_should():
    """Binomial bounds; false alarm 1e-6 each. A share off by 10 % would be caught with probability above 0.999999."""
    n = 10_000
    raw, measurement = Owned((-3, 2), (3, 1)), noisy_picks("c", 6, CERTAIN, score=2, public_total=8)
    centres = sum(int(measurement.draw(SYSTEM, raw)[0, 0]) == 0 for _ in range(n))
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, 5 / 8)
    assert low <= centres <= high
    raw, measurement = Owned(*((code, 1) for code in (4, 5, 6))), noisy_picks("s", 6, CERTAIN, n_picks=2, public_total=7)
    fives = sum(5 in measurement.draw(SYSTEM, raw).ravel() for _ in range(n))
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, 2 / 7)
    assert low <= fives <= high


def lower_bound(measurement, one, other, event, n=6000):
    """What an audit proves of epsilon: Clopper and Pearson at 1e-6 for both chances of an event."""
    hits = [sum(event(measurement.draw(SYSTEM, raw)) for _ in range(n)) for raw in (one, other)]
    low = stats.beta.ppf(FALSE_ALARM / 2, hits[0], n - hits[0] + 1) if hits[0] else 0.0
    high = stats.beta.isf(FALSE_ALARM / 2, hits[1] + 1, n - hits[1])
    return log(low / high) if low else -np.inf


@pytest.mark.statistical
def test_an_audit_from_outside_finds_no_more_than_is_charged():
    """One record at an end, there or not, beside one at the other end; and records that score more than was stated are flagged.
    False alarm 1e-6 each, by the level of the bounds."""
    event = lambda codes: int(codes.max()) >= 2  # noqa: E731
    for options in ({"score": 1, "public_total": 3}, {"n_picks": 2, "public_total": 3}):
        honest = noisy_picks("c", 4, Fraction(1), **options)
        assert lower_bound(honest, Owned((-2, 1), (2, 1)), Owned((-2, 1)), event) <= 1
    broken = noisy_picks("c", 4, Fraction(1), score=1, public_total=60)
    assert lower_bound(broken, Owned((-2, 30), (2, 30)), Owned((-2, 60)), event) > 1
