"""`kveil recluster`, `kveil curve` and `kveil sample`: a saved release answers, and the data may be gone."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kveil import load


@pytest.fixture
def release(tmp_path, kveil, csv):
    """A fit with the number of clusters left to noisy counts; the table is deleted afterwards."""
    done = kveil(
        "fit", csv, "-o", tmp_path / "out", "-k", "auto", "--k-range", "2,9", "--bounds", "0,10", "--epsilon", 4, "--json"
    )
    assert done.code == 0, done.err
    csv.unlink()
    told = json.loads(done.out)
    assert told["notes"][0].startswith('n_clusters="auto": 3 is ')
    assert len(told["centers"]) == 3
    return tmp_path / "out"


def test_another_number_of_centres_is_saved_with_the_same_guarantee(release, tmp_path, kveil):
    done = kveil("recluster", release, "-k", 2, "-o", tmp_path / "two")
    assert done.code == 0, done.err
    assert "No new charge" in done.out
    one, two = load(release), load(tmp_path / "two")
    assert (two.guarantee, len(two.centers)) == (one.guarantee, 2)
    assert kveil("guarantee", "--check", tmp_path / "two").code == 0
    assert kveil("recluster", release, "-k", 2, "-o", tmp_path / "two").code == 2  # never overwritten
    told = json.loads(kveil("recluster", release, "-k", 2, "-o", tmp_path / "two", "--force", "--json").out)
    assert np.array_equal(told["centers"], two.centers)
    refused = kveil("recluster", release, "-k", 100_000, "-o", tmp_path / "many")
    assert refused.code == 2
    assert not (tmp_path / "many").exists()


def test_a_curve_is_printed_as_a_table_and_as_json_and_drawn(release, tmp_path, kveil):
    done = kveil("curve", release)
    assert "<- suggested" in done.out
    assert "3 is " in done.out
    assert f"Drawn into {tmp_path / 'first.svg'}" in kveil("curve", release, "--picture", tmp_path / "first.svg").out
    told = json.loads(kveil("curve", release, "--k-range", "1,5", "--json", "--picture", tmp_path / "curve.svg").out)
    assert told["k"] == [1, 2, 3, 4, 5]
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    assert kveil("curve", release, "--picture", tmp_path / "curve.svg").code == 2  # it is there already
    for wrong in ("5", "5,x", "5,2", "0,9"):
        told = kveil("curve", release, "--k-range", wrong)
        assert told.code == 2
        assert "--k-range takes LOW,HIGH: two whole numbers" in " ".join(told.err.split())
        assert "(low, high)" not in told.err


def test_made_up_rows_are_written_with_the_names_of_the_columns(release, tmp_path, kveil):
    done = kveil("sample", release, "--rows", 500, "-o", tmp_path / "made.csv", "--random-state", 3)
    assert "not data" in done.out
    header, *lines = (tmp_path / "made.csv").read_text().splitlines()
    assert header == "age,height"
    assert len(lines) == 500
    assert kveil("sample", release, "--rows", 5, "-o", tmp_path / "made.csv").code == 2
    assert kveil("sample", release, "--rows", 5, "-o", tmp_path / "nowhere" / "made.csv").code == 2


@pytest.mark.parametrize("wrong", [("-k", "some"), ("-k", "auto", "--k-range", "2"), ("-k", "4", "--k-range", "2,9"),
                                   ("-k", "auto", "--objective", "k-median"), ("-k", "auto", "--method", "lloyd")])  # fmt: skip
def test_numbers_of_clusters_that_make_no_sense_are_refused(wrong, tmp_path, refused, csv):
    refused(2, "fit", csv, "-o", tmp_path / "out", "--bounds", "0,10", "--ledger", tmp_path / "budget.db", *wrong)
