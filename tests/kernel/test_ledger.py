"""A budget that nobody overdraws: reservations, rules, tickets, and a file that refuses to forget."""

import copy
import os
import pickle
import sqlite3
import stat
import threading
from contextlib import closing
from datetime import date
from fractions import Fraction

import pytest
import sklearn

from kveil.errors import BudgetError, BudgetExceeded, InvalidValue, LedgerMismatch, TicketError
from kveil.kernel import ledger as ledger_module
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Charge, Plan, PrivacyUnit, floor_delta, floor_epsilon, guarantee, zcdp_rho
from kveil.testing import scripted

RECORD, PERSON = PrivacyUnit(), PrivacyUnit("person", 3, "patient")


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Ledgers of both kinds; each test sees the same promises."""

    def new(epsilon=1.0, delta=0, *, relation="add-remove", unit=RECORD, rule="auto", name="clinic"):
        terms = {"relation": relation, "unit": unit, "rule": rule}
        if request.param == "memory":
            return Ledger.memory(name, epsilon, delta, **terms)
        return Ledger.create(tmp_path / f"{len(os.listdir(tmp_path))}.db", name, epsilon, delta, **terms)

    return new


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clinic.db"


@pytest.fixture
def on_file(path):
    return Ledger.create(path, "clinic", 1.0, relation="add-remove")


def laplace(epsilon, **more):
    return Charge("discrete-laplace", "sums", 1, "l1", Fraction(epsilon), **more)


def gaussian(rho, **more):
    return Charge("discrete-gaussian", "sums", 1, "l2", rho=Fraction(rho), **more)


def keys(epsilon, delta):
    return Charge("threshold", "words", 1, "l1", Fraction(epsilon), delta=Fraction(delta))


def plan(*charges, relation="add-remove", unit=RECORD, delta=0):
    return Plan(charges, relation, unit, Fraction(delta))


def test_a_reservation_is_spent_at_once_and_closing_is_bookkeeping(make):
    ledger = make()
    ticket = ledger.reserve(plan(laplace("1/4"), laplace("1/8")))
    assert ledger.spent().epsilon == 0.375
    assert ledger.remaining().epsilon == 0.625
    (entry,) = ledger.charges()
    assert entry.committed is False
    assert entry.secure is True
    assert entry.amount.epsilon == 0.375
    assert entry.token == ticket.token
    assert "discrete-laplace" in entry.plan
    ticket.take(laplace("1/4"))
    ticket.close()
    ticket.close()  # harmless
    assert ledger.charges()[0].committed is True
    assert ledger.spent().epsilon == 0.375, "also what was not drawn"


def test_a_ticket_closes_at_the_end_of_its_block_and_an_error_leaves_it_incomplete_but_spent(make):
    ledger = make()
    with pytest.raises(ZeroDivisionError), ledger.reserve(plan(laplace("1/4"))) as ticket:
        Fraction(1, 0)
    assert ledger.charges()[0].committed is False
    assert ledger.spent().epsilon == 0.25
    with pytest.raises(TicketError, match="closed"):
        ticket.take(laplace("1/4"))


def test_what_does_not_fit_is_refused_and_nothing_is_charged(make):
    ledger = make()
    ledger.reserve(plan(laplace("4/5")))
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve(plan(laplace("1/2")))
    for phrase in ("epsilon 0.5", "epsilon 0.2", '"clinic"', "nothing was charged"):
        assert phrase in str(refusal.value)
    assert ledger.spent().epsilon == pytest.approx(0.8)
    assert len(ledger.charges()) == 1
    ledger.reserve(plan(laplace(floor_epsilon(0.2))))


def test_ten_fits_of_a_tenth_fit_into_one_and_eleven_do_not(make):
    ledger = make(1.0)
    for _ in range(10):
        ledger.reserve(plan(laplace(floor_epsilon(0.1))))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(laplace(floor_epsilon(0.1))))
    assert len(ledger.charges()) == 10
    assert ledger.spent().epsilon <= 1.0


def test_a_cost_is_rounded_up_to_whole_units(make):
    """A billion requests for almost nothing must not be free."""
    ledger = make(2.0**-30)
    tiny = plan(laplace(Fraction(1, 2**100)))
    for _ in range(3):
        ledger.reserve(tiny)
    assert ledger.spent().epsilon == 3 * 2.0**-40


def test_a_ledger_can_be_spent_to_the_last_unit(make):
    ledger = make(1.0)
    ledger.reserve(plan(laplace(1 - Fraction(1, 2**40))))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(laplace(Fraction(1, 2**40) + Fraction(1, 2**90))))
    ledger.reserve(plan(laplace(Fraction(1, 2**40))))
    assert ledger.remaining().epsilon == 0.0


@pytest.mark.parametrize(("delta", "rule"), [(0, "pure"), (1e-6, "zcdp")])
def test_the_rule_follows_delta_unless_it_is_named(make, delta, rule):
    assert make(1.0, delta).rule == rule
    assert rule in repr(make(1.0, delta))


def test_a_ledger_with_delta_takes_a_plan_calibrated_for_it_and_then_nothing(make):
    """(1, 1e-6): rho of zcdp_rho fits to the last unit, whole or in parts, and spends epsilon 1 and not more."""
    ledger = make(1.0, 1e-6)
    delta = floor_delta(1e-6)
    rho = zcdp_rho(Fraction(1), delta)
    ledger.reserve(plan(gaussian(rho / 4, times=2), gaussian(rho / 2), delta=delta))
    spent = ledger.spent()
    assert 0.9999 < spent.epsilon <= 1.0
    assert spent.rho == pytest.approx(float(rho))
    assert "rho" in str(spent)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(gaussian(Fraction(1, 2**60)), delta=delta))


def test_a_zcdp_ledger_adds_rho_of_every_mechanism(make):
    ledger = make(1.0, 1e-6)
    ledger.reserve(plan(laplace("1/10"), Charge("select", "swap", 1, "range", Fraction(1, 10)), gaussian("1/1000")))
    assert ledger.spent().rho == pytest.approx(0.1**2 / 2 + 0.1**2 / 8 + 0.001)
    assert make(1.0, 1e-6).spent() == (0.0, 0.0, 0.0)


def test_an_approx_ledger_adds_epsilon_and_delta_of_closed_plans(make):
    ledger = make(2.0, 1e-5, rule="approx")
    ledger.reserve(plan(keys("1/2", Fraction(1, 10**6))))
    ledger.reserve(plan(gaussian("1/100"), delta=Fraction(2, 10**6)))
    spent = ledger.spent()
    assert spent.epsilon == pytest.approx(0.5 + 0.608, abs=0.01)
    assert spent.delta == pytest.approx(3e-6)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(keys("1/100", Fraction(8, 10**6))))
    assert ledger.spent() == spent


def test_an_approx_ledger_takes_a_plan_whose_epsilon_is_nothing_at_its_delta(make):
    """1e-7 at delta 9.99e-7 is (0, 9.99e-7)-DP by more than one route; it must be counted, not refused."""
    ledger = make(1.0, 1e-6, rule="approx")
    ledger.reserve(plan(laplace(Fraction(1, 10**7)), delta=Fraction(999, 10**9)))
    assert ledger.spent().delta == pytest.approx(9.99e-7)


@pytest.mark.parametrize("epsilon", [2**23, 2**24, 2**200], ids=["2**23", "2**24", "2**200"])
def test_a_request_beyond_all_measure_is_refused_as_any_other(make, epsilon):
    ledger = make()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(laplace(epsilon)))
    assert ledger.charges() == ()
    ledger.reserve(plan(laplace("1/2")))


MISMATCHES = {
    "relation": ({}, plan(laplace("1/10"), relation="replace-one")),
    "a person": ({}, plan(laplace("1/10"), unit=PrivacyUnit("person"))),
    "a record": ({"unit": PERSON}, plan(laplace("1/10"))),
    "more rows": ({"unit": PERSON}, plan(laplace("1/10"), unit=PrivacyUnit("person", 4, "patient"))),
    "another id": ({"unit": PERSON}, plan(laplace("1/10"), unit=PrivacyUnit("person", 3, "doctor"))),
    "Gaussian on pure": ({}, plan(gaussian("1/1000"))),
    "threshold on pure": ({}, plan(keys("1/10", "1/1000000"))),
    "threshold on zcdp": ({"delta": 1e-6}, plan(keys("1/10", "1/10000000"))),
}


@pytest.mark.parametrize(("terms", "asked"), MISMATCHES.values(), ids=MISMATCHES)
def test_another_kind_of_promise_is_refused_and_nothing_is_charged(make, terms, asked):
    ledger = make(**terms)
    with pytest.raises(LedgerMismatch, match="Nothing was charged"):
        ledger.reserve(asked)
    assert ledger.charges() == ()


def test_a_ledger_that_names_no_id_column_takes_any(make):
    ledger = make(unit=PrivacyUnit("person", 3))
    for taking in (ledger, make(unit=PERSON)):
        taking.reserve(plan(laplace("1/10"), unit=PERSON))
        assert taking.spent().epsilon == pytest.approx(0.1)


@pytest.mark.parametrize(("terms", "words"), [
    ({"rule": "best"}, r"^rule must be 'auto', 'pure', 'zcdp' or 'approx', got 'best'\.$"), ({"rule": "zcdp"}, "delta > 0"),
    ({"relation": "add"}, r"^relation must be 'add-remove' or 'replace-one', got 'add'\.$"), ({"rule": None}, "^rule .*got None"),
    ({"unit": "person"}, r"^unit must be a PrivacyUnit, .*got 'person'\.$"), ({"relation": ["add-remove"]}, "^relation must be"),
    ({"rule": "approx"}, "delta > 0"), ({"delta": 1e-6, "rule": "pure"}, "delta=0"), ({"epsilon": 0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"), ({"delta": 1}, "delta"),
])  # fmt: skip
def test_terms_that_make_no_ledger_are_refused_before_a_file_exists(tmp_path, terms, words):
    arguments = {"epsilon": 1.0, "delta": 0, "relation": "add-remove", **terms}
    with pytest.raises(InvalidValue, match=words):
        Ledger.memory("clinic", **arguments)
    with pytest.raises(InvalidValue, match=words):
        Ledger.create(tmp_path / "x.db", "clinic", **arguments)
    assert os.listdir(tmp_path) == []


def test_a_copy_is_the_same_budget(make):
    ledger = make()
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy(ledger) is ledger
    assert copy.deepcopy({"ledger": [ledger]})["ledger"][0] is ledger
    assert sklearn.clone(ledger, safe=False) is ledger  # what clone does to a parameter of an estimator


def test_a_ledger_on_file_is_pickled_as_its_place_and_a_ledger_in_memory_not_at_all(on_file):
    again = pickle.loads(pickle.dumps(on_file))
    again.reserve(plan(laplace("3/4")))
    with pytest.raises(BudgetExceeded):
        on_file.reserve(plan(laplace("1/2")))
    with pytest.raises(TicketError, match="two budgets"):
        pickle.dumps(Ledger.memory("clinic", 1.0, relation="add-remove"))


def test_a_pickled_ledger_is_found_from_another_folder(on_file, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_name = pickle.dumps(Ledger.open("clinic.db"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(by_name).name == "clinic"


def test_a_ticket_cannot_be_pickled_or_copied(make):
    ticket = make().reserve(plan(laplace("1/4")))
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TicketError, match="cannot be copied"):
            attempt(ticket)


def test_each_charge_of_a_ticket_is_taken_once_for_each_repetition(make):
    twice, other = laplace("1/16", times=2), laplace("1/8")
    ticket = make().reserve(plan(twice, other, twice))
    assert [ticket.take(charge) for charge in (twice, other, twice, twice, twice)] == [0, 1, 0, 2, 2]
    for charge in (twice, other):
        with pytest.raises(TicketError, match="drawn already"):
            ticket.take(charge)


def test_a_charge_that_was_not_reserved_cannot_be_taken(make):
    ticket = make().reserve(plan(laplace("1/4")))
    for stranger in (laplace("1/2"), laplace("1/4", times=2), laplace("1/4", reason="because"), gaussian("1/4")):
        with pytest.raises(TicketError, match="not in the reserved plan"):
            ticket.take(stranger)
    ticket.take(laplace("1/4"))


def in_a_forked_child(action):
    """The name of the error that `action` raises in a child process, or nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            os.write(writer, b"none")
        except BaseException as error:
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_ticket_does_not_work_in_a_forked_child_and_still_works_in_its_parent(make):
    ledger = make()
    ticket = ledger.reserve(plan(laplace("1/4")))
    assert in_a_forked_child(lambda: ticket.take(laplace("1/4"))) == "TicketError"
    assert in_a_forked_child(ticket.close) == "none"
    assert ledger.charges()[0].committed is False, "a child does not close its parent's ticket"
    assert ticket.take(laplace("1/4")) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_shares_a_ledger_on_file_and_may_not_use_one_in_memory(on_file):
    assert in_a_forked_child(lambda: on_file.reserve(plan(laplace("3/4")))) == "none"
    assert on_file.spent().epsilon == 0.75
    in_memory = Ledger.memory("clinic", 1.0, relation="add-remove")
    for action in (lambda: in_memory.reserve(plan(laplace("1/4"))), in_memory.spent, in_memory.charges):
        assert in_a_forked_child(action) == "TicketError"
    in_memory.reserve(plan(laplace("1/4")))


def test_the_source_of_noise_may_not_change_after_the_reservation(make):
    ledger = make()
    secure = ledger.reserve(plan(laplace("1/4")))
    with scripted(1):
        with pytest.raises(TicketError, match="source of noise was changed"):
            secure.take(laplace("1/4"))
        insecure = ledger.reserve(plan(laplace("1/4")))
        assert insecure.take(laplace("1/4")) == 0
    assert secure.take(laplace("1/4")) == 0, "nothing was used up by the refusal"
    again = laplace("1/8", times=2)
    with scripted(1):
        both = ledger.reserve(plan(again))
        both.take(again)
    with pytest.raises(TicketError, match="source of noise was changed"):
        both.take(again)


def test_a_scripted_charge_taints_every_later_guarantee_of_the_ledger(make):
    ledger = make()
    asked = plan(laplace("1/8"))
    before = ledger.reserve(asked)
    with scripted(1), ledger.reserve(asked):
        pass
    after = ledger.reserve(asked)
    assert guarantee(asked, trust="curator", reasons=before.reasons).valid is True
    tainted = guarantee(asked, trust="curator", reasons=after.reasons)
    assert tainted.valid is False
    assert "scripted" in str(tainted)
    assert [entry.secure for entry in ledger.charges()] == [True, False, True]


def test_a_ledger_keeps_days_and_no_times_so_that_nobody_reads_off_how_long_a_fit_ran(path, on_file):
    with on_file.reserve(plan(laplace("1/8"))):
        pass
    on_file.reserve(plan(laplace("1/8")))
    with closing(sqlite3.connect(path)) as db:
        days = [day for row in db.execute("SELECT reserved_at, committed_at FROM charge") for day in row]
    assert [day is None for day in days] == [False, False, False, True]
    assert all(date.fromisoformat(day).isoformat() == day for day in days if day)  # a date alone


def test_a_ledger_of_an_older_version_with_times_in_it_still_opens_and_adds_up(path, on_file):
    row = "('t', 137438953472, 0, '{\"unit\": {\"id_column\": null}}', 1, '2024-05-01T10:11:12+00:00')"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"INSERT {INSERT} {row}")
        db.execute("UPDATE charge SET state='committed', committed_at='2024-05-01T10:19:00+00:00'")
    with Ledger.open(path).reserve(plan(laplace("1/8"))):
        pass
    assert [entry.committed for entry in on_file.charges()] == [True, True]
    assert on_file.charges()[0].reserved_at == "2024-05-01T10:11:12+00:00"
    assert on_file.spent().epsilon == 0.25


def test_the_taint_outlives_the_process_object(path, on_file):
    with scripted(1):
        on_file.reserve(plan(laplace("1/8")))
    assert Ledger.open(path).reserve(plan(laplace("1/8"))).reasons != ()


INSERT = "INTO charge(token, units, delta_units, plan, secure, reserved_at) VALUES"
INSERT_ID = "INTO charge(id, token, units, delta_units, plan, secure, reserved_at) VALUES"
TERMS = "version, name, relation, unit, rule, epsilon, delta"
STATEMENTS = {
    "update a charge": "UPDATE charge SET units=1",
    "move a charge to another plan": "UPDATE charge SET plan='{}', state='committed'",
    "make a charge secure": "UPDATE charge SET secure=1, state='committed' WHERE secure=0",
    "lower a charge on commit": "UPDATE charge SET units=1, state='committed'",
    "change delta on commit": "UPDATE charge SET delta_units=1, state='committed'",
    "change a token": "UPDATE charge SET token='x', state='committed'",
    "change an id": "UPDATE charge SET id=77, state='committed'",
    "change a date": "UPDATE charge SET reserved_at='never', state='committed'",
    "update or replace": "UPDATE OR REPLACE charge SET id=1 WHERE id=2",
    "delete a charge": "DELETE FROM charge WHERE id=1",
    "delete all": "DELETE FROM charge",
    "replace a charge by its id": f"INSERT OR REPLACE {INSERT_ID} (1,'x',1,0,'',1,'')",
    "replace a charge by its token": f"REPLACE {INSERT[:-7]} SELECT token,1,0,'',1,'' FROM charge",
    "upsert": f"INSERT {INSERT_ID} (1,'x',1,0,'',1,'') ON CONFLICT(id) DO UPDATE SET units=1",
    "a charge born committed": f"INSERT {INSERT[:-8]}, state) VALUES ('x',1,0,'',1,'','committed')",
    "a negative charge": f"INSERT {INSERT} ('x',-5,0,'',1,'')",
    "a charge of a negative delta": f"INSERT {INSERT} ('x',1,-1,'',1,'')",
    "a charge beyond the limit": f"INSERT {INSERT} ('x',(SELECT limit_units FROM ledger),0,'',1,'')",
    "insert or ignore beyond the limit": f"INSERT OR IGNORE {INSERT} ('x',(SELECT limit_units FROM ledger),0,'',1,'')",
    "a delta beyond the limit": f"INSERT {INSERT} ('x',1,1,'',1,'')",
    "raise the limit": "UPDATE ledger SET limit_units=limit_units*2",
    "rename the ledger": "UPDATE ledger SET name='other'",
    "delete the ledger": "DELETE FROM ledger",
    "a second ledger": f"INSERT INTO ledger SELECT 2, {TERMS}, limit_units, limit_delta FROM ledger",
    "replace the ledger": f"INSERT OR REPLACE INTO ledger SELECT 1, {TERMS}, limit_units*2, limit_delta FROM ledger",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_the_file_itself_refuses_to_forget(path, on_file, statement):
    """Raw SQL, past all of our code; the triggers stand guard, whichever program opens the file."""
    on_file.reserve(plan(laplace("1/4")))
    with scripted(1):
        on_file.reserve(plan(laplace("1/8")))
    db = sqlite3.connect(path)
    before = db.execute("SELECT * FROM charge").fetchall(), db.execute("SELECT * FROM ledger").fetchall()
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    db.rollback()
    assert (db.execute("SELECT * FROM charge").fetchall(), db.execute("SELECT * FROM ledger").fetchall()) == before
    db.close()
    assert on_file.spent().epsilon == 0.375


def test_a_committed_charge_cannot_be_reopened_or_committed_again(path, on_file):
    on_file.reserve(plan(laplace("1/4"))).close()
    db = sqlite3.connect(path)
    for statement in ("UPDATE charge SET state='reserved'", "UPDATE charge SET committed_at='later'"):
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(statement)
    db.close()


def test_a_file_is_durable_private_to_its_owner_and_keeps_its_terms(path):
    first = Ledger.create(path, "ward 'B'; --", 2.5, 1e-6, relation="replace-one", unit=PERSON, rule="approx")
    first.reserve(plan(keys("1/4", Fraction(1, 10**7)), relation="replace-one", unit=PERSON))
    again = Ledger.open(str(path))
    assert (again.name, again.relation, again.unit, again.rule) == ("ward 'B'; --", "replace-one", PERSON, "approx")
    assert (again.epsilon, again.delta) == (Fraction(5, 2), floor_delta(1e-6))
    assert again.spent() == first.spent()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_every_connection_waits_for_the_disk(monkeypatch, on_file):
    """synchronous=FULL on each connection that reserves: NORMAL may lose the last commits of a write-ahead log."""
    seen = []
    real = sqlite3.connect

    def watched(*args, **more):
        db = real(*args, **more)
        db.set_trace_callback(seen.append)
        return db

    monkeypatch.setattr(ledger_module.sqlite3, "connect", watched)
    on_file.reserve(plan(laplace("1/4")))
    statements = [" ".join(text.upper().split()) for text in seen]
    full = [i for i, text in enumerate(statements) if "SYNCHRONOUS=FULL" in text.replace(" ", "")]
    begin = [i for i, text in enumerate(statements) if text.startswith("BEGIN IMMEDIATE")]
    assert full
    assert begin
    assert full[0] < begin[0]


def test_an_existing_file_is_never_overwritten(path, on_file):
    on_file.reserve(plan(laplace("3/4")))
    with pytest.raises(InvalidValue, match="exists already"):
        Ledger.create(path, "clinic", 5.0, relation="add-remove")
    assert Ledger.open(path).spent().epsilon == 0.75
    note = path.with_name("note.txt")
    note.write_text("dear diary")
    with pytest.raises(InvalidValue, match="exists already"):
        Ledger.create(note, "clinic", 5.0, relation="add-remove")
    assert note.read_text() == "dear diary"


def test_a_place_that_cannot_be_written_is_refused_with_its_name(tmp_path):
    with pytest.raises(InvalidValue, match="cannot be written"):
        Ledger.create(tmp_path / "missing" / "clinic.db", "clinic", 1.0, relation="add-remove")


def test_a_missing_file_is_refused_with_its_name(tmp_path):
    for place in (tmp_path / "nothing.db", tmp_path):
        with pytest.raises(InvalidValue, match="no ledger at"):
            Ledger.open(place)


def other_database(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE patients(name TEXT)")
    db.commit()
    db.close()


def other_ledger_table(path):
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE ledger(account TEXT, amount REAL); INSERT INTO ledger VALUES ('rent', 3.5)")
    db.close()


def later_version(path):
    Ledger.create(path, "clinic", 1.0, relation="add-remove")
    db = sqlite3.connect(path)
    db.executescript("DROP TRIGGER fixed_ledger; UPDATE ledger SET version=2")
    db.close()


def unfinished(path):
    """The tables, but no ledger row: what a crash inside `create` could leave."""
    db = sqlite3.connect(path)
    db.executescript(ledger_module.SCHEMA)
    db.close()


def text_file(path):
    path.write_text("name,age\nAda,36\n" * 100)


STRANGERS = {
    "text": text_file,
    "empty": lambda path: path.touch(),
    "another database": other_database,
    "another ledger": other_ledger_table,
    "another version": later_version,
    "unfinished": unfinished,
}


@pytest.mark.parametrize("write", STRANGERS.values(), ids=STRANGERS)
def test_a_file_that_is_no_ledger_is_refused_with_one_clear_message(path, write):
    write(path)
    with pytest.raises(InvalidValue, match="no kveil ledger"):
        Ledger.open(path)


@pytest.mark.parametrize("stranger", ["text", "empty", "another database"])
def test_a_file_that_is_no_ledger_is_left_as_it_was(path, stranger):
    """Opening the wrong file by mistake must not turn it into something else."""
    STRANGERS[stranger](path)
    before = path.read_bytes()
    with pytest.raises((InvalidValue, BudgetError)):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_ledger_that_is_gone_refuses_and_does_not_start_afresh(path, on_file):
    on_file.reserve(plan(laplace("3/4")))
    for leftover in path.parent.glob("clinic.db*"):
        leftover.unlink()
    for action in (lambda: on_file.reserve(plan(laplace("1/2"))), on_file.spent, on_file.remaining):
        with pytest.raises(BudgetError, match="gone"):
            action()


def test_what_is_said_of_a_damaged_ledger_quotes_nothing_of_it(path, on_file):
    """SQLite itself quotes names that it finds in the file."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA writable_schema=1; UPDATE sqlite_master SET name='MARKED', sql='x' WHERE name='charge'")
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.DatabaseError, match="MARKED"):
        db.execute("SELECT * FROM charge")
    for use in (on_file.spent, on_file.charges, lambda: on_file.reserve(plan(laplace("1/4")))):
        with pytest.raises(BudgetError) as told:
            use()
        assert "MARKED" not in str(told.value)
        assert told.value.__suppress_context__
    with pytest.raises(InvalidValue) as refused:
        Ledger.open(path)
    assert "MARKED" not in str(refused.value)


def test_a_locked_ledger_refuses_after_its_patience_and_charges_nothing(path, on_file, monkeypatch):
    real = sqlite3.connect
    monkeypatch.setattr(ledger_module.sqlite3, "connect", lambda *args, **more: real(*args, **{**more, "timeout": 0.05}))
    holder = real(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(BudgetError, match="locked"):
        on_file.reserve(plan(laplace("1/4")))
    holder.execute("ROLLBACK")
    holder.close()
    assert on_file.charges() == ()
    on_file.reserve(plan(laplace("1/4")))


class Interrupted(sqlite3.Connection):
    """A connection on which Ctrl-C comes while a given statement is about to run."""

    at = None

    def execute(self, sql, *args):
        if self.at and sql.lstrip().startswith(self.at):
            raise KeyboardInterrupt
        return super().execute(sql, *args)


@pytest.mark.parametrize("moment", ["BEGIN", "INSERT", "COMMIT"])
def test_an_interrupt_inside_a_reservation_leaves_a_ledger_that_works(path, monkeypatch, moment):
    """Nothing is charged and nothing stays locked."""
    real = sqlite3.connect
    monkeypatch.setattr(ledger_module.sqlite3, "connect", lambda *args, **more: real(*args, factory=Interrupted, **more))
    ledger = Ledger.create(path, "clinic", 1.0, relation="add-remove")
    monkeypatch.setattr(Interrupted, "at", moment)
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(plan(laplace("3/4")))
    monkeypatch.setattr(Interrupted, "at", None)
    assert ledger.charges() == ()
    ledger.reserve(plan(laplace("3/4")))
    assert ledger.spent().epsilon == 0.75


class Full(dict):
    """Charges of a ledger in memory, on which Ctrl-C comes while one is written."""

    def __setitem__(self, *item):
        raise KeyboardInterrupt


def test_what_an_interrupt_cuts_off_in_memory_is_spent_and_nothing_stays_locked():
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    ledger._book._rows, kept = Full(), ledger._book._rows
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(plan(laplace("3/4")))
    ledger._book._rows = kept
    with pytest.raises(BudgetExceeded):
        ledger.reserve(plan(laplace("1/2")))
    ledger.reserve(plan(laplace("1/4")))
    assert ledger.spent().epsilon == 1.0


def test_a_charge_that_cuts_into_another_one_of_its_thread_is_refused():
    """A signal handler, or a finaliser: it would spend what the charge that it cut into has counted on."""
    ledger, refused = Ledger.memory("clinic", 1.0, relation="add-remove"), []

    class Cut(tuple):
        def __getitem__(self, place):
            if not refused:
                with pytest.raises(BudgetError) as error:
                    ledger.reserve(plan(laplace("3/4")))
                refused.append(error)
            return super().__getitem__(place)

    ledger._book._limits = Cut(ledger._book._limits)
    ledger.reserve(plan(laplace("3/4")))
    assert refused
    assert ledger.spent().epsilon == 0.75
    assert len(ledger.charges()) == 1


def test_a_charge_in_memory_waits_for_one_of_another_thread_that_is_half_made():
    """Fifty threads that only hope to meet find no missing lock: here one asks while another is between looking and spending."""
    ledger, asked, answers = Ledger.memory("clinic", 1.0, relation="add-remove"), plan(laplace("3/4")), []

    def ask():
        try:
            ledger.reserve(asked)
            answers.append("granted")
        except BudgetExceeded:
            answers.append("refused")

    other = threading.Thread(target=ask)

    class Slow(tuple):
        def __getitem__(self, place):
            if not other.ident:
                other.start()
                other.join(0.2)  # it waits for the lock, and in vain
            return super().__getitem__(place)

    ledger._book._limits = Slow(ledger._book._limits)
    ledger.reserve(asked)
    other.join()
    assert answers == ["refused"]
    assert len(ledger.charges()) == 1


def test_fifty_threads_asking_for_a_tenth_get_exactly_ten(make):
    ledger = make(1.0)
    asked = plan(laplace(floor_epsilon(0.1)))
    start, answers = threading.Barrier(50), []

    def ask():
        start.wait()
        try:
            with ledger.reserve(asked):
                answers.append("granted")
        except BudgetExceeded:
            answers.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["granted"] * 10 + ["refused"] * 40
    assert len(ledger.charges()) == 10
    assert all(entry.committed for entry in ledger.charges())


def test_threads_that_share_a_ticket_cannot_take_a_charge_twice(make):
    charge = laplace("1/100", times=8)
    ticket = make().reserve(plan(charge))
    start, answers = threading.Barrier(30), []

    def take():
        start.wait()
        try:
            answers.append(ticket.take(charge))
        except TicketError:
            answers.append(None)

    threads = [threading.Thread(target=take) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == [0] * 8 + [None] * 22


def test_who_is_a_person_is_fixed_by_the_first_charge(tmp_path):
    """Otherwise one budget would protect patients in one fit and rows in the next, and nobody in all."""
    for ledger in (
        Ledger.memory("people", 1.0, relation="add-remove", unit=PrivacyUnit("person", 2)),
        Ledger.create(tmp_path / "people.db", "people", 1.0, relation="add-remove", unit=PrivacyUnit("person", 2)),
    ):
        charge = (Charge("discrete-laplace", "sums", 2, "l1", Fraction(1, 4)),)
        ledger.reserve(Plan(charge, "add-remove", PrivacyUnit("person", 2, "patient"))).close()
        with pytest.raises(LedgerMismatch):
            ledger.reserve(Plan(charge, "add-remove", PrivacyUnit("person", 2, "row")))
        ledger.reserve(Plan(charge, "add-remove", PrivacyUnit("person", 2, "patient"))).close()
        assert ledger.spent().epsilon == 0.5
