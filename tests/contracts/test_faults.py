"""Faults that no other test injects: a full disk, a file that may not be written, a clock that jumps, a newer version's file.

docs/faults.md lists these and all the others.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from benchmarks.fuzz.kept import PLAN
from benchmarks.fuzz.reading import KEY, noon
from benchmarks.fuzz.wire import asked, make_party, run_through

from kveil import Ledger, PrivateKMeans
from kveil.collect.client import LocalClient, Refusal
from kveil.errors import BudgetError, FederationError, InvalidValue
from kveil.kernel import gate, ledger

FAULTS = {"a full disk": "PRAGMA max_page_count=1", "a file that may not be written": "PRAGMA query_only=1"}


def faulty(pragma: str) -> Any:
    """Connections as they are on such a disk: SQLite says the same words."""
    connect = ledger._connect

    def broken(path: str) -> sqlite3.Connection:
        db = connect(path)
        db.execute(pragma)
        return db

    return broken


@pytest.fixture
def full_ledger(monkeypatch):
    """A ledger whose file has no room for one more page. `reserve` fills what is left in it."""
    made = Ledger.create("l.db", "clinic", 1024.0, relation="add-remove")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_connect", faulty(FAULTS["a full disk"]))
        for _ in range(200):
            try:
                made.reserve(PLAN)
            except BudgetError:
                break
    return made


def test_a_ledger_on_a_full_disk_refuses_and_forgets_nothing(full_ledger, monkeypatch):
    spent = full_ledger.spent()
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_connect", faulty(FAULTS["a full disk"]))
        with pytest.raises(BudgetError, match="Nothing was drawn"):
            full_ledger.reserve(PLAN)
    assert full_ledger.spent() == spent, "nothing was charged"
    full_ledger.reserve(PLAN)
    assert full_ledger.spent().epsilon == spent.epsilon + 0.125, "there is room again"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fit_whose_charge_cannot_be_written_draws_nothing(fault, full_ledger, monkeypatch):
    before = full_ledger.spent()
    monkeypatch.setattr(ledger, "_connect", faulty(FAULTS[fault]))
    monkeypatch.setattr(gate, "run", lambda *_: pytest.fail("noise was drawn"))
    model = PrivateKMeans(2, epsilon=1.0, bounds=(-1, 1), ledger=full_ledger)
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        model.fit(np.zeros((9, 2)))
    assert not hasattr(model, "release_")
    assert full_ledger.spent() == before


@pytest.mark.parametrize("years", [-30, 30])
def test_a_clock_that_jumps_gives_no_budget_back(years, monkeypatch):
    made = Ledger.create("l.db", "clinic", 1.0, relation="add-remove")
    made.reserve(PLAN)
    monkeypatch.setattr(ledger, "_day", lambda: (datetime.now(UTC) + timedelta(days=365 * years)).date().isoformat())
    made.reserve(PLAN)
    assert made.spent().epsilon == 0.25
    assert Ledger.open("l.db").remaining().epsilon == 0.75


def test_a_party_whose_charge_cannot_be_written_answers_nothing(monkeypatch):
    Ledger.create("a.db", "a", 40.0, relation="add-remove")
    party = make_party(ledger="a.db")
    monkeypatch.setattr(ledger, "_connect", faulty(FAULTS["a file that may not be written"]))
    monkeypatch.setattr(gate, "run", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(FederationError):
        run_through(party)
    assert party.ledger.spent().epsilon == 0
    party.close()


def test_a_party_whose_journal_cannot_be_written_answers_nothing(monkeypatch):
    """What is not in its books could not be sent again: there is no run, and nothing is charged."""
    party = make_party()
    party._journal._db.execute(FAULTS["a file that may not be written"])
    monkeypatch.setattr(gate, "run", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(FederationError):
        run_through(party)
    assert party.ledger.spent().epsilon == 0


def test_a_device_whose_ledger_cannot_be_written_sends_nothing_and_spends_nothing():
    with LocalClient("d.db", n_features=2, key=KEY.public, is_first=True, clock=noon) as client:
        db = client._ledger.file._db
        db.execute(FAULTS["a file that may not be written"])
        refused = client.answer([asked("grid")], [0.1, 0.2])
        assert isinstance(refused, Refusal)
        assert refused.why == "budget"
        assert client.history() == []
        db.execute("PRAGMA query_only=0")
        assert isinstance(client.answer([asked("grid")], [0.1, 0.2]), bytes)


def test_a_journal_of_a_newer_version_is_refused_and_left_as_it_is():
    Ledger.create("a.db", "a", 40.0, relation="add-remove")
    make_party(ledger="a.db").close()
    with closing(sqlite3.connect("a.db.runs", isolation_level=None)) as db:
        db.execute("UPDATE journal SET version=2")
    with pytest.raises(InvalidValue, match="no journal"):
        make_party(ledger="a.db")
    with closing(sqlite3.connect("a.db.runs")) as db:
        assert db.execute("SELECT version FROM journal").fetchall() == [(2,)]


def test_a_device_ledger_of_a_newer_version_is_refused():
    LocalClient("d.db", n_features=2, key=KEY.public, is_first=True, clock=noon).close()
    with closing(sqlite3.connect("d.db", isolation_level=None)) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE device SET version=9")
        for _, sql in triggers:
            db.execute(sql)
    with pytest.raises(InvalidValue, match="another version"):
        LocalClient("d.db", n_features=2, key=KEY.public, clock=noon)
