"""`kveil reproduce hst-figures`: plots and tables at tiny size, and what is refused before anything is computed."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest

TINY = ("--quick", "--points", 200, "--rows", 40, "--runs", 1)


@pytest.fixture
def images(tmp_path):
    path = tmp_path / "images.npz"
    rng = np.random.default_rng(0)
    np.savez(path, x=rng.integers(0, 256, (120, 4, 4)).astype(np.uint8), y=np.arange(120) % 10)
    return path


@pytest.mark.research
def test_figures_and_tables_are_saved_and_json_matches_them(kveil, tmp_path, images):
    outcome = kveil(
        "reproduce", "hst-figures", *TINY, "--data", images, "--epsilon", 2, "--steps", 6, "-o", tmp_path / "out", "--json"
    )
    assert (outcome.code, outcome.err) == (0, "")
    told = json.loads(outcome.out)
    universes = ("mnist-l1", "mnist-l2", "graph-r1", "graph-r100")
    drawn = {f"figure-{name}-{kind}.svg" for name in universes for kind in ("balanced", "imbalanced")}
    drawn |= {"running-time-graph-r1.svg", "running-time-mnist-l2.svg", "figure-3.svg", "figure-5.svg", "figure-6.svg"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(told["files"])
    assert set(told["files"]) == drawn | {"results.csv", "results.md", "running-time.csv"}
    with open(tmp_path / "out" / "results.csv", newline="", encoding="utf-8") as file:
        saved = [(line["universe"], line["method"], float(line["mean_final"])) for line in csv.DictReader(file)]
    assert saved == [(line["universe"], line["method"], line["mean_final"]) for line in told["results"]]
    assert {line["epsilon_claimed"] for line in told["results"]} == {None, 2.0}
    assert {line["steps"] for line in told["results"]} == {6}
    assert {line["universe"] for line in told["running_time"]} == {"graph-r1", "mnist-l2"}
    assert {line["case"] for line in told["verdicts"]} == set(universes)
    assert told["skipped"] == []


@pytest.mark.research
def test_without_images_the_graphs_are_drawn_and_the_report_is_printed(kveil, tmp_path):
    outcome = kveil("reproduce", "hst-figures", *TINY, "-o", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "")
    report = (tmp_path / "out" / "results.md").read_text(encoding="utf-8")
    assert report in outcome.out
    assert "The images were skipped: they need MNIST. Pass --data FILE" in report
    assert len(list((tmp_path / "out").glob("figure-*.svg"))) == 4 + 3
    assert all(b"</svg>" in path.read_bytes() for path in (tmp_path / "out").glob("*.svg"))


def test_images_without_digits_are_refused_before_anything_is_computed(refused, tmp_path):
    np.savez(tmp_path / "images.npz", x=np.zeros((80, 4)))
    said = refused(2, "reproduce", "hst-figures", *TINY, "--data", tmp_path / "images.npz", "-o", tmp_path / "out")
    assert "an array y with the digit of each" in said
    assert not (tmp_path / "out").exists()


def test_what_is_at_the_place_already_stays(refused, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "Choose another place with -o" in refused(2, "reproduce", "hst-figures", *TINY, "-o", tmp_path / "out")


def test_without_matplotlib_it_says_what_to_install_before_it_computes(refused, tmp_path, monkeypatch):
    ours = ("kveil.research.figure", "kveil.research.hst_figure")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib" or name in ours]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refused(2, "reproduce", "hst-figures", *TINY, "-o", tmp_path / "out")
    assert 'pip install "kveil[report]"' in said


@pytest.mark.parametrize(
    "arguments", [("--points", 100), ("--rows", 10), ("--runs", 0), ("--epsilon", 0), ("--steps", 4), ("--steps", 201)]
)
def test_sizes_that_make_no_figure_are_bad_usage(kveil, tmp_path, arguments):
    outcome = kveil("reproduce", "hst-figures", *arguments, "-o", tmp_path / "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert not (tmp_path / "out").exists()
