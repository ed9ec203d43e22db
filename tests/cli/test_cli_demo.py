"""`kveil demo`: the first thing a newcomer runs. It never overwrites, and the command it suggests works."""

from __future__ import annotations

import json
import shlex
import sys

import numpy as np
import pytest

import kveil as library
from kveil import Ledger
from kveil.cli.city import BOUNDS, QUARTERS, RIVER_HALF, riders, river
from kveil.testing import scripted


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suggestion(printed):
    """The command that the demo prints, as a shell would split it."""
    (line,) = [line for line in printed.splitlines() if line.startswith("  ") and " fit " in line]
    program, *arguments = shlex.split(line)
    assert program.endswith("kveil") or "pytest" in program  # the name on the path, or what was typed
    return arguments


def with_out(arguments, out):
    return [*arguments[: arguments.index("-o")], "-o", out]


def test_the_demo_tells_the_whole_story_and_where_everything_is(kveil, here, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    outcome = kveil("demo", "--open")
    assert opened == [(here / "kveil-demo" / "report.html").as_uri()]
    assert (outcome.code, outcome.err) == (0, "")
    release = library.load(here / "kveil-demo" / "release")
    assert release.guarantee.valid
    assert release.centers.shape == (8, 2)
    for number, words in enumerate(("made-up city", "Before a row is read", "The fit", "What privacy cost", "promised"), 1):
        assert f"\n{number}. " in f"\n{outcome.out}"
        assert words in outcome.out
    assert str(release.guarantee) in outcome.out
    assert str(release.verdict()) in outcome.out
    assert " Saved: kveil-demo/release (" in outcome.out
    assert "\nLeft on the ledger: epsilon 1, delta 0.\n" in outcome.out
    assert "north_km (up)\n" in outcome.out
    assert ". o O @ by weight" in outcome.out
    assert "A picture: kveil-demo/centers.svg." in outcome.out
    made = {path.name for path in (here / "kveil-demo").iterdir()}
    assert {"riders.csv", "bounds.json", "ledger.db", "release", "centers.svg", "report.html"} <= made
    page = (here / "kveil-demo" / "report.html").read_text(encoding="utf-8")
    assert "73.2 %" in page
    assert "8 centres of riders of a made-up city" in page
    assert "where to place bus stops" in page
    assert "not signed" in page
    assert ": the same release. It protects one record" in page
    cost = outcome.out.partition("What privacy cost")[2].partition("5. ")[0]
    assert 0.99 < float(cost.partition("nearest centre is ")[2].partition(" times")[0]) < 1.1
    assert "not private" in cost


def test_a_quiet_demo_prints_where_the_release_is(kveil, here):
    outcome = kveil("demo", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "kveil-demo/release\n", "")


def test_nobody_is_in_the_river_of_the_city_and_everybody_within_its_bounds():
    rows = riders()
    assert rows.shape == (30_000, 2)
    assert (np.abs(rows[:, 1] - river(rows[:, 0])) > RIVER_HALF - 2e-3).all()  # metres are rounded
    assert ((rows >= np.array(BOUNDS)[:, 0]) & (rows <= np.array(BOUNDS)[:, 1])).all()
    assert np.array_equal(rows, riders())


def test_the_demo_finds_the_crowds_of_its_made_up_city(kveil, here):
    """Noise moves a centre by about 0.01 km; the narrow crowds are found to within the people around them."""
    with scripted(1):
        assert kveil("demo").code == 0
    centers = library.load(here / "kveil-demo" / "release").centers
    narrow = np.array([quarter[1:3] for quarter in QUARTERS if quarter.name in ("stadium", "station", "university", "old town")])
    assert np.linalg.norm(centers[:, None] - narrow, axis=2).min(axis=0).max() < 0.5


def test_the_demo_never_overwrites(kveil, here):
    assert kveil("demo").code == 0
    before = {path: path.read_bytes() for path in (here / "kveil-demo").rglob("*") if path.is_file()}
    again = kveil("demo")
    assert again.code == 0
    assert "Saved: kveil-demo-2/release (" in again.out
    assert {path: path.read_bytes() for path in before} == before
    assert library.load(here / "kveil-demo-2" / "release").guarantee.valid
    assert sorted(path.name for path in here.iterdir()) == ["kveil-demo", "kveil-demo-2"]


def test_the_demo_goes_round_whatever_is_in_its_way(kveil, here):
    (here / "mine").write_text("a file")
    (here / "mine-2").symlink_to(here / "nowhere")
    outcome = kveil("demo", "-o", "mine")
    assert outcome.code == 0
    assert "Saved: mine-3/release (" in outcome.out
    assert (here / "mine").read_text() == "a file"
    assert not (here / "nowhere").exists()


def test_the_demo_makes_its_own_folder_in_the_one_it_is_given_a_dot_for(kveil, here):
    outcome = kveil("demo", "-o", ".")
    assert outcome.code == 0
    assert "Saved: kveil-demo/release (" in outcome.out


def test_a_place_where_no_folder_can_be_made_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "Choose another place with -o" in refused(2, "demo", "-o", tmp_path / "file" / "demo")


def test_the_demo_in_json_is_one_object_that_matches_the_saved_release(kveil, here):
    outcome = kveil("demo", "--json", "-o", "somewhere/else")
    assert (outcome.code, outcome.err) == (0, "")
    told, release = json.loads(outcome.out), library.load(here / "somewhere" / "else" / "release")
    assert told["release"] == "somewhere/else/release"
    assert told["centers"] == release.centers.tolist()
    assert told["guarantee"] == json.loads(release.guarantee.to_json())
    assert told["features"] == ["east_km", "north_km"]


def test_the_demo_works_without_matplotlib(kveil, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = kveil("demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert ". o O @ by weight" in outcome.out
    assert not (here / "kveil-demo" / "centers.svg").exists()
    assert "The picture is left out, here and in the report: matplotlib is missing" in outcome.out
    assert "The picture is left out: matplotlib is not installed" in (here / "kveil-demo" / "report.html").read_text("utf-8")
    assert library.load(here / "kveil-demo" / "release").guarantee.valid


def test_the_suggested_command_works_once_and_then_the_budget_is_spent(kveil, here):
    out = "my demo's folder"
    command = suggestion(kveil("demo", "-o", out).out)
    assert kveil(*command).code == 0
    assert library.load(here / out / "three").centers.shape == (3, 2)
    ledger = Ledger.open(here / out / "ledger.db")
    assert ledger.remaining().epsilon == 0
    third = kveil(*with_out(command, here / "third"))
    assert (third.code, third.out) == (3, "")
    assert 'epsilon 0, delta 0 is left on ledger "city"' in third.err
    assert not (here / "third").exists()
    assert len(ledger.charges()) == 2


@pytest.mark.journey
def test_the_demo_and_its_suggestion_work_in_processes_of_their_own(shell, here):
    outcome = shell("demo", cwd=here)
    assert (outcome.code, outcome.err) == (0, "")
    assert shell(*suggestion(outcome.out), cwd=here).code == 0
    assert library.load(here / "kveil-demo" / "three").guarantee.valid
