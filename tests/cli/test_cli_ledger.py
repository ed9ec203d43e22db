"""`kveil ledger`: budgets are made once, charged by fits, and shown to whoever asks."""

from __future__ import annotations

import json
import sqlite3

import pytest

from kveil import Ledger, PrivacyUnit, PrivateKMeans
from kveil.kernel.loss import Plan
from kveil.testing import scripted

FIT = ("--k", 2, "--bounds", "0,10")


def test_a_new_budget_is_told_in_words(kveil, tmp_path):
    db = tmp_path / "clinic.db"
    outcome = kveil("ledger", "init", db, "--epsilon", 1.5)
    assert outcome == (0, f'ledger "clinic" at {db}: epsilon 1.5, delta 0. The epsilons of all releases add up.\n', "")
    ledger = Ledger.open(db)
    assert (ledger.name, ledger.relation, ledger.unit, ledger.rule) == ("clinic", "add-remove", PrivacyUnit(), "pure")
    assert ledger.remaining() == (1.5, 0.0, None)


def test_a_new_budget_in_json_names_its_place_rule_and_amount(kveil, tmp_path):
    db = tmp_path / "b.db"
    outcome = kveil("ledger", "init", db, "--epsilon", 1, "--name", "trial 7", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    remaining = {"epsilon": 1.0, "delta": 0.0, "rho": None}
    assert json.loads(outcome.out) == {"ledger": str(db), "name": "trial 7", "rule": "pure", "remaining": remaining}


def test_people_relation_delta_and_rule_are_kept(kveil, tmp_path):
    arguments = ("--epsilon", 2, "--delta", 1e-6, "--unit", "person:3", "--relation", "replace-one", "--rule", "approx")
    assert kveil("ledger", "init", tmp_path / "b.db", *arguments).code == 0
    ledger = Ledger.open(tmp_path / "b.db")
    assert (ledger.unit, ledger.relation, ledger.rule) == (PrivacyUnit("person", 3), "replace-one", "approx")
    assert ledger.remaining().delta == pytest.approx(1e-6)
    shown = kveil("ledger", "show", tmp_path / "b.db").out
    assert 'ledger "b": epsilon 2, delta 1e-06, replace-one, protects one person with at most 3 records. ' in shown
    assert "The epsilons of all releases add up, and so do their deltas.\n" in shown


def test_a_budget_with_a_delta_adds_zcdp_unless_told_otherwise(kveil, tmp_path):
    told = json.loads(kveil("ledger", "init", tmp_path / "b.db", "--epsilon", 1, "--delta", 1e-6, "--json").out)
    assert told["rule"] == "zcdp"
    assert told["remaining"]["epsilon"] == pytest.approx(1.0)
    assert 0 < told["remaining"]["rho"] < 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--epsilon", 0), "epsilon must be above 0"),
        (("--epsilon", -1), "epsilon must be above 0"),
        (("--epsilon", "inf"), "epsilon must be above 0"),
        (("--epsilon", 1, "--delta", 1), "delta must be in [0, 1)"),
        (("--epsilon", 1, "--rule", "zcdp"), "need delta > 0"),
        (("--epsilon", 1, "--delta", 1e-6, "--rule", "pure"), "goes with --delta 0"),
        (("--epsilon", 1, "--rule", "guess"), "rule must be 'auto', 'pure', 'zcdp' or 'approx', got 'guess'"),
        (("--epsilon", 1, "--unit", "person"), "--unit takes `record`, `person:M`"),
        (("--epsilon", 1, "--unit", "person:0"), "--unit takes"),
        (("--epsilon", 1, "--unit", "person:-1"), "--unit takes"),
        (("--epsilon", 1, "--unit", "person:²"), "--unit takes"),
        (("--epsilon", 1, "--unit", "family:2"), "--unit takes"),
    ],
)
def test_terms_that_make_no_budget_are_refused_and_no_file_is_made(refused, arguments, text, tmp_path):
    said = refused(2, "ledger", "init", tmp_path / "new.db", *arguments)
    assert text in said
    assert said.count("\n") == 1


def test_an_existing_file_is_never_overwritten(refused, budget, csv, tmp_path):
    for path in (tmp_path / "budget.db", csv):
        assert "exists already; a ledger is never overwritten" in refused(2, "ledger", "init", path, "--epsilon", 9)
    assert Ledger.open(tmp_path / "budget.db").remaining().epsilon == 2


def test_a_place_that_cannot_be_written_to_is_refused(refused, tmp_path):
    assert "cannot be written" in refused(2, "ledger", "init", tmp_path / "no" / "such.db", "--epsilon", 1)


def test_an_unused_budget_is_shown_whole(kveil, budget, tmp_path):
    outcome = kveil("ledger", "show", tmp_path / "budget.db")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        'ledger "clinic": epsilon 2, delta 0, add-remove, protects one record. The epsilons of all releases add up.',
        "spent: epsilon 0, delta 0",
        "left:  epsilon 2, delta 0",
    ]
    told = json.loads(kveil("ledger", "show", tmp_path / "budget.db", "--json").out)
    assert told["charges"] == []
    assert told["spent"]["epsilon"] == 0
    assert told["remaining"]["epsilon"] == 2


def test_every_fit_is_a_line_that_says_what_it_took_and_for_what(kveil, budget, csv, tmp_path):
    for number in (1, 2):
        arguments = ("--epsilon", 0.25 * number, "--ledger", tmp_path / "budget.db", "--n-steps", 3)
        assert kveil("fit", csv, "-o", tmp_path / f"{number}", *FIT, *arguments).code == 0
    outcome = kveil("ledger", "show", tmp_path / "budget.db")
    assert (outcome.code, outcome.err) == (0, "")
    assert "spent: epsilon 0.75, delta 0\nleft:  epsilon 1.25, delta 0\n" in outcome.out
    lines = [line for line in outcome.out.splitlines() if "3 x counts, 3 x sums" in line]
    assert [("epsilon 0.25" in line, "epsilon 0.5" in line, "complete" in line) for line in lines] == [
        (True, False, True),
        (False, True, True),
    ]
    told = json.loads(kveil("ledger", "show", tmp_path / "budget.db", "--json").out)
    assert [charge["amount"]["epsilon"] for charge in told["charges"]] == [0.25, 0.5]
    assert [charge["token"] for charge in told["charges"]] == [entry.token for entry in budget.charges()]
    assert all(charge["secure"] and charge["committed"] for charge in told["charges"])
    assert told["charges"][0]["plan"]["charges"][0]["label"] == "counts"


def test_every_release_is_shown_once_something_was_stated(kveil, budget, csv, tmp_path):
    arguments = (*FIT, "--epsilon", 0.25, "--ledger", tmp_path / "budget.db", "--n-steps", 3)
    for name, stated in (("1", ()), ("2", ("--purpose", "buses"))):
        assert kveil("fit", csv, "-o", tmp_path / name, *arguments, *stated).code == 0
    assert kveil("ledger", "show", tmp_path / "budget.db").out.count("release:") == 2


def test_a_fit_with_scripted_noise_taints_the_ledger_and_is_marked(kveil, budget, csv, tmp_path):
    with scripted(1):
        assert kveil("fit", csv, "-o", tmp_path / "a", *FIT, "--ledger", tmp_path / "budget.db").code == 0
    assert "scripted" in kveil("ledger", "show", tmp_path / "budget.db").out
    outcome = kveil("fit", csv, "-o", tmp_path / "b", *FIT, "--ledger", tmp_path / "budget.db")
    assert outcome.code == 0
    assert "NOT VALID: an earlier charge on this ledger was drawn with scripted noise." in outcome.out


def test_a_reservation_that_was_never_finished_counts_as_spent(kveil, budget, tmp_path):
    promised = PrivateKMeans(2, epsilon=0.5, bounds=(0, 10)).guarantee(n_features=2)
    budget.reserve(Plan(promised.charges, "add-remove"))  # and then the process is gone
    shown = " ".join(kveil("ledger", "show", tmp_path / "budget.db").out.split())
    assert "spent: epsilon 0.5, delta 0 left: epsilon 1.5, delta 0" in shown
    assert "reserved" in shown
    told = json.loads(kveil("ledger", "show", tmp_path / "budget.db", "--json").out)
    assert [charge["committed"] for charge in told["charges"]] == [False]


def test_showing_spends_and_changes_nothing(kveil, budget, tmp_path):
    before = kveil("ledger", "show", tmp_path / "budget.db", "--json").out
    assert kveil("ledger", "show", tmp_path / "budget.db", "--json").out == before


def test_what_is_no_ledger_is_refused(refused, csv, tmp_path):
    assert "no ledger at" in refused(2, "ledger", "show", tmp_path / "nothing.db")
    assert "no ledger at" in refused(2, "ledger", "show", tmp_path)
    for option in ((), ("--json",)):
        assert "this file is no kveil ledger" in refused(2, "ledger", "show", csv, *option)


@pytest.mark.parametrize("is_database", [False, True])
def test_an_empty_file_and_a_database_of_others_are_refused_and_left_as_they_are(kveil, tmp_path, is_database):
    path = tmp_path / "other.sqlite"
    path.touch()
    if is_database:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine(x)")
        db.close()
    before = path.read_bytes()
    assert kveil("ledger", "show", path).code == 2
    assert path.read_bytes() == before
