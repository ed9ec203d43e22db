"""`kveil inspect`, `predict` and `stream`, and the kinds of files that all commands take."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kveil as library

ARGUMENTS = ("--k", 3, "--bounds", "0,10", "--random-state", 1)


@pytest.fixture
def release(kveil, csv, tmp_path):
    assert kveil("fit", csv, "-o", tmp_path / "out", *ARGUMENTS).code == 0
    return tmp_path / "out"


class TestInspect:
    def test_it_says_that_it_is_not_private(self, kveil, csv, rows):
        outcome = kveil("inspect", csv)
        assert outcome.out.startswith(f"NOT PRIVATE. {len(rows)} rows.")
        told = json.loads(kveil("inspect", csv, "--json", "--columns", "height").out)
        column = {"column": "height", "least": rows[:, 1].min(), "greatest": rows[:, 1].max(), "broken": 0}
        assert told == {"private": False, "rows": len(rows), "columns": [column]}


class TestPredict:
    def test_labels_are_those_of_the_release_and_the_file_is_the_owners(self, kveil, csv, rows, release, tmp_path):
        outcome = kveil("predict", release, csv, "-o", tmp_path / "labels.csv", "--distances")
        assert outcome.code == 0, outcome
        assert "not private" in outcome.out
        found = pd.read_csv(tmp_path / "labels.csv")
        np.testing.assert_array_equal(found["cluster"], library.load(release).predict(rows))
        np.testing.assert_allclose(found["distance"], library.load(release).transform(rows).min(axis=1))
        assert stat.S_IMODE((tmp_path / "labels.csv").stat().st_mode) == 0o600

    def test_nothing_is_overwritten_or_left_half(self, refused, csv, release, tmp_path, monkeypatch):
        (tmp_path / "there.csv").write_text("mine")
        assert "exists already" in refused(2, "predict", release, csv, "-o", tmp_path / "there.csv")
        assert "every row gets a label" in refused(2, "predict", release, csv, "-o", tmp_path / "x.csv", "--missing", "drop")
        monkeypatch.setattr("kveil.release.release.Release.predict", lambda *_: 1 // 0)
        refused(1, "predict", release, csv, "-o", tmp_path / "x.csv")


def _mode_of_folder(file):
    return stat.S_IMODE(Path(file.name).parent.stat().st_mode)


class TestStream:
    BEGIN = ("--epsilon", 1, "--bounds", "0,10", "-k", 3)

    def test_batches_are_added_and_released_once(self, kveil, csv, budget, tmp_path):
        ledger = ("--ledger", tmp_path / "budget.db")
        state, out = tmp_path / "s.state", tmp_path / "out"
        assert kveil("stream", "add", state, csv, *self.BEGIN, *ledger, "--source", "a", "--seq", 0).code == 0
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        again = kveil("stream", "add", state, csv, *ledger, "--source", "a", "--seq", 0, "--json")
        assert json.loads(again.out)["batches"] == {"a": [[0, 0]]}, "a batch that came already is skipped"
        assert budget.charges() == ()
        outcome = kveil("stream", "finish", state, "-o", out, *ledger)
        assert outcome.code == 0, outcome
        assert "Promise: epsilon = 1" in outcome.out
        assert (len(budget.charges()), state.exists()) == (1, False)
        assert library.load(out).guarantee.trust == "stream"

    def test_standard_input_is_a_batch(self, kveil, csv, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(csv.read_bytes())))
        copied, modes = shutil.copyfileobj, []
        monkeypatch.setattr(shutil, "copyfileobj", lambda *files: modes.append(_mode_of_folder(files[1])) or copied(*files))
        assert kveil("stream", "add", tmp_path / "s.state", "-", *self.BEGIN).code == 0
        assert modes == [0o700], "others cannot come near the copy"
        assert {path.name for path in tmp_path.iterdir()} == {"in", "s.state"}, "no copy stays"

    def test_what_is_wrong_leaves_everything_as_it_was(self, kveil, refused, csv, tmp_path):
        state = tmp_path / "s.state"
        assert "--epsilon is missing" in refused(2, "stream", "add", state, csv, "--bounds", "0,10")
        assert "--bounds" in refused(2, "stream", "add", state, csv, "--epsilon", 1)
        assert "there is no stream" in refused(2, "stream", "finish", state, "-o", tmp_path / "out")
        assert kveil("stream", "add", state, csv, *self.BEGIN).code == 0
        assert "count twice" in refused(2, "stream", "add", state, csv, csv.parent / "*.csv", "--source", "a", "--seq", 0)
        assert "Leave out --k, --epsilon" in refused(2, "stream", "add", state, csv, "-k", 3, "--epsilon", 2)
        ledger = ("--ledger", tmp_path / "budget.db")
        assert "begun without a ledger" in refused(2, "stream", "finish", state, "-o", tmp_path / "out", *ledger)

    def test_a_warning_is_a_note_without_a_line_of_source(self, kveil, csv, tmp_path):
        (tmp_path / "b.json").write_text('{"age": [0, 10], "height": [0, 10000]}')
        said = [kveil("stream", "add", tmp_path / f"{n}.state", csv, "--epsilon", 1, "--bounds", tmp_path / "b.json", *more).err
                for n, more in enumerate([(), ("--quiet",)])]  # fmt: skip
        assert said[0].startswith('kveil: note: "height" is 1,000 times as wide as "age"')
        assert ".py" not in said[0]
        assert said[1] == ""

    def test_a_stream_may_go_on(self, kveil, csv, tmp_path):
        state = tmp_path / "s.state"
        kveil("stream", "add", state, csv, *self.BEGIN)
        assert kveil("stream", "finish", state, "-o", tmp_path / "one", "--go-on", "--quiet").out == f"{tmp_path / 'one'}\n"
        assert kveil("stream", "add", state, csv).code == 0
        told = json.loads(kveil("stream", "finish", state, "-o", tmp_path / "two", "--json").out)
        assert told["guarantee"]["epsilon"] == 1.0

    def test_a_release_that_could_not_be_saved_counts(self, kveil, refused, csv, tmp_path, monkeypatch):
        state = tmp_path / "s.state"
        kveil("stream", "add", state, csv, *self.BEGIN)
        with monkeypatch.context() as patch:
            patch.setattr("kveil.release.release.Release.save", lambda *_, **__: 1 // 0)
            assert kveil("stream", "finish", state, "-o", tmp_path / "one", "--go-on").code == 1
        told = json.loads(kveil("stream", "finish", state, "-o", tmp_path / "two", "--json").out)
        assert "up to 1 earlier release" in str(told)


@pytest.mark.parametrize("kind", ["csv.gz", "tsv", "feather", "semicolons", "two", "pattern"])
def test_a_fit_takes_the_files_people_have(kind, kveil, rows, tmp_path):
    frame, place, more = pd.DataFrame(rows, columns=["age", "height"]), tmp_path / "in", ()
    place.mkdir()
    if kind == "csv.gz":
        (place / "t.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif kind == "tsv":
        frame.to_csv(place / "t.tsv", index=False, sep="\t")
    elif kind == "feather":
        frame.to_feather(place / "t.feather")
    elif kind == "semicolons":
        frame.to_csv(place / "t.csv", index=False, sep=";")
        more = ("--delimiter", ";")
    else:
        for number, part in enumerate(np.array_split(rows, 2)):
            pd.DataFrame(part, columns=["age", "height"]).to_csv(place / f"{number}.csv", index=False)
    data = [place / "*.csv"] if kind == "pattern" else sorted(place.iterdir())
    outcome = kveil("fit", *data, "-o", tmp_path / "out", *ARGUMENTS, *more, "--epsilon", "inf", "--no-privacy")
    assert outcome.code == 0, outcome
    expected = library.PrivateKMeans(3, epsilon=float("inf"), bounds=(0, 10), random_state=1).fit(rows).cluster_centers_
    np.testing.assert_array_equal(library.load(tmp_path / "out").centers, expected)


def test_a_hint_about_delimiters_names_the_option(refused, tmp_path):
    (tmp_path / "t.csv").write_text("age;height\n1;2\n")
    arguments = ("-o", tmp_path / "out", *ARGUMENTS, "--ledger", tmp_path / "budget.db")
    assert "pass --delimiter ';'." in refused(2, "fit", tmp_path / "t.csv", *arguments)
    (tmp_path / "t.csv").write_text("age\theight\n1\t2\n")
    assert r"pass --delimiter '\t'." in refused(2, "fit", tmp_path / "t.csv", *arguments)
    assert "named twice" in refused(2, "fit", tmp_path / "t.csv", tmp_path / "t.csv", *arguments)
