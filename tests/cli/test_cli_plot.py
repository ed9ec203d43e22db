"""`kveil plot` and `kveil report`: files that are made once, say where they are, and are refused in words."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kveil as library

pytest.importorskip("matplotlib")


@pytest.fixture
def out(tmp_path, budget):
    rows = np.random.default_rng(0).normal((1.0, 50.0), 0.2, (4000, 2))
    model = library.PrivateKMeans(2, epsilon=1.0, bounds=[(-5, 5), (45, 55)], ledger=budget, random_state=0).fit(rows)
    return model.release_.save(tmp_path / "out")


def test_pictures_maps_and_reports_are_written_beside_the_release_or_where_asked(kveil, out, tmp_path):
    for command, suffix, start in (("plot", ".svg", b"<?xml"), ("report", ".html", b"<!doctype html>")):
        outcome = kveil(command, out)
        assert (outcome.code, outcome.err) == (0, "")
        assert f"{out}{suffix}" in outcome.out
        assert (tmp_path / f"out{suffix}").read_bytes().startswith(start)
    assert kveil("plot", out, "-o", tmp_path / "dark.png", "--theme", "dark", "--level", 0.5).code == 0
    assert (tmp_path / "dark.png").read_bytes().startswith(b"\x89PNG")
    assert kveil("plot", out, "-o", tmp_path / "a.geojson").code == 0
    told = json.loads((tmp_path / "a.geojson").read_text(encoding="utf-8"))
    assert np.allclose([point["geometry"]["coordinates"] for point in told["features"]], library.load(out).centers)
    assert kveil("plot", out, "-o", tmp_path / "one.svg", "--columns", "1").code == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(library.release.folder.files_of(out)), "nothing beside its files"


def test_a_report_shows_a_ledger_and_opens_where_asked(kveil, out, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    outcome = kveil("report", out, "--ledger", tmp_path / "budget.db", "--open", "-o", tmp_path / "r.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert "The budget: clinic" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert opened == [(tmp_path / "r.html").as_uri()]


def test_where_there_is_no_browser_a_note_says_so(kveil, out, tmp_path, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    page = tmp_path / "r.html"
    assert kveil("report", out, "--open", "-o", page).err == f"kveil: note: no browser could be opened. Open {page} yourself.\n"


def test_a_ledger_is_drawn_as_what_it_has_spent(kveil, out, refused, tmp_path):
    ledger = tmp_path / "budget.db"
    assert kveil("plot", ledger).code == 0
    assert "clinic: " in (tmp_path / "budget.db.svg").read_text(encoding="utf-8")
    assert "exists already" in refused(2, "plot", ledger)
    assert "as SVG" in refused(2, "plot", ledger, "-o", tmp_path / "b.png")
    assert "Leave them out" in refused(2, "plot", ledger, "--columns", "1", "-o", tmp_path / "b.svg")
    library.Ledger.create(tmp_path / "new.db", "new", 1.0, relation="add-remove")
    assert "nothing was spent" in refused(2, "plot", tmp_path / "new.db")
    assert kveil("plot", ledger, "--theme", "auto", "-o", tmp_path / "b.svg").code == 0
    assert "prefers-color-scheme:dark" in (tmp_path / "b.svg").read_text(encoding="utf-8")


def test_what_cannot_be_written_is_refused(kveil, out, refused, tmp_path):
    (tmp_path / "mine.svg").write_text("mine")
    assert "exists already" in refused(2, "plot", out, "-o", tmp_path / "mine.svg")
    assert kveil("plot", out, "-o", tmp_path / "mine.svg", "--force").code == 0
    assert ".svg or .png" in refused(2, "plot", out, "-o", tmp_path / "a.pdf")
    assert "cannot be written" in refused(2, "report", out, "-o", tmp_path / "nowhere" / "a.html")
    assert "no release" in refused(2, "report", tmp_path / "nobody")
    assert "suffix .html" in refused(2, "report", out, "-o", tmp_path / "r.pdf")
    assert "theme" in refused(2, "plot", out, "--theme", "blue")
    assert "Name the edge list, too" in refused(2, "plot", out, "--xy", tmp_path / "xy.txt", "-o", tmp_path / "b.svg")
    assert "Name the edge list, too" in refused(2, "plot", out, "--degrees", "-o", tmp_path / "b.svg")


def test_roads_with_places_are_fitted_and_drawn_from_the_shell(kveil, tmp_path):
    xy = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    edges = [[i, j] for i in range(36) for j in (i + 1, i + 6) if j < 36 and (j % 6 or j == i + 6)]
    np.savez(tmp_path / "roads.npz", edges=edges, xy=xy)
    people = np.random.default_rng(1).normal((1.0, 4.0), 0.3, (3000, 2))
    np.savetxt(tmp_path / "people.csv", people, header="east,north", delimiter=",", comments="")
    out = tmp_path / "stops"
    assert (
        kveil("fit", tmp_path / "roads.npz", "--metric", "graph", "--demand", tmp_path / "people.csv", "-k", 1, "-o", out).code
        == 0
    )
    assert library.load(out).places.tolist() == [[1.0, 4.0]]
    assert kveil("plot", out, "--graph", tmp_path / "roads.npz").code == 0
    assert (tmp_path / "stops.svg").exists()
    assert kveil("report", out, "--graph", tmp_path / "roads.npz").code == 0
    assert "Lines: the public graph." in (tmp_path / "stops.html").read_text(encoding="utf-8")
