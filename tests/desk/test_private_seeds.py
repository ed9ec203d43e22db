"""Private seeding: what every release tells at most, on all tiny tables; what is charged; and that rows never change a shape."""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kveil
from kveil.desk import seeds
from kveil.desk.bounded_share import BoundedShare
from kveil.desk.noisy_sample import NoisySample
from kveil.desk.row_places import RowPlaces, Score
from kveil.desk.seeds import LaplaceSeeds, Reach, projected, scored, widest
from kveil.errors import InvalidValue, TicketError
from kveil.kernel.choice import noisy_picks
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Plan, PrivacyUnit
from kveil.testing import scripted

LINE = Box([-3.0], [3.0], 3)  # codes -3 .. 3
RECORD = PrivacyUnit()
SIXTEENTH = Fraction(1, 16)


def bounded(domain=LINE, k=2, cap=9, *, unit=RECORD, expected=None, is_vector=True):
    return BoundedShare(domain, k, None, cap, 2**40, SIXTEENTH, SIXTEENTH, Fraction(3, 10), expected, unit, is_vector)


def sample(domain=LINE, s=4, *, unit=RECORD, expected=None):
    return NoisySample(domain, s, SIXTEENTH, Fraction(1, 2), expected, unit)


def laplace(domain=LINE, k=2):
    return LaplaceSeeds.of(domain, k, None, Fraction(1), is_vector=True)


def released(mechanism, table, relation="add-remove", unit=RECORD):
    plan = Plan(mechanism.charges, relation, unit)
    total = sum(charge.pure() for charge in mechanism.charges)
    with Ledger.memory("seeds", total + 1, relation=relation, unit=unit).reserve(plan) as ticket:
        return mechanism.release(kveil.read(table), ticket), ticket


class TestLaplaceOnAGrid:
    """The joint law of two centres, of all tables of up to four records at five places, and one without records."""

    OUTPUTS = range(-4, 5)  # farther out all ratios are those at 4: noise falls by the same factor for every anchor, and a
    # first centre out there is moved to the wall like one at 4

    def law(self, table, rate):
        """ln P(x1, x2) up to one constant, with the scores that the mechanism itself uses."""
        codes = np.array(table, dtype=np.int64)[:, None] if table else np.zeros((1, 1), dtype=np.int64)

        def density(score):
            weights = score.of(codes)
            weights = weights if weights.any() else Score().of(codes)
            return {x: (weights / weights.sum() * np.exp(-rate * np.abs(x - codes[:, 0]))).sum() for x in self.OUTPUTS}

        first = density(scored(np.empty((0, 1), dtype=np.int64), LINE, None, self.cap, 2**40))
        second = {x: density(scored(np.array([[x]]), LINE, None, self.cap, 2**40)) for x in self.OUTPUTS}
        return np.log([[first[x] * second[x][y] for y in self.OUTPUTS] for x in self.OUTPUTS])

    cap = widest(LINE, None)

    @pytest.fixture
    def tables(self):
        return [table for size in range(5) for table in combinations_with_replacement((-3, -1, 0, 1, 3), size)]

    def worst(self, tables, rate):
        laws = [self.law(table, rate) for table in tables]
        return max(np.abs(one - other).max() for one, other in combinations(laws, 2))

    def test_any_two_tables_stay_within_epsilon_and_two_records_attain_it(self, tables):
        noise = laplace().noise.charge
        rate = float(noise.epsilon / noise.sensitivity)
        assert (noise.epsilon, noise.times, noise.sensitivity) == (Fraction(1, 2), 2, 6)
        assert self.worst(tables, rate) <= 1 + 1e-9
        assert np.abs(self.law((-3,), rate) - self.law((3,), rate)).max() == pytest.approx(1.0)
        assert 0.9 < np.abs(self.law((), rate) - self.law((3,), rate)).max() * 2 <= 1 + 1e-9  # from the centre it is half as far

    def test_half_the_noise_is_caught(self, tables):
        noise = laplace().noise.charge
        assert self.worst(tables, 2 * float(noise.epsilon / noise.sensitivity)) == pytest.approx(2.0)

    def test_neighbours_of_larger_tables_lose_less(self, tables):
        """One of four records replaced: about 0.6, as the noise is for one record alone."""
        four = {table: self.law(table, 1 / 12) for table in tables if len(table) == 4}
        losses = [
            np.abs(four[one] - four[other]).max()
            for one, other in product(four, four)
            if sum(np.array(one) != np.array(other)) == 1
        ]
        assert max(losses) < 0.75

    def test_the_anchor_is_drawn_by_those_scores(self, monkeypatch):
        """With every place served in turn: rows by squared distance to the first centre; any row where all are on it."""
        source = kveil.read(np.array([[-3.0], [-1.0], [3.0]]))
        served, key = [], np.array([1, 2], dtype=np.uint64)
        monkeypatch.setattr(seeds, "RowPlaces", lambda *given: RowPlaces(*given[:-1], key))
        monkeypatch.setattr(seeds.gate, "secret_words", lambda n: np.array([served[-1], 0][:n], dtype=np.uint64))

        def anchors(first, n):
            score, found = scored(np.array([[first]]), LINE, None, self.cap, 2**40), []
            for place in range(n):
                served.append(place)
                found.append(int(laplace()._anchor(source, score, None)[0, 0]))
            return sorted(found)

        assert anchors(-3, 40) == [-1] * 4 + [3] * 36
        source = kveil.read(np.array([[1.0], [1.0]]))
        assert anchors(1, 2) == [1, 1]
        source = kveil.read(np.empty((0, 1)))
        assert anchors(1, 2) == [0, 0]


class TestCharges:
    def test_they_are_listed_before_the_data_and_all_are_drawn(self):
        for mechanism, labels in [
            (bounded(k=3), ["number of rows", "total of scores", "centres"]),
            (bounded(k=1), ["number of rows", "centres"]),
            (bounded(k=3, expected=50), ["total of scores", "centres"]),
            (sample(), ["number of rows", "sample of rows"]),
            (sample(expected=50), ["sample of rows"]),
            (laplace(k=3), ["centres"]),
        ]:
            _, ticket = released(mechanism, np.zeros((3, 1)))
            assert [charge.label for charge in mechanism.charges] == labels
            drawn = [receipt.charge for receipt in ticket.receipts]
            assert {charge: drawn.count(charge) for charge in mechanism.charges} == {c: c.times for c in mechanism.charges}

    def test_a_second_release_on_the_same_ticket_is_refused(self):
        mechanism = laplace()
        with Ledger.memory("seeds", 1, relation="add-remove").reserve(Plan(mechanism.charges, "add-remove")) as ticket:
            mechanism.release(kveil.read(np.zeros((3, 1))), ticket)
            with pytest.raises(TicketError):
                mechanism.release(kveil.read(np.zeros((3, 1))), ticket)

    def test_no_noise_without_a_ticket_and_no_ticket_without_noise(self):
        with pytest.raises(AssertionError, match="ticket"):
            laplace().release(kveil.read(np.zeros((3, 1))), None)

    def test_a_person_multiplies_the_totals_and_not_the_diameter(self):
        person = PrivacyUnit("person", 3)
        size, total, center = bounded(unit=person).charges
        assert (size.sensitivity, total.sensitivity, center.sensitivity) == (3, 27, 6)
        assert [charge.sensitivity for charge in sample(unit=person).charges] == [3, 6]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["box", "uneven", "ball"]), st.integers(1, 4), st.data())
def test_no_two_codes_lie_farther_apart_than_the_reach(shape, d, data):
    high = np.geomspace(1, 50, d) if shape == "uneven" else np.full(d, 2.0)
    domain = Ball(np.zeros(d), 2.0, 6) if shape == "ball" else Box(-high, high, 6)
    corner = st.sampled_from([-1e9, -2.0, 0.0, 1.3, 2.0, 1e9, np.nan])
    rows = np.array(data.draw(st.lists(st.lists(corner, min_size=d, max_size=d), min_size=2, max_size=8)))
    codes = domain.encode(rows).astype(np.int64)
    apart = codes[:, None] - codes[None]
    assert np.abs(apart).sum(axis=2).max() <= Reach.of(domain, is_vector=False).diameter
    assert np.linalg.norm(apart, axis=2).max() <= (reach := Reach.of(domain, is_vector=True)).diameter
    assert reach.norm == ("l1" if d == 1 else "l2")
    measured = scored(codes[:1], domain, None, widest(domain, None), 2).of(codes)
    assert measured.max() <= widest(domain, None)


TABLES = [np.empty((0, 2)), np.full((1, 2), np.nan), np.full((6, 2), 9.0), np.random.default_rng(0).uniform(-1, 1, (40, 2))]
SQUARE = Box([-1.0, -1.0], [1.0, 1.0], 12)


@pytest.mark.parametrize("make", [lambda: bounded(SQUARE, 3, 10**6), lambda: sample(SQUARE, 5), lambda: laplace(SQUARE, 3)])
def test_rows_change_no_shape_and_no_message(make):
    """None at all, one that is no number, equal ones outside the domain, and some."""
    for table in TABLES:
        noisy, ticket = released(make(), table)
        assert noisy.shape == (make().n_rows if isinstance(make(), NoisySample) else 3, 2)
        assert noisy.dtype == np.int64
        assert len(ticket.receipts) == sum(charge.times for charge in make().charges)
        inside = projected(noisy, SQUARE)
        assert (np.abs(inside) <= 1).all()


@pytest.mark.parametrize("make", [lambda: bounded(SQUARE, 3, 10**6), lambda: sample(SQUARE, 5), lambda: laplace(SQUARE, 3)])
def test_the_same_noise_gives_the_same_seeds_for_any_order(make):
    rows = TABLES[-1]
    with scripted(3):
        first = released(make(), rows)[0]
    with scripted(3):
        again = released(make(), rows[::-1])[0]
    assert np.array_equal(first, again)


def test_the_public_total_is_at_least_one_person_s_share_and_decides_the_noise(monkeypatch):
    seen = []

    def picks(*args, **options):
        seen.append((options["score"], options["public_total"]))
        return noisy_picks(*args, **options)

    monkeypatch.setattr("kveil.desk.bounded_share.noisy_picks", picks)
    person = PrivacyUnit("person", 2)
    mechanism = bounded(unit=person)
    with Ledger.memory("seeds", 1, relation="add-remove", unit=person).reserve(
        Plan(mechanism.charges, "add-remove", person)
    ) as ticket:
        places = mechanism.places(kveil.read(np.array([[3.0]])), np.array([[-3]]), ticket)
        seen.clear()
        for noisy_total in (-(10**9), 10**6):
            mechanism.center(places, noisy_total, ticket)
    assert seen == [(9, 2 * 9), (9, 10**6)]


def test_budgets_that_drown_everything_are_refused_before_the_data():
    with pytest.raises(InvalidValue, match="wider"):
        LaplaceSeeds.of(Box(np.zeros(2**10), np.ones(2**10), 20), 64, None, Fraction(1, 2**30), is_vector=False)
