"""`kveil reproduce`: plots and tables at tiny size, and what is refused before anything is computed."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest

TINY = ("--quick", "--rows", 100, "--runs", 1)


@pytest.fixture
def images(tmp_path):
    path = tmp_path / "images.npz"
    np.savez(path, x=np.random.default_rng(0).integers(0, 256, (80, 4, 4)).astype(np.uint8))
    return path


def is_one_paragraph(text):
    return text.startswith("kveil: ") and text.endswith("\n") and text.count("\n") == 1


@pytest.mark.research
def test_figures_and_tables_are_saved_and_the_report_is_printed(kveil, tmp_path):
    outcome = kveil("reproduce", "highdim-figures", *TINY, "-o", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "")
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"figure-2a.svg", "figure-small.svg", "results.csv", "results.md"}
    assert "2c, 2d and settings were skipped: they need MNIST. Pass --data FILE" in outcome.out
    report = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert report in outcome.out
    assert "none of these numbers is the paper's own" in report
    assert all(b"</svg>" in path.read_bytes() for path in (tmp_path / "out").glob("*.svg"))


@pytest.mark.research
def test_with_images_their_figures_join_in_and_json_matches_the_table(kveil, tmp_path, images):
    size = (*TINY, "--data", images, "--sulq-steps", 3)
    outcome = kveil("reproduce", "highdim-figures", *size, "-o", tmp_path / "out", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    assert told["skipped"] == []
    assert "figure-2c.svg" in told["files"]
    with open(tmp_path / "out" / "results.csv", newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    assert [(line["figure"], line["method"], float(line["mean_cost"])) for line in saved] == [
        (line["figure"], line["method"], line["mean_cost"]) for line in told["results"]
    ]
    assert {line["figure"] for line in saved} == {"2a", "2c", "2d", "settings", "small"} == set(told["left_out"])
    assert {line["columns"] for line in saved if line["figure"] in ("2c", "2d", "settings")} == {"16"}
    assert {line["k"] for line in saved if line["figure"] == "2d"} == {"10"}
    assert any(line["method"] == "the paper's method and 3 SuLQ steps" for line in saved)
    assert ("SuLQ, 20 steps", "2d") in {(verdict["second"], verdict["figure"]) for verdict in told["verdicts"]}
    assert "uniform grid" in told["left_out"]["2a"]
    assert "uniform grid" not in told["left_out"]["small"]


@pytest.mark.parametrize("content", [None, b"not a zip", b"PK\x03\x04 nor this"])
def test_a_file_that_holds_no_images_is_refused(refused, tmp_path, content):
    path = tmp_path / "images.npz"
    if content is not None:
        path.write_bytes(content)
    said = refused(2, "reproduce", "highdim-figures", *TINY, "--data", path, "-o", tmp_path / "out")
    assert is_one_paragraph(said)
    assert "cannot be used as images" in said


def test_a_file_without_x_is_refused(refused, tmp_path):
    np.savez(tmp_path / "images.npz", pixels=np.zeros((80, 4)))
    said = refused(2, "reproduce", "highdim-figures", "--data", tmp_path / "images.npz", "-o", tmp_path / "out")
    assert "an array x" in said


@pytest.mark.research
def test_single_figures_can_be_asked_for(kveil, tmp_path, images):
    asked = ("--only", "small", "--only", "settings", "--sulq-steps", 0)
    outcome = kveil("reproduce", "highdim-figures", *TINY, "--data", images, *asked, "-o", tmp_path / "out")
    assert outcome.code == 0
    made = {path.name for path in (tmp_path / "out").glob("*.svg")}
    assert made == {"figure-settings.svg", "figure-small.svg"}
    assert "SuLQ steps" not in outcome.out


def test_a_figure_that_there_is_not_is_refused(refused, tmp_path):
    said = refused(2, "reproduce", "highdim-figures", "--only", "2b", "-o", tmp_path / "out")
    assert is_one_paragraph(said)
    assert "--only must be '2a', '2c', '2d', 'settings' or 'small', got '2b'" in said


@pytest.mark.parametrize("kind", ["file", "folder", "link to nowhere"])
def test_what_is_at_the_place_already_stays(refused, tmp_path, kind):
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    elif kind == "folder":
        out.mkdir()
    else:
        out.symlink_to(tmp_path / "nowhere")
    said = refused(2, "reproduce", "highdim-figures", *TINY, "-o", out)
    assert is_one_paragraph(said)
    assert "Choose another place with -o" in said


@pytest.mark.parametrize("place", ["no/such/folder", "file/out"])
def test_a_place_where_nothing_can_be_saved_is_refused(refused, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    said = refused(2, "reproduce", "highdim-figures", *TINY, "-o", tmp_path / place)
    assert "the figures cannot be saved" in said


def test_without_matplotlib_it_says_what_to_install_before_it_computes(refused, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib" or name == "kveil.research.figure"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refused(2, "reproduce", "highdim-figures", *TINY, "-o", tmp_path / "out")
    assert 'pip install "kveil[report]"' in said


@pytest.mark.parametrize("arguments", [("--rows", 20), ("--runs", 0), ("--delta", 1), ("--sulq-steps", -1)])
def test_sizes_that_make_no_figure_are_bad_usage(kveil, tmp_path, arguments):
    outcome = kveil("reproduce", "highdim-figures", *arguments, "-o", tmp_path / "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert not (tmp_path / "out").exists()


class TestKvariates:
    @pytest.fixture
    def places(self, tmp_path):
        path = tmp_path / "geo_uk_places.npz"
        np.savez(path, x=np.random.default_rng(0).uniform([-6, 50], [1, 58], (150, 2)))
        return path

    @pytest.mark.research
    def test_figures_and_tables_are_saved_and_json_matches_them(self, kveil, tmp_path, places):
        told = kveil("reproduce", "kvariates-figures", *TINY, "--data", places, "-o", tmp_path / "out", "--json")
        assert (told.code, told.err) == (0, "")
        told = json.loads(told.out)
        files = {path.name for path in (tmp_path / "out").iterdir()}
        tables = {"figure-3.csv", "table-2.csv", "theorems.csv"}
        assert files == set(told["files"]) == {"figure-3a.svg", "figure-3b.svg", "results.md", *tables}
        with open(tmp_path / "out" / "table-2.csv", newline="", encoding="utf-8") as file:
            saved = [(line["case"], line["method"], float(line["ratio"])) for line in csv.DictReader(file)]
        assert saved == [(line["case"], line["method"], line["ratio"]) for line in told["table_2"]]
        assert "geo_uk_places, k = 5" in {case for case, _, _ in saved}
        assert told["skipped"] == []
        assert {line["k"] for line in told["figure_3"]} == {5, 20}
        assert {line["domain"] for line in told["table_2"]} > {"in the unit L2 ball", "in the unit L1 ball, as in Theorem 12"}
        assert {line["sets"] for line in told["theorems"]} == {10}

    def test_a_file_without_places_is_refused_before_anything_is_computed(self, refused, tmp_path, images):
        said = refused(2, "reproduce", "kvariates-figures", *TINY, "--data", images, "-o", tmp_path / "out")
        assert is_one_paragraph(said)
        assert "cannot be used as places" in said

    def test_what_is_at_the_place_already_stays(self, refused, tmp_path):
        (tmp_path / "out").write_text("mine")
        assert "Choose another place with -o" in refused(2, "reproduce", "kvariates-figures", *TINY, "-o", tmp_path / "out")


@pytest.mark.research
def test_the_local_table_is_saved_and_json_matches_it(kveil, tmp_path):
    outcome = kveil("reproduce", "local-table", "--quick", "--people", 800, "--runs", 1, "-o", tmp_path / "out", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    assert told["files"] == ["local-800.svg", "results.csv", "results.md"]
    with open(tmp_path / "out" / "results.csv", newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    assert [float(line["median_ratio"]) for line in saved] == [line["median_ratio"] for line in told["results"]]
    assert {line["protocol"] for line in saved} == {"refine", "grid", "lae", "lma", "centres that saw no data"}
    assert "local-800.svg" in {path.name for path in (tmp_path / "out").iterdir()}


def test_a_local_table_never_overwrites(refused, tmp_path):
    (tmp_path / "out").mkdir()
    assert is_one_paragraph(refused(2, "reproduce", "local-table", "--quick", "-o", tmp_path / "out"))


@pytest.mark.research
def test_the_slopes_of_local_protocols_are_saved_and_json_matches_them(kveil, tmp_path, monkeypatch):
    import kveil.research.local_slopes as measured

    monkeypatch.setattr(measured, "QUICK", measured.Size(people=(600, 1200), clusters=(4, 2), factors=(0.0, 4.0), runs=2))
    outcome = kveil("reproduce", "local-slopes", "--quick", "-o", tmp_path / "out", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    assert told["files"] == ["results.csv", "results.md", "slopes.csv", "slopes.svg"]
    with open(tmp_path / "out" / "slopes.csv", newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    assert [float(line["exponent"]) for line in saved] == [line["exponent"] for line in told["slopes"]]
