"""Notes of a charge: stated by the operator or known later, added and never changed, and of no weight in the sums."""

import copy
import pickle
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from kveil.errors import BudgetExceeded, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Charge, Plan

OLD = Path(__file__).with_name("ledger_made_by_0_1.sql")  # the dump of a ledger that was made before there were notes


def plan(epsilon="1/4"):
    return Plan((Charge("discrete-laplace", "sums", 1, "l1", Fraction(epsilon)),), "add-remove")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.db"


@pytest.fixture(params=["memory", "file"])
def ledger(request, path):
    if request.param == "memory":
        return Ledger.memory("clinic", 1.0, relation="add-remove")
    return Ledger.create(path, "clinic", 1.0, relation="add-remove")


@pytest.fixture
def old(path):
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD.read_text())
    return path


def test_a_charge_carries_what_the_operator_states(ledger):
    stating = ledger.stating(purpose="beds per ward", data_name="admissions 2025", by="A. Hill")
    stating.reserve(plan())
    stating.reserve(plan(), run="r1")
    ledger.reserve(plan())
    said = (("purpose", "beds per ward"), ("data_name", "admissions 2025"), ("by", "A. Hill"))
    assert [entry.notes for entry in ledger.charges()] == [said, (*said, ("run", "r1")), ()]


def test_a_ledger_that_states_something_is_the_same_budget(ledger):
    stating = ledger.stating(purpose="x")
    assert stating.is_same(ledger)
    assert ledger.is_same(stating)
    assert ledger.stated == {}
    assert copy.deepcopy(stating) is stating
    stating.reserve(plan("3/4"))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan("1/2"))


def test_two_ledgers_in_memory_are_two_budgets_and_a_file_is_neither(path):
    one, two = (Ledger.memory("clinic", 1.0, relation="add-remove") for _ in range(2))
    file = Ledger.create(path, "clinic", 1.0, relation="add-remove")
    assert not one.is_same(two)
    assert not one.is_same(file)
    assert not file.is_same(one)
    assert file.is_same(Ledger.open(path))


def test_what_is_stated_travels_with_a_pickle(path):
    stating = Ledger.create(path, "clinic", 1.0, relation="add-remove").stating(by="A. Hill")
    again = pickle.loads(pickle.dumps(stating))
    assert again.stated == {"by": "A. Hill"}
    assert again.is_same(stating)


def test_a_refused_charge_leaves_no_note(ledger):
    with pytest.raises(BudgetExceeded):
        ledger.stating(purpose="too much").reserve(plan("2"))
    ledger.reserve(plan())
    assert [entry.notes for entry in ledger.charges()] == [()]


def test_what_becomes_known_later_is_added_and_nothing_is_replaced(ledger):
    token = ledger.stating(purpose="a").reserve(plan()).token
    ledger.note(token, release="d1")
    ledger.note(token, release="d1")
    ledger.note(token, release="d2", purpose="b")
    assert ledger.charges()[0].notes == (("purpose", "a"), ("release", "d1"), ("release", "d2"), ("purpose", "b"))
    assert ledger.spent().epsilon == 0.25


def test_a_note_of_no_charge_is_refused(ledger):
    ledger.reserve(plan())
    with pytest.raises(InvalidValue, match="knows no charge of this token"):
        ledger.note("nobody", release="d1")
    assert ledger.charges()[0].notes == ()
    ledger.reserve(plan())  # nothing stayed locked


@pytest.mark.parametrize("text", ["two\nlines", "bell\a", "x" * 201, 7, None, "\udc80"])
def test_a_note_that_nobody_can_read_is_refused_and_nothing_is_charged(ledger, text):
    with pytest.raises(InvalidValue, match="purpose must be one line"):
        ledger.stating(purpose=text)
    with pytest.raises(InvalidValue, match="run must be one line"):
        ledger.reserve(plan(), run=text)
    assert ledger.charges() == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE note SET text='other'",
        "DELETE FROM note",
        "INSERT OR REPLACE INTO note(id, token, name, text, noted_at) SELECT id, token, name, 'other', '' FROM note",
        "INSERT INTO note(token, name, text, noted_at) VALUES ('x', 'purpose', 'y', '')",
    ],
)
def test_the_file_itself_keeps_notes_as_they_are(path, statement):
    ledger = Ledger.create(path, "clinic", 1.0, relation="add-remove").stating(purpose="a")
    ledger.reserve(plan())
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    assert ledger.charges()[0].notes == (("purpose", "a"),)


def test_an_older_ledger_opens_with_blanks_is_not_changed_by_looking_and_takes_notes(old):
    before = old.read_bytes()
    ledger = Ledger.open(old)
    first, second = ledger.charges()
    assert first.notes == second.notes == ()
    assert (first.committed, second.committed) == (True, False)
    assert ledger.spent().epsilon == 1.25
    assert old.read_bytes() == before
    ledger.note(first.token, release="d1")
    ledger.stating(purpose="more").reserve(plan())
    assert [entry.notes for entry in Ledger.open(old).charges()] == [(("release", "d1"),), (), (("purpose", "more"),)]
    assert ledger.spent().epsilon == 1.5


def test_a_ledger_with_notes_is_still_one_that_older_versions_know(path):
    Ledger.create(path, "clinic", 1.0, relation="add-remove").stating(by="A").reserve(plan())
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT version FROM ledger").fetchone() == (1,)
        columns = [row[1] for row in db.execute("PRAGMA table_info(charge)")]
    assert columns == ["id", "token", "units", "delta_units", "plan", "secure", "reserved_at", "committed_at", "state"]
