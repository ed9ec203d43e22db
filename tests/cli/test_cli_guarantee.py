"""`kveil guarantee`: what a saved release promises, and that a changed one is not believed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import kveil as library
from kveil.testing import scripted

ARGUMENTS = ("--k", 3, "--bounds", "0,10", "--epsilon", 0.5)


@pytest.fixture
def saved(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS).code == 0
    return tmp_path / "out"


def test_the_guarantee_is_told_in_words(kveil, saved):
    outcome = kveil("guarantee", saved)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"{library.load(saved).guarantee}\n"
    assert outcome.out.startswith("epsilon = 0.5, delta = 0 for one record, adding or removing it; curator model.\n")
    assert "makes no outcome\nmore than e^0.5 (about 1.65) times as likely." in outcome.out


def test_the_guarantee_in_json_reads_back_as_the_same_guarantee(kveil, saved):
    outcome = kveil("guarantee", saved, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert library.Guarantee.from_json(outcome.out) == library.load(saved).guarantee
    assert json.loads(outcome.out)["epsilon"] == 0.5


def test_a_guarantee_that_does_not_hold_says_so_first(kveil, csv, tmp_path):
    with scripted(1):
        assert kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS).code == 0
    assert kveil("guarantee", tmp_path / "out").out.startswith("NOT VALID: the noise was scripted")
    assert json.loads(kveil("guarantee", tmp_path / "out", "--json").out)["valid"] is False


def test_no_guarantee_is_called_none(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", "--k", 3, "--bounds", "0,10", "--epsilon", "inf", "--no-privacy").code == 0
    assert kveil("guarantee", tmp_path / "out").out.startswith("No privacy guarantee")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("release.json", '"epsilon": 0.5', '"epsilon": 0.1'),
        ("release.json", '"relation": "add-remove"', '"relation": "replace-one"'),
        ("release.json", "kveil.release/1", "kveil.release/2"),
        ("release.json", "{", "["),
        ("card.md", "epsilon", "Epsilon"),
        ("centers.parquet", None, None),
    ],
)
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_changed_release_is_refused(refused, saved, file, old, new, option):
    path = saved / file
    if old is None:
        content = path.read_bytes()
        path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    else:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
    is_newer = new == "kveil.release/2"  # unknown, not changed
    said = refused(2 if is_newer else 4, "guarantee", saved, *option)
    assert said.startswith("kveil: ")
    assert said.count("\n") == 1


def test_a_release_with_a_missing_file_is_refused(refused, saved):
    (saved / "centers.parquet").unlink()
    assert "centers.parquet is missing" in refused(4, "guarantee", saved)


def test_what_is_no_release_is_refused(refused, csv, tmp_path):
    assert "there is no release at" in refused(2, "guarantee", tmp_path / "nothing")
    assert "there is no release at" in refused(2, "guarantee", csv)
    assert "release.json is missing" in refused(4, "guarantee", csv.parent)


def test_a_release_that_agrees_with_itself_passes_the_check_and_lists_its_draws(kveil, saved):
    outcome = kveil("guarantee", saved, "--check")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"whole budget: epsilon 0.5, split over [5-8] draws \(listed below\)", outcome.out)  # by released counts
    assert "\nDraws:\n  - number of rows: discrete-laplace, l1 sensitivity 1, 1 x epsilon " in outcome.out


def test_a_release_saved_anew_with_a_tenth_of_its_epsilon_fails_the_check(refused, saved):
    release = library.load(saved)
    forged = replace(release, parameters={**release.parameters, "epsilon": 0.05})
    forged.save(saved, overwrite=True)
    said = refused(4, "guarantee", saved, "--check")
    assert "its guarantee says epsilon 0.5 and its parameters 0.05" in said
    assert said.count("\n") == 1


def test_other_files_in_the_folder_are_named_and_fail_the_check(kveil, refused, saved):
    (saved / "rows.csv").write_text("age\n1\n")
    outcome = kveil("guarantee", saved)
    assert outcome.code == 0
    assert outcome.err == "kveil: the folder also holds 'rows.csv', which no promise covers.\n"
    assert "the folder also holds 'rows.csv'" in refused(4, "guarantee", saved, "--check")


@pytest.mark.parametrize("options", [("--epsilon", "inf", "--no-privacy"), ()])
def test_a_release_without_a_valid_guarantee_fails_the_check(kveil, refused, csv, tmp_path, options):
    with scripted(1):
        assert kveil("fit", csv, "-o", tmp_path / "out", "--k", 3, "--bounds", "0,10", *options).code == 0
    assert "no valid guarantee" in refused(4, "guarantee", tmp_path / "out", "--check")
