"""A pool shares out one reservation and can never pass it."""

from fractions import Fraction

import numpy as np
import pytest

from kveil.desk.pool import Pool
from kveil.errors import BudgetExceeded, InvalidValue, TicketError
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import PrivacyUnit, compose, floor_delta
from kveil.kernel.noise import laplace_noise
from kveil.questions.base import Part
from kveil.testing import scripted

DELTA = floor_delta(1e-6)


def opened(is_pure=True, relation="add-remove", unit=PrivacyUnit(), epsilon=Fraction(1)):
    pool = Pool(epsilon, DELTA, relation, unit, is_pure=is_pure)
    ledger = Ledger.memory("outer", epsilon, pool.delta, relation=relation, unit=unit)
    ticket = ledger.reserve(pool.plan())
    pool.begin(ticket)
    return pool, ticket, ledger


@pytest.mark.parametrize("is_pure", [True, False])
def test_the_plan_is_one_charge_of_the_whole_budget(is_pure):
    pool, _, ledger = opened(is_pure)
    total = compose(pool.plan())
    assert total.route == ("pure" if is_pure else "zcdp")
    assert 0.999 < total.epsilon <= 1
    assert ledger.remaining().epsilon == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("is_pure", [True, False])
def test_shares_of_what_is_left_never_pass_the_total_and_use_it_up(is_pure):
    pool, ticket, _ = opened(is_pure)
    rng = np.random.default_rng(0)
    for _ in range(20):
        pool.release(Part("cells", "counts"), np.zeros(3, dtype=np.int64), float(pool.left * rng.random()))
    pool.release(Part("rest", "counts"), np.zeros(3, dtype=np.int64), pool.left)
    spent = sum((r.charge.epsilon if is_pure else r.charge.rho) for r in ticket.receipts)
    assert spent == pool.spent
    assert pool.total - Fraction(2, 2**40) <= spent <= pool.total
    assert all(receipt.secure for receipt in ticket.receipts)


@pytest.mark.parametrize("is_pure", [True, False])
def test_the_filter_refuses_what_would_pass_the_total(is_pure):
    pool, _, _ = opened(is_pure)
    pool.release(Part("all", "counts"), np.zeros(3, dtype=np.int64), 1.0)
    pool.spent = Fraction(0)  # a fault in the arithmetic of shares
    with pytest.raises(BudgetExceeded):
        pool.release(Part("again", "counts"), np.zeros(3, dtype=np.int64), 0.5)


def test_a_pool_draws_on_the_reservation_of_its_own_plan_only():
    pool = Pool(Fraction(1), DELTA, "add-remove", PrivacyUnit(), is_pure=True)
    other = Ledger.memory("outer", 1, relation="add-remove")
    with pytest.raises(AssertionError):
        pool.begin(None)
    half = Pool(Fraction(1, 2), DELTA, "add-remove", PrivacyUnit(), is_pure=True)
    with pytest.raises(TicketError, match="not in the reserved plan"):
        pool.begin(other.reserve(half.plan()))


def test_a_reservation_feeds_one_pool_once():
    """Otherwise every further pool would draw the whole budget again while the ledger says once."""
    terms = Fraction(1), DELTA, "add-remove", PrivacyUnit()
    pool, ticket, ledger = opened()
    with pytest.raises(AssertionError):
        pool.begin(ticket)
    with pytest.raises(TicketError, match="drawn already"):
        Pool(*terms, is_pure=True).begin(ticket)
    closed = Ledger.memory("outer", 1, relation="add-remove").reserve(pool.plan())
    closed.close()
    with pytest.raises(TicketError, match="closed"):
        Pool(*terms, is_pure=True).begin(closed)
    swapped = Ledger.memory("outer", 1, relation="add-remove").reserve(pool.plan())
    with scripted(1), pytest.raises(TicketError, match="source of noise"):
        Pool(*terms, is_pure=True).begin(swapped)
    assert ledger.spent().epsilon == 1


def test_a_budget_too_small_to_share_is_refused_beforehand():
    with pytest.raises(InvalidValue, match="too small"):
        Pool(Fraction(1, 2**20), DELTA, "add-remove", PrivacyUnit(), is_pure=False)


@pytest.mark.parametrize(
    ("relation", "m", "is_pure", "count", "length"),
    [
        ("add-remove", 1, True, 1, 10),
        ("add-remove", 3, False, 3, 30),
        ("replace-one", 1, True, 2, 20),
        ("replace-one", 1, False, 2, 20),
        ("replace-one", 3, False, 5, 60),
    ],
)
def test_sensitivities_are_those_of_the_docstring(relation, m, is_pure, count, length):
    unit = PrivacyUnit() if m == 1 else PrivacyUnit("person", m, "id")
    pool, ticket, _ = opened(is_pure, relation, unit)
    pool.release(Part("cells", "counts"), np.zeros(3, dtype=np.int64), 0.1)
    pool.release(Part("sums", "vectors", 10), np.zeros((3, 2), dtype=np.int64), 0.1)
    assert [receipt.charge.sensitivity for receipt in ticket.receipts] == [count, length]


@pytest.mark.parametrize(("relation", "moved"), [("add-remove", 15), ("replace-one", 30)])
def test_choices_are_charged_for_the_length_of_their_part(relation, moved):
    """A row that may add 5 to a cell, or to how far two costs are apart, and people of 3 rows."""
    pool, ticket, _ = opened(True, relation, PrivacyUnit("person", 3, "id"))
    numbers = np.arange(6, dtype=np.int64).reshape(2, 3)
    pool.activate(Part("cells", "active", 5), numbers, 9, 0.01, 0.1)
    pool.choose(Part("swap", "costs", 5), numbers[0], 0.1)
    pool.choose_each(Part("medians", "cell costs", 5), numbers, 0.1)
    assert [receipt.charge.sensitivity for receipt in ticket.receipts] == [moved] * 3


def test_predicted_noise_is_the_noise_that_is_drawn():
    """False alarm below 1e-6: 4000 draws estimate a standard deviation to about 2 % (Laplace), 6 deviations are 12 %."""
    for is_pure in (True, False):
        pool, _, _ = opened(is_pure)
        counts = pool.release(Part("cells", "counts"), np.zeros(4000, dtype=np.int64), 0.3)
        assert counts.std() == pytest.approx(pool.deviation(0.3), rel=0.15)
        sums = pool.release(Part("sums", "vectors", 50), np.zeros((2000, 3), dtype=np.int64), 0.3)
        assert (sums**2).sum(axis=1).mean() == pytest.approx(pool.spread(3, 50, 0.3), rel=0.25)


def test_without_noise_nothing_is_charged_and_nothing_changes():
    pool = Pool(None, Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    assert pool.plan() is None
    pool.begin(None)
    assert pool.release(Part("cells", "counts"), np.array([3, 4]), 0.5).tolist() == [3.0, 4.0]
    assert (pool.deviation(0.5), pool.spread(3, 5, 0.5), pool.left) == (0.0, 0.0, 1.0)


def test_one_column_of_vectors_gets_laplace_noise():
    pool, ticket, _ = opened()
    pool.release(Part("sums", "vectors", 10), np.zeros((3, 1), dtype=np.int64), 0.5)
    assert ticket.receipts[0].charge == laplace_noise("sums", 10, Fraction(1, 2)).charge


@pytest.mark.parametrize("is_pure", [True, False])
def test_coins_and_choices_are_paid_from_the_same_total_and_use_it_up(is_pure):
    pool, ticket, _ = opened(is_pure)
    raw = np.array([[3, 9], [100, 7]])
    for _ in range(4):
        pool.activate(Part("cubes", "active"), raw, 2**70, 2.0**-90, 0.1)
        pool.choose(Part("swap", "costs", 4), np.array([5, 0, 9]), 0.1)
    pool.release(Part("rest", "counts"), np.zeros(3, dtype=np.int64), pool.left)
    losses = [(r.charge.pure() if is_pure else r.charge.zcdp()) for r in ticket.receipts]
    assert pool.total - Fraction(1, 2**30) <= sum(losses) <= pool.total
    assert [r.charge.mechanism for r in ticket.receipts[:2]] == ["discrete-laplace", "select"]
    pool.spent = Fraction(0)  # a fault in the arithmetic of shares
    with pytest.raises(BudgetExceeded):
        pool.choose(Part("again", "costs", 4), np.array([5, 0, 9]), 0.5)


@pytest.mark.parametrize(("relation", "m", "factor"), [("add-remove", 1, 1), ("add-remove", 3, 3), ("replace-one", 3, 6)])
@pytest.mark.parametrize("is_pure", [True, False])
def test_coins_and_choices_have_the_sensitivities_of_the_docstring(relation, m, factor, is_pure):
    unit = PrivacyUnit() if m == 1 else PrivacyUnit("person", m, "id")
    pool, ticket, _ = opened(is_pure, relation, unit)
    pool.activate(Part("cubes", "active"), np.array([[0], [5]]), 8, 0.01, 0.1)
    pool.choose(Part("swap", "costs", 40), np.array([5, 0, 9]), 0.1)
    assert [(r.charge.sensitivity, r.charge.norm) for r in ticket.receipts] == [(factor, "l1"), (40 * factor, "range")]


def test_where_rho_is_counted_coins_and_choices_get_the_epsilon_that_it_pays_for():
    pool, ticket, _ = opened(is_pure=False)
    pool.activate(Part("cubes", "active"), np.array([[0], [5]]), 8, 0.01, 0.25)
    pool.choose(Part("swap", "costs", 40), np.array([5, 0, 9]), 0.25)
    quarter = pool.total / 4
    for receipt, per_rho in zip(ticket.receipts, (2, 8), strict=True):
        assert float(receipt.charge.epsilon) == pytest.approx(float(per_rho * quarter) ** 0.5, rel=1e-6)
        assert receipt.charge.zcdp() <= quarter


def test_cells_with_many_rows_pass_and_empty_ones_hardly_ever():
    """False alarm below 1e-6: a cell 60 scales above the threshold fails with e**-60, one of the others with 1e-9."""
    pool, _, _ = opened()
    found = pool.activate(Part("cubes", "active"), np.array([[17, 400], [2000, 1]]), 1000, 1e-12, 0.1)
    assert found.tolist() == [17]
    assert found.dtype == np.int64


def test_without_noise_every_occupied_cell_is_active_and_the_least_cost_wins():
    pool = Pool(None, Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    assert pool.activate(Part("cubes", "active"), np.array([[3, 5], [1, 9]]), 8, 0.01, 0.1).tolist() == [3, 5]
    assert pool.choose(Part("swap", "costs", 40), np.array([5, 0, 9]), 0.1) == 1


@pytest.mark.parametrize("is_pure", [True, False])
@pytest.mark.parametrize(("relation", "m", "factor"), [("add-remove", 1, 1), ("add-remove", 3, 3), ("replace-one", 2, 4)])
def test_a_choice_in_every_cell_costs_its_share_once(is_pure, relation, m, factor):
    unit = PrivacyUnit("person", m, "id") if m > 1 else PrivacyUnit()
    pool, ticket, _ = opened(is_pure, relation, unit)
    chosen = pool.choose_each(Part("medians", "cell costs", 10), np.array([[0, 2**40], [2**40, 0], [2**40, 0]]), 0.5)
    (charge,) = [receipt.charge for receipt in ticket.receipts]
    assert chosen.tolist() == [0, 1, 1]
    assert (charge.mechanism, charge.sensitivity) == ("select", 10 * factor)
    assert (charge.pure() if is_pure else charge.zcdp()) <= pool.total / 2
    assert (charge.pure() if is_pure else charge.zcdp()) > pool.total / 2 * (1 - Fraction(1, 10**4))
    assert pool.sharpness(10, 0.5) == pytest.approx(float(charge.epsilon) / charge.sensitivity, rel=1e-3)
