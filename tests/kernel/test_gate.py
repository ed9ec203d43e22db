"""The one entrance: the charge is on record before a bit of entropy is read, and receipts tell the truth."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from kveil.errors import BudgetError, BudgetExceeded, LedgerMismatch, TicketError
from kveil.kernel import exact, gate
from kveil.kernel.choice import selection
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Measurement, Plan, guarantee
from kveil.kernel.noise import gaussian_noise, k_norm_noise, laplace_noise
from kveil.kernel.response import subset_select
from kveil.testing import scripted

RAW = np.arange(6).reshape(3, 2)
QUARTER = Fraction(1, 4)

MECHANISMS = {
    "laplace": (laplace_noise("sums", 1, QUARTER), RAW),
    "k-norm": (k_norm_noise("sums", 1, QUARTER), RAW),
    "select": (selection("swap", 1, QUARTER), np.arange(5)),
    "response": (subset_select("answer", 3, 1, QUARTER), [[1]]),
    "gaussian": (gaussian_noise("sums", 1, Fraction(1, 100)), RAW),
}


@pytest.fixture
def installed():
    """Install a source of noise as kveil.testing would, and take it away again."""
    tokens = []
    yield lambda source: tokens.append(exact._installed.set(source))
    for token in reversed(tokens):
        exact._installed.reset(token)


class Watching:
    """Real entropy that looks into the ledger's file, over a connection of its own, whenever bits are read."""

    secure = True

    def __init__(self, path):
        self._path, self._real, self.seen = path, SystemEntropy(), []

    def _look(self):
        db = sqlite3.connect(self._path)
        self.seen.append(db.execute("SELECT COUNT(*), SUM(units), MIN(state) FROM charge").fetchone())
        db.close()

    def words(self, n):
        self._look()
        return self._real.words(n)

    def bits(self, k):
        self._look()
        return self._real.bits(k)


@pytest.mark.parametrize("through", ["ledger", "ticket"])
@pytest.mark.parametrize(("measurement", "secret"), MECHANISMS.values(), ids=MECHANISMS)
def test_the_charge_is_on_record_before_any_bit_is_drawn(tmp_path, installed, measurement, secret, through):
    path = tmp_path / "clinic.db"
    ledger = Ledger.create(path, "clinic", 1.0, 1e-6 if measurement.charge.rho else 0, relation="add-remove")
    source = Watching(path)
    installed(source)
    if through == "ledger":
        _, receipt = gate.run(measurement, secret, ledger)
    else:
        with ledger.reserve(Plan((measurement.charge,), "add-remove", delta=ledger.delta)) as ticket:
            _, receipt = gate.run(measurement, secret, ticket)
    assert source.seen, "the sampler did read entropy"
    assert {count for count, _, _ in source.seen} == {1}
    assert all(units > 0 and state == "reserved" for _, units, state in source.seen)
    assert receipt.secure is True
    assert ledger.charges()[0].committed is True


def test_a_refused_budget_reads_no_entropy_and_no_secret(tmp_path, installed):
    path = tmp_path / "clinic.db"
    ledger = Ledger.create(path, "clinic", 0.1, relation="add-remove")
    source = Watching(path)
    installed(source)

    def draw(source, secret):
        raise AssertionError("the secret was touched")

    with pytest.raises(BudgetExceeded):
        gate.run(Measurement(laplace_noise("sums", 1, QUARTER).charge, draw), RAW, ledger)
    with pytest.raises(LedgerMismatch):
        gate.run(Measurement(gaussian_noise("sums", 1, QUARTER).charge, draw), RAW, ledger)
    assert source.seen == []
    assert ledger.charges() == ()


def test_a_draw_that_fails_stays_spent(tmp_path):
    ledger = Ledger.create(tmp_path / "clinic.db", "clinic", 1.0, relation="add-remove")

    def draw(source, secret):
        raise MemoryError

    with pytest.raises(MemoryError):
        gate.run(Measurement(laplace_noise("sums", 1, QUARTER).charge, draw), RAW, ledger)
    assert ledger.spent().epsilon == 0.25


def test_a_release_whose_closing_note_cannot_be_written_is_not_said_to_be_undrawn(tmp_path, monkeypatch):
    """The noise exists and is paid for when the ticket closes; whoever reads "nothing was drawn" asks again and pays twice."""
    path = tmp_path / "clinic.db"
    ledger = Ledger.create(path, "clinic", 1.0, relation="add-remove")
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: real(*args, **{**more, "timeout": 0.05}))
    holder = real(path, isolation_level=None)
    laplace = laplace_noise("sums", 1, QUARTER)

    def draw(source, secret):
        noisy = laplace.draw(source, secret)
        holder.execute("BEGIN IMMEDIATE")  # another program takes the lock after the draw and before the close
        return noisy

    said = ""
    try:
        gate.run(Measurement(laplace.charge, draw), RAW, ledger)
    except BudgetError as error:
        said = str(error)
    holder.close()
    assert "othing was drawn" not in said
    assert ledger.spent().epsilon == 0.25


def test_a_receipt_names_the_reservation_the_place_in_the_plan_and_the_charge():
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    first, second = laplace_noise("sums", 1, QUARTER), laplace_noise("counts", 1, QUARTER)
    with ledger.reserve(Plan((first.charge, second.charge), "add-remove")) as ticket:
        _, late = gate.run(second, RAW, ticket)
        _, early = gate.run(first, RAW, ticket)
        with pytest.raises(TicketError):
            gate.run(first, RAW, ticket)
    assert [receipt.index for receipt in (early, late)] == [0, 1]
    assert {receipt.token for receipt in (early, late)} == {ticket.token} == {ledger.charges()[0].token}
    assert (early.charge, late.charge) == (first.charge, second.charge)
    assert list(ticket.receipts) == [late, early]
    assert ledger.spent().epsilon == 0.5


def test_a_closed_ticket_draws_nothing():
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    charge, drawn = laplace_noise("sums", 1, QUARTER).charge, []
    with ledger.reserve(Plan((charge,), "add-remove")) as ticket:
        pass
    with pytest.raises(TicketError, match="closed"):
        gate.run(Measurement(charge, lambda source, secret: drawn.append(secret)), RAW, ticket)
    assert drawn == []


def test_a_draw_that_fails_has_used_up_its_place_in_the_plan():
    """Taken first: else a draw that raises could be made again and again, and tell of its secret by raising or not."""
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    charge, drawn = laplace_noise("sums", 1, QUARTER).charge, []

    def draw(source, secret):
        drawn.append(secret)
        raise MemoryError

    with ledger.reserve(Plan((charge,), "add-remove")) as ticket:
        for error in (MemoryError, TicketError, TicketError):
            with pytest.raises(error):
                gate.run(Measurement(charge, draw), RAW, ticket)
    assert len(drawn) == 1


@pytest.mark.parametrize(("measurement", "secret"), MECHANISMS.values(), ids=MECHANISMS)
def test_scripted_results_repeat_and_are_invalid_also_when_the_guarantee_is_made_later(measurement, secret):
    def fit():
        ledger = Ledger.memory("clinic", 1.0, 1e-6 if measurement.charge.rho else 0, relation="add-remove")
        plan = Plan((measurement.charge,), "add-remove", delta=ledger.delta)
        with scripted(3), ledger.reserve(plan) as ticket:
            noisy, receipt = gate.run(measurement, secret, ticket)
        return noisy, guarantee(plan, trust="curator", receipts=[receipt], reasons=ticket.reasons), ledger, plan

    noisy, promise, ledger, plan = fit()
    again, _, _, _ = fit()
    assert np.array_equal(noisy, again)
    assert promise.valid is False
    assert "scripted" in " ".join(promise.reasons)
    with ledger.reserve(plan) as later:  # the next fit on this ledger, with real noise
        _, receipt = gate.run(measurement, secret, later)
    assert receipt.secure is True
    assert guarantee(plan, trust="curator", receipts=[receipt], reasons=later.reasons).valid is False


def test_scripted_noise_entered_after_the_reservation_draws_nothing():
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    measurement = laplace_noise("sums", 1, QUARTER)
    with ledger.reserve(Plan((measurement.charge,), "add-remove")) as ticket:
        with scripted(1), pytest.raises(TicketError, match="source of noise"):
            gate.run(measurement, RAW, ticket)
        assert list(ticket.receipts) == []
        gate.run(measurement, RAW, ticket)


def test_an_approx_ledger_takes_several_pure_draws_without_spending_its_delta():
    """A pure mechanism needs no delta. Taking all of it for a gain of 1e-6 in epsilon would close the ledger to the next draw."""
    ledger = Ledger.memory("clinic", 1.0, 1e-6, relation="add-remove", rule="approx")
    for _ in range(4):
        gate.run(laplace_noise("sums", 1, QUARTER), RAW, ledger)
    assert ledger.spent().epsilon == pytest.approx(1.0)
    assert ledger.spent().delta == 0.0


def test_four_numbers_by_hand_with_scripted_noise():
    """The noise is a function of the script alone: two secrets get the same noise."""
    measurement = laplace_noise("sums", 2, Fraction(1, 2))
    differences = []
    for raw in (np.array([0, 0, 0, 0]), np.array([10, -3, 2**40, 7])):
        ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
        with scripted(11):
            noisy, _ = gate.run(measurement, raw, ledger)
        differences.append((noisy - raw).tolist())
    assert differences[0] == differences[1]
    assert any(differences[0])


def test_private_bits_come_from_the_operating_system_itself():
    """No class in between, whose bits could repeat or be foreseen, in this thread or a new one."""
    with ThreadPoolExecutor(1) as other:
        assert type(exact.entropy()) is type(other.submit(exact.entropy).result()) is SystemEntropy


@pytest.mark.parametrize("make", [laplace_noise, k_norm_noise, gaussian_noise], ids=lambda make: make.__name__)
def test_noise_of_one_charge_is_never_that_of_another(make):
    """Of one measurement, on one ledger or two. False alarm: below 2**-200, since no entry has a value with chance 2**-8."""
    measurement, raw, seen = make("sums", 1, Fraction(1, 10**6)), np.zeros((16, 2), dtype=np.int64), set()
    for _ in range(2):
        ledger = Ledger.memory("clinic", 1.0, 1e-3 if make is gaussian_noise else 0.0, relation="add-remove")
        seen |= {gate.run(measurement, raw, ledger)[0].tobytes() for _ in range(3)}
    assert len(seen) == 6


def test_secret_words_are_fresh_unless_scripted():
    assert gate.secret_words(2).tolist() != gate.secret_words(2).tolist()  # equal once in 2**128
    with scripted(1):
        one = gate.secret_words(2).tolist()
    with scripted(1):
        assert gate.secret_words(2).tolist() == one
    assert all(0 <= word < 2**64 for word in one)
