"""The table of what privacy costs: its words, its reference, and files that can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kveil.testing import scripted

ROOT = Path(__file__).parents[2]
CORNERS = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.9, 0.9]])


@pytest.fixture
def utility(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.utility import command, limits, reference, rivals, tables, verdict

    return SimpleNamespace(**vars(verdict), command=command, limits=limits, reference=reference, rivals=rivals, tables=tables)


def costs(mean, spread=0.01):
    return np.array([mean - spread, mean + spread])  # a standard error of `spread`


@pytest.mark.parametrize(
    ("rivals", "said"),
    [
        ({"lloyd": 1.1, "grid": 1.05}, "best"),
        ({"lloyd": 1.1, "grid": 1.02}, "tie"),  # two standard errors of a difference are 0.028
        ({"lloyd": 1.1, "grid": 0.98}, "tie"),
        ({"lloyd": 0.95, "grid": 0.9}, "behind grid"),
        ({"lloyd": 1.1, "grid": 0.96}, "behind grid"),
    ],
)
def test_a_verdict_takes_two_standard_errors(utility, rivals, said):
    assert utility.verdict(costs(1.0), {name: costs(mean) for name, mean in rivals.items()}) == said


def test_a_single_run_decides_nothing(utility):
    assert utility.verdict(np.array([1.0]), {"lloyd": costs(9.0)}) == "tie"


def test_a_rival_whose_runs_differ_widely_is_not_taken_for_the_one_that_is_ahead(utility):
    assert utility.verdict(costs(1.0), {"wide": costs(0.5, 0.4), "narrow": costs(0.9)}) == "behind narrow"


@pytest.mark.parametrize(("before", "word"), [(1.05, "better"), (1.02, "same"), (0.98, "same"), (0.95, "worse")])
def test_a_change_takes_two_standard_errors(utility, before, word):
    assert utility.change(costs(1.0), costs(before)) == word


def test_loose_bounds_have_the_middle_of_the_tight_ones(utility):
    rows = np.zeros((3, 2))
    box = utility.tables.Table(lambda: (rows, 2, {"bounds": (0, [1.0, 4.0])})).loose(10).make()
    assert box[2] == {"bounds": ([-4.5, -18.0], [5.5, 22.0])}
    assert utility.tables.Table(lambda: (rows, 2, {"radius": 0.5})).loose(100).make()[2] == {"radius": 50.0}


def test_the_reference_knows_the_planted_centres_and_is_computed_once(utility, tmp_path, monkeypatch):
    """One run from a start at random may miss a cluster; from the planted centres it may not."""
    rows = np.repeat(CORNERS, 3, axis=0) + np.tile([[-0.01, 0], [0, 0], [0.01, 0]], (4, 1))
    assert utility.reference.lowest(rows, 4, CORNERS, runs=0) == pytest.approx(8e-4)
    table, kept = utility.tables.Table(lambda: (rows, 4, {}), lambda: CORNERS), tmp_path / "new" / "kept.json"
    assert utility.reference.reference(table, rows, 4, kept) == pytest.approx(8e-4)
    monkeypatch.setattr(utility.reference, "lowest", lambda *_: 7.0)
    assert utility.reference.reference(table, rows, 4, kept) == pytest.approx(8e-4)
    assert utility.reference.reference(table, rows[1:], 4, kept) == 7.0, "other rows, another reference"


def test_every_bar_is_of_a_set_and_of_a_cell_of_the_usual_table(utility):
    usual = utility.command._asked(())
    assert set(utility.limits.LIMITS) <= set(utility.tables.SETS)
    for cells in utility.limits.LIMITS.values():
        assert all(epsilon in usual.epsilon and delta in usual.delta for epsilon, delta in cells)


@pytest.fixture
def small(utility, monkeypatch, tmp_path):
    """One made-up set, and a run of the command on it with files of its own."""
    rows = CORNERS[np.arange(400) % 4] + 0.01 * np.random.default_rng(0).standard_normal((400, 2))
    monkeypatch.setattr(
        utility.command, "SETS", {"four": utility.tables.Table(lambda: (rows, 4, {"bounds": (0, 1)}), lambda: CORNERS)}
    )
    monkeypatch.setattr(utility.command, "LIMITS", {"four": {(4.0, 0.0): 0.5}})
    monkeypatch.setattr(utility.reference, "RUNS", 1)
    files = ("--json", str(tmp_path / "now.json"), "--references", str(tmp_path / "kept.json"))

    def run(*more):
        with scripted(1):
            return list(utility.command.run("--runs", "2", "--delta", "0", *files, *more))

    return run


def test_a_part_of_the_table_is_run_written_and_compared_with_an_earlier_one(small, tmp_path, capsys):
    old = {"four, epsilon 4, delta 0": {"kveil": [99.0, 99.1]}, "other, epsilon 1, delta 0": {"kveil": [1.0, 1.0]}}
    for name in ("then.json", "now.json"):
        (tmp_path / name).write_text(json.dumps(old))
    (bar,) = small("--epsilon", "4", "--rivals", "--against", str(tmp_path / "then.json"))
    now = json.loads((tmp_path / "now.json").read_text())
    assert now.keys() == old.keys(), "cells that were not run stay in the file"
    assert bar.measured == pytest.approx(np.mean(now[bar.what]["kveil"]))
    assert (bar.limit, bar.holds) == (0.5, False)
    assert bar.note.startswith("better, was 99.05+-0.05")
    assert capsys.readouterr().out == "1 better\n"


def test_only_cells_with_a_bar_are_run_when_asked_for(small):
    assert [bar.what for bar in small("--epsilon", "0.1", "1", "--rivals", "--barred")] == ["four, epsilon 4, delta 0"]


def test_rivals_have_the_same_rows_and_a_library_that_is_absent_is_said_to_be(small, utility, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(utility.rivals, "PYTHON", tmp_path / "none")
    bar, beside = small("--epsilon", "4")
    measured = json.loads((tmp_path / "now.json").read_text())[bar.what]
    best = min((who for who in measured if who != "kveil"), key=lambda who: np.mean(measured[who]))
    assert beside.what == f"{bar.what}: cost over that of {best}"
    assert beside.measured == pytest.approx(np.mean(measured["kveil"]) / np.mean(measured[best]))
    assert beside.holds is not bar.note.startswith("behind")
    assert measured.keys() == {"kveil", "lloyd", "improved DPLloyd", "mean", "candidates", "grid"}
    assert "diffprivlib KMeans is left out, no .venv-peers" in capsys.readouterr().out


def test_a_library_is_asked_for_so_much_that_it_spends_the_epsilon_of_the_cell(utility, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(utility.rivals, "PYTHON", tmp_path)
    monkeypatch.setattr(utility.rivals, "ask", lambda cell, python: asked.append(cell) or {"centers": [CORNERS]})
    rows = np.tile(CORNERS, (1, 32))
    found = utility.rivals.peers(rows[:, :2], 4, 1.0, 2, 1e-6, epsilon=1.0, bounds=(0, 1))
    assert {cell.peer: (round(cell.epsilon, 3), cell.delta) for cell in asked} == {
        "diffprivlib KMeans": (1.105, 0.0), "Google LSH tree": (1.0, 1e-6),
    }  # fmt: skip
    assert found["diffprivlib KMeans"] == pytest.approx(0)
