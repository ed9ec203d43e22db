"""`kveil bounds`, and `kveil fit` with scales, categories and missing cells."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import kveil as library
from kveil import Ledger, PrivateKMeans
from kveil.testing import scripted

TOWNS = ("north", "south")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 5, 3000), "town": np.array(TOWNS)[rng.integers(0, 2, 3000)]})
    frame.loc[::50, "age"] = np.nan
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "levels.json").write_text(json.dumps({"town": TOWNS}))
    return tmp_path


def budget(folder, epsilon=4.0):
    Ledger.create(folder / "people.db", "people", epsilon, relation="add-remove")
    return folder / "people.db"


def test_bounds_are_found_charged_saved_and_used_by_a_fit(kveil, table):
    db, out = budget(table), table / "bounds.json"
    search = ("bounds", table / "people.csv", "--columns", "age", "--epsilon", 2, "--ledger", db, "--refine")
    outcome = kveil(*search, "-o", out)
    assert (outcome.code, outcome.err) == (0, "")
    (low, high) = json.loads(out.read_text())["age"]
    assert outcome.out == f"age: {low:.12g} to {high:.12g}\n"
    assert 0 <= low < 30
    assert 50 < high <= 64
    assert Ledger.open(db).spent().epsilon == 2.0
    fit = kveil("fit", table / "people.csv", "--columns", "age", "--bounds", out, "-k", 2, "--ledger", db, "-o", table / "out")
    assert fit.code == 0
    assert library.load(table / "out").parameters["bounds"] == [[low], [high]]
    again = kveil(*search, "-o", out)
    assert again.code == 2
    assert "Nothing was charged" in again.err
    assert Ledger.open(db).spent().epsilon == 3.0
    search = ("bounds", table / "people.csv", "--columns", "age", "--epsilon", 1, "--ledger", db, "--missing", "drop")
    assert json.loads(kveil(*search, "--json").out)["bounds"] == {"age": [0.0, 64.0]}


def test_a_fit_reads_categories_and_missing_cells_as_the_library_does(kveil, table):
    levels, arguments = table / "levels.json", ("-k", 2, "--bounds", table / "b.json", "--random-state", 0, "--epsilon", 2)
    (table / "b.json").write_text('{"age": [0, 120]}')
    for scaling, missing in (("bounds", "drop"), ("private", "mean")):
        with scripted(3):
            outcome = kveil(
                "fit", table / "people.csv", *arguments, "--scaling", scaling, "--missing", missing, "--categories", levels,
                "--category-weight", 0.5, "-o", table / missing,
            )  # fmt: skip
        assert (outcome.code, outcome.err) == (0, "")
        source = library.read(table / "people.csv", categories={"town": TOWNS}, category_weight=0.5, missing=missing)
        with scripted(3):
            model = PrivateKMeans(2, epsilon=2.0, bounds={"age": (0, 120)}, scaling=scaling, random_state=0).fit(source)
        release = library.load(table / missing)
        np.testing.assert_array_equal(release.centers, model.cluster_centers_)
        assert release.parameters == model.release_.parameters
        assert release.features == ("age", "town=north", "town=south")


def test_values_for_missing_cells_come_from_a_file(kveil, table):
    (table / "fill.json").write_text('{"age": 40}')
    outcome = kveil(
        "fit", table / "people.csv", "--columns", "age", "--bounds", "0,120", "-k", 1, "--missing", table / "fill.json",
        "-o", table / "out",
    )  # fmt: skip
    assert outcome.code == 0
    assert library.load(table / "out").parameters["missing"] == {"age": 40}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--missing", "mean"), "needs --scaling private"),
        (("--missing", "zero"), "missing must be"),
        (("--missing", "no.json"), "must name a file of JSON"),
        (("--categories", "no.json"), "must name a file of JSON"),
        (("--category-weight", "-1"), "--category-weight must be"),
        (("--scaling", "private", "--method", "lloyd"), "lists every charge beforehand"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_and_costs_nothing(kveil, table, arguments, why):
    db = budget(table)
    ending = ("--columns", "age", "--bounds", "0,120", "--ledger", db, "-o", table / "out")
    outcome = kveil("fit", table / "people.csv", *ending, *arguments)
    assert outcome.code == 2
    assert why in outcome.err
    assert Ledger.open(db).charges() == ()


def test_an_evaluation_reads_categories_and_missing_cells_as_the_fit_did(kveil, table):
    people, levels, out, db = table / "people.csv", ("--categories", table / "levels.json"), table / "out", budget(table, 1024.0)
    fit = ("fit", people, "-k", 2, "--bounds", "0,120", "--scaling", "bounds", "--missing", "drop", *levels, "-o", out)
    assert kveil(*fit).code == 0
    asked = ("evaluate", out, people, "--epsilon", 400, "--ledger", db)
    refused = kveil(*asked)
    assert refused.code == 2
    assert "--categories" in refused.err
    assert Ledger.open(db).spent().epsilon == 0
    assert json.loads(kveil(*asked, *levels, "--json").out)["rows"]["value"] == 2940  # complete rows, as in the fit
    assert json.loads(kveil(*asked, *levels, "--missing", "middle", "--json").out)["rows"]["value"] == 3000
