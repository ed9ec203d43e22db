"""`kveil keys`, `kveil fit --sign`, `kveil verify`, `kveil card`, and what the operator states."""

from __future__ import annotations

import csv as csv_module
import io
import json
import shutil
import stat
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kveil import Ledger, SigningKey, load
from kveil.kernel.loss import Plan, guarantee

FIT = ("--k", 3, "--bounds", "0,10", "--epsilon", 0.5)
STATED = ("--purpose", "beds per ward", "--data-name", "admissions 2025", "--by", "A. Hill")


@pytest.fixture
def key(tmp_path):
    SigningKey(bytes(range(32))).save(tmp_path / "key")
    SigningKey(bytes(range(32))).save_public(tmp_path / "key.pub")
    return tmp_path / "key"


@pytest.fixture
def saved(kveil, csv, budget, key, tmp_path):
    outcome = kveil("fit", csv, "-o", tmp_path / "out", *FIT, *STATED, "--ledger", tmp_path / "budget.db", "--sign", key)
    assert outcome.code == 0, outcome
    return tmp_path / "out"


def test_a_key_is_made_once_and_its_secret_is_for_its_owner(kveil, refused, tmp_path):
    outcome = kveil("keys", "new", tmp_path / "mine")
    assert (outcome.code, outcome.err) == (0, "")
    (first, secret), (other, public) = ((tmp_path / name).read_text().split() for name in ("mine", "mine.pub"))
    assert (first, other) == ("kveil-secret-key", "kveil-public-key")
    assert secret not in outcome.out
    assert public in outcome.out
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600
    assert kveil("keys", "show", tmp_path / "mine").out == f"{public}\n"
    assert SigningKey.load(tmp_path / "mine").public == public
    assert "never overwritten" in refused(2, "keys", "new", tmp_path / "mine")
    (tmp_path / "mine").unlink()
    assert "never overwritten" in refused(2, "keys", "new", tmp_path / "mine")
    told = json.loads(kveil("keys", "new", tmp_path / "other", "--json").out)
    assert told["public"] == (tmp_path / "other.pub").read_text().split()[1] != public


def test_a_signed_release_is_verified_line_by_line(kveil, saved, tmp_path):
    outcome = kveil("verify", saved, "--key", tmp_path / "key.pub", "--ledger", tmp_path / "budget.db")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert len(lines) == 8
    assert all(line.startswith("ok ") for line in lines)
    told = json.loads(kveil("verify", saved, "--json").out)
    assert told["good"] is True
    assert [check["state"] for check in told["checks"]] == ["ok", "open", *["ok"] * 5, "open"]
    assert told["left_open"] == ["signature", "ledger"]
    outcome = kveil("verify", saved)
    assert outcome.code == 0
    assert outcome.out.splitlines()[-2:] == [
        'open    ledger      it names "clinic" as payer; pass --ledger to ask it',
        "Left open: signature, ledger. What was not checked would not be seen.",
    ]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_what_fails_is_named_and_the_exit_code_is_4(kveil, saved, option):
    (saved / "rows.csv").write_text("age\n1\n")
    outcome = kveil("verify", saved, *option)
    assert outcome.code == 4
    assert outcome.err == ""
    assert "the folder also holds 'rows.csv'" in outcome.out
    (saved / "card.md").write_text("x")
    outcome = kveil("verify", saved, *option)
    assert outcome.code == 4
    assert "card.md is not the file that was saved" in outcome.out
    for command in (("report", saved), ("card", saved), ("guarantee", saved, "--check")):
        assert kveil(*command, *(option if "report" not in command else ())).code == 4


@pytest.fixture
def forged(saved, tmp_path):
    """A tenth of the epsilon wherever it is said, digests that are right, and the signature of the release it was made from."""
    release = load(saved)
    old = release.guarantee
    charges, draws = (tuple(replace(one, epsilon=one.epsilon / 10) for one in part) for part in (old.charges, old.draws))
    less = replace(guarantee(Plan(charges, old.relation, old.unit), trust=old.trust), draws=draws)
    made = replace(release, guarantee=less, parameters={**release.parameters, "epsilon": 0.05}).save(tmp_path / "forged")
    shutil.copy(saved / "signature.json", made / "signature.json")
    return made


def test_nothing_that_vouches_for_a_release_is_made_of_one_with_a_wrong_signature(kveil, refused, forged, tmp_path):
    assert kveil("verify", forged).code == 4
    says = "signature.json is not a signature of this release"
    assert says in refused(4, "guarantee", forged, "--check")
    for command in (("report", forged), ("card", forged), ("card", forged, "--json")):
        told = refused(4, *command)
        assert f"signature ({says})" in told
        assert "`kveil verify RELEASE`" in told
    assert not (tmp_path / "forged.html").exists()
    (forged / "signature.json").unlink()
    assert kveil("report", forged, "-o", tmp_path / "a.html").code == 0, "without key and ledger nothing contradicts it"
    told = refused(4, "report", forged, "--ledger", tmp_path / "budget.db")
    assert "the ledger charged something else than the guarantee lists" in told


def test_a_report_is_refused_beside_files_that_no_promise_covers(refused, saved):
    (saved / "rows.csv").write_text("age\n1\n")
    assert "other files (the folder also holds 'rows.csv'" in refused(4, "report", saved)


def test_a_report_says_by_which_key_the_release_is_signed_and_who_asked(kveil, saved, key, tmp_path):
    outcome = kveil("report", saved, "--ledger", tmp_path / "budget.db")
    assert (outcome.code, outcome.err) == (0, "")
    assert "It also shows the ledger's budget, and who asked if stated." in outcome.out
    page = (tmp_path / "out.html").read_text()
    assert f"signed by {SigningKey.load(key).public}. Whoever receives it compares this key" in page
    assert "A. Hill" in page
    (saved / "signature.json").unlink()
    assert kveil("report", saved, "--force").code == 0
    page = (tmp_path / "out.html").read_text()
    assert "not signed: nothing here tells who made it" in page
    assert "A. Hill" not in page


def test_a_key_or_a_ledger_that_is_none_is_bad_input(refused, saved, tmp_path):
    assert "64 hexadecimal digits" in refused(2, "verify", saved, "--key", "abc")
    told = refused(2, "verify", saved, "--ledger", tmp_path / "no.db")
    assert "no ledger at" in told
    assert "ledger init" not in told, "a new ledger has paid for nothing"


def test_the_two_files_of_a_key_are_not_taken_for_each_other(refused, csv, key, saved, tmp_path):
    assert "is a public key" in refused(2, "fit", csv, "-o", tmp_path / "more", *FIT, "--sign", f"{key}.pub")
    assert not (tmp_path / "more").exists()
    assert "is a public key" in refused(2, "keys", "show", f"{key}.pub")
    assert "is a secret key" in refused(2, "verify", saved, "--key", key)
    public, secret = key.with_suffix(".pub").rename(tmp_path / "a"), key.rename(tmp_path / "b.pub")  # what is in them decides
    assert "is a public key" in refused(2, "keys", "show", public)
    assert "is a secret key" in refused(2, "verify", saved, "--key", secret)
    assert SigningKey.load(secret).public == public.read_text().split()[1]


def test_keys_of_older_versions_have_no_first_word_and_are_told_apart_by_name(kveil, refused, saved, tmp_path):
    old, secret = tmp_path / "old", bytes(range(32))
    old.write_text(secret.hex() + "\n")
    old.with_suffix(".pub").write_text(SigningKey(secret).public + "\n")
    assert kveil("keys", "show", old).out == f"{SigningKey(secret).public}\n"
    assert kveil("verify", saved, "--key", f"{old}.pub").code == 0
    assert "is a public key" in refused(2, "keys", "show", f"{old}.pub")
    assert "is a secret key" in refused(2, "verify", saved, "--key", old)


def test_a_key_that_cannot_sign_is_refused_before_anything_is_spent(refused, csv, budget, tmp_path):
    arguments = (csv, "-o", tmp_path / "new", *FIT, "--ledger", tmp_path / "budget.db")
    assert "there is no signing key" in refused(2, "fit", *arguments, "--sign", tmp_path / "nothing")
    assert "purpose must be one line" in refused(2, "fit", *arguments, "--purpose", "two\nlines")
    assert "--by is written on a ledger" in refused(2, "fit", csv, "-o", tmp_path / "new", *FIT, "--by", "me")


def test_the_card_begins_with_what_a_person_can_use(kveil, saved):
    card = kveil("card", saved).out
    assert card == (saved / "card.md").read_text() == load(saved).card()
    start, rest = card.split("## What not to do with it")
    day = datetime.now(UTC).date().isoformat()
    for text in (
        "at most 62.3 % sure",
        f"- Made on: {day}",
        "- Data: admissions 2025",
        "- Purpose: beds per ward",
        "Not covered:",
    ):
        assert text in start
    assert "A. Hill" not in card
    places = [rest.index(f"## {heading}") for heading in ("Is it any good?", "The centres", "What was protected", "Receipt")]
    assert places == sorted(places)


def test_the_card_as_json_is_a_record_of_the_registry(kveil, saved):
    record = json.loads(kveil("card", saved, "--json").out)
    assert record == load(saved).deployment()
    assert record["deployment"]["basic"]["intended_use"] == "beds per ward"


def test_statements_without_a_ledger_are_on_the_card(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *FIT, "--data-name", "visits").code == 0
    assert (load(tmp_path / "out").data_name, load(tmp_path / "out").purpose) == ("visits", "")
    assert "- Purpose: not stated" in kveil("card", tmp_path / "out").out


def test_the_ledger_shows_what_was_stated_and_which_release_it_paid_for(kveil, saved, tmp_path):
    db = tmp_path / "budget.db"
    told = json.loads(kveil("ledger", "show", db, "--json").out)
    (entry,) = told["entries"]
    assert (entry["purpose"], entry["data_name"], entry["by"]) == ("beds per ward", "admissions 2025", "A. Hill")
    assert entry["release"] == load(saved).fingerprint()
    shown = " ".join(kveil("ledger", "show", db).out.split())
    assert "by: A. Hill" in shown
    assert "data: admissions" in shown
    (row,) = csv_module.DictReader(io.StringIO(kveil("ledger", "show", db, "--csv").out))
    assert row["purpose"] == "beds per ward"
    page = kveil("ledger", "show", db, "--html").out
    assert page.startswith("<!doctype html>")
    assert "<svg" in page


def test_several_ledgers_are_shown_together_and_days_limit_what_is_listed(kveil, refused, saved, tmp_path):
    Ledger.create(tmp_path / "two.db", "ward", 1.0, relation="add-remove")
    dbs = (tmp_path / "budget.db", tmp_path / "two.db")
    assert [told["name"] for told in json.loads(kveil("ledger", "show", *dbs, "--json").out)] == ["clinic", "ward"]
    assert kveil("ledger", "show", *dbs).out.count("spent: ") == 2
    later = json.loads(kveil("ledger", "show", dbs[0], "--since", "2999-01-01", "--json").out)
    assert (later["entries"], later["charges"], later["spent"]["epsilon"]) == ([], [], 0.5)
    assert "--since takes a day" in refused(2, "ledger", "show", dbs[0], "--since", "soon")
    assert "exclude each other" in refused(2, "ledger", "show", dbs[0], "--csv", "--json")


def test_bounds_and_evaluations_are_stated_too(kveil, saved, csv, tmp_path):
    paid = ("--epsilon", 0.5, "--ledger", tmp_path / "budget.db", *STATED)
    assert kveil("bounds", csv, *paid).code == 0
    assert kveil("evaluate", saved, csv, *paid).code == 0
    notes = [dict(entry.notes) for entry in Ledger.open(tmp_path / "budget.db").charges()]
    assert [note["by"] for note in notes] == ["A. Hill"] * 3


def test_a_reclustered_release_can_be_signed_and_noted(kveil, saved, key, tmp_path):
    db, two = tmp_path / "budget.db", tmp_path / "two"
    assert kveil("recluster", saved, "-k", 2, "-o", two).code == 0
    assert kveil("verify", two, "--ledger", db).code == 4
    assert "says that it was clustered again" in kveil("report", two, "--ledger", db).err
    assert kveil("recluster", saved, "-k", 2, "-o", two, "--force", "--ledger", db, "--sign", key).code == 0
    assert kveil("verify", two, "--ledger", db, "--key", f"{key}.pub").code == 0
    assert kveil("verify", saved, "--ledger", db, "--key", f"{key}.pub").code == 0
