"""Options from `kveil.toml` or --config: what is typed wins, what is unknown is refused, and what was used is said."""

from __future__ import annotations

import json

import pytest

import kveil as library
from kveil.testing import scripted

FIT = '[fit]\nk = 3\nbounds = [0, 10]\nepsilon = 0.5\nrandom-state = 1\ncolumns = ["height", "age"]\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_come_from_the_file_that_is_here_and_typed_ones_win(kveil, csv, here):
    (here / "kveil.toml").write_text(FIT)
    with scripted(5):
        told = json.loads(kveil("fit", csv, "-o", "out", "--epsilon", 0.75, "--json").out)
    release = library.load("out")
    assert (release.guarantee.epsilon, release.features, len(release.centers)) == (0.75, ("height", "age"), 3)
    used = {"--k": 3, "--bounds": "0,10", "--random-state": 1, "--columns": "height,age"}
    assert told["config"] == {"file": "kveil.toml", "options": used}
    said = kveil("fit", csv, "-o", "again", "--columns", "age").out
    assert "Options from kveil.toml: --k, --bounds, --epsilon, --random-state." in said, "columns were typed"


def test_another_file_may_be_named_and_all_commands_may_share_options(kveil, csv, here, budget):
    (here / "other.toml").write_text(f'[all]\nledger = "{here / "budget.db"}"\njson = true\n{FIT}')
    told = json.loads(kveil("fit", csv, "-o", "out", "--config", "other.toml").out)
    assert told["config"]["options"]["--ledger"] == str(here / "budget.db")
    assert budget.remaining().epsilon == 1.5
    assert kveil("ledger", "show", here / "budget.db", "--config", "other.toml").out.startswith("{")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fit]\nepsilonn = 1\n", "has no option epsilonn"),
        ("[fti]\nepsilon = 1\n", "there is no command fti"),
        ("epsilon = 1\n", "`epsilon` stands outside a table: write [fit] above it"),
        ("[all]\nepsilonn = 1\n", "no command has the option epsilonn"),
        ("fit = 1\n", "must be a table of options"),
        ("[fit]\nforce = true\n", "has no option force"),
        ("[fit]\nno-privacy = true\n", "has no option no-privacy"),
        ("[fit]\nbounds = {low = 1}\n", "--bounds takes a text"),
        ("[fit\n", "it is no TOML"),
        ("\xff", "it is no TOML"),
    ],
)
def test_what_is_not_understood_is_refused_before_anything_is_charged(text, said, refused, csv, here):
    (here / "kveil.toml").write_bytes(text.encode("latin-1"))
    assert said in refused(2, "fit", csv, "-o", here / "out", "--bounds", "0,10", "--ledger", here / "budget.db")


def test_what_was_used_is_said_without_passwords(kveil, csv, here):
    (here / "kveil.toml").write_text('[collect.status]\nstorage = "postgresql+psycopg://me:hush@127.0.0.1:9/db?token=hush"\n')
    outcome = kveil("collect", "status", "--json")
    assert json.loads(outcome.out)["config"]["options"] == {"--storage": "postgresql+psycopg://127.0.0.1:9/db"}
    assert "hush" not in outcome.out + outcome.err


def test_a_file_that_is_named_must_be_there(refused, csv, here):
    assert "No such file" in refused(2, "fit", csv, "-o", here / "out", "--config", here / "none.toml")


def test_a_wrong_value_in_the_file_is_named_like_a_typed_one(kveil, csv, here):
    (here / "kveil.toml").write_text('[fit]\nepsilon = "much"\n')
    outcome = kveil("fit", csv, "-o", "out", "--json")
    assert outcome.code == 2
    assert "--epsilon" in json.loads(outcome.out)["message"]
