"""`kveil fit EDGES --metric graph --demand IDS`: from two files to a saved release; what is refused; what is never told."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import kveil as library
from kveil import Ledger

SIDE, N_ROWS = 12, 4391
GRAPH = ("--metric", "graph")


@pytest.fixture
def edges(tmp_path):
    """A small town: a grid of streets of length 2."""
    u = np.arange(SIDE * SIDE)
    pairs = [(a, a + 1) for a in u if a % SIDE < SIDE - 1] + [(a, a + SIDE) for a in u if a < SIDE * (SIDE - 1)]
    path = tmp_path / "streets.txt"
    path.write_text("# u v length\n" + "".join(f"{a} {b} 2\n" for a, b in pairs))
    return path


@pytest.fixture
def ids(tmp_path):
    """People at two corners; some lines are no vertex."""
    rng = np.random.default_rng(0)
    homes = np.concatenate([rng.choice([13, 14, 25], N_ROWS // 2), rng.choice([129, 130, 118], N_ROWS // 2)])
    path = tmp_path / "ids.txt"
    path.write_text("\n".join(map(str, homes)) + "\n-7\n99999\nnowhere\n\n0.5\n")
    return path


def test_two_files_become_a_release(kveil, edges, ids, tmp_path):
    done = kveil("fit", edges, *GRAPH, "--demand", ids, "-k", 2, "-o", tmp_path / "out", "--random-state", 0, "--verbose")
    assert done.code == 0, done.err
    assert "2 centres among 144 points by the method counts." in done.out
    assert "fixed without looking at the demand" in done.out
    assert "kveil plot" not in done.out  # nothing tells where these points lie
    assert str(N_ROWS) not in done.out
    release = library.load(tmp_path / "out")
    assert release.centers.dtype == np.int64
    graph = library.Graph.read(edges)
    assert graph.nearest(release.centers)[1][[13, 130]].max() <= 6
    assert release.parameters["objective"] == "k-median"
    told = kveil("guarantee", tmp_path / "out")
    assert told.code == 0
    assert "epsilon = 1" in told.out


@pytest.mark.parametrize("method", ["counts", "local-search"])
def test_json_says_what_a_script_wants(kveil, edges, ids, tmp_path, method):
    arguments = ("-k", 2, "--method", method, "--objective", "k-means", "--format", "csv", "--json")
    done = kveil("fit", edges, *GRAPH, "--demand", ids, "-o", tmp_path / "out", *arguments)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["method"] == method
    assert len(told["centers"]) == 2
    assert all(isinstance(center, int) for center in told["centers"])
    assert told["features"] is None
    assert "names" not in told
    assert told["guarantee"]["epsilon"] == 1.0
    assert (tmp_path / "out" / "centers.csv").read_text().startswith('"index"')


def test_vertices_may_have_names(kveil, tmp_path):
    (tmp_path / "roads.txt").write_text("oak elm 3\nelm ash 4\nash fir 5\n")
    (tmp_path / "ids.txt").write_text("oak\n" * 300 + "fir\n" * 300 + "moon\n")
    place = ("--demand", tmp_path / "ids.txt", "-o", tmp_path / "out")
    told = json.loads(kveil("fit", tmp_path / "roads.txt", *GRAPH, *place, "-k", 2, "--json").out)
    assert sorted(told["names"]) == ["fir", "oak"]
    assert sorted(library.load(tmp_path / "out").names) == ["fir", "oak"]
    said = kveil("fit", tmp_path / "roads.txt", *GRAPH, *place, "-k", 2, "--force").out
    assert {"oak", "fir"} <= set(said.split("\n\n")[0].split()), "the table names them"


def test_tables_bound_what_a_person_adds(kveil, edges, tmp_path):
    pd.DataFrame({"who": np.arange(600) // 3, "home": np.arange(600) % 144}).to_csv(tmp_path / "trips.csv", index=False)
    options = ("--columns", "home", "--person", "who", "--max-rows-per-person", 2, "-k", 3, "--json")
    done = kveil("fit", edges, *GRAPH, "--demand", tmp_path / "trips.csv", "-o", tmp_path / "out", *options)
    assert done.code == 0, done.err
    assert [charge["sensitivity"] for charge in json.loads(done.out)["guarantee"]["charges"]] == [2, 2]


def test_graphs_in_pieces_need_a_cap(kveil, tmp_path, ids):
    (tmp_path / "islands.txt").write_text("0 1\n2 3\n")
    place = ("--demand", ids, "-k", 2, "-o", tmp_path / "out")
    refused = kveil("fit", tmp_path / "islands.txt", *GRAPH, *place)
    assert refused.code == 2
    assert "truncate" in refused.err
    assert kveil("fit", tmp_path / "islands.txt", *GRAPH, *place, "--truncate", 5).code == 0


@pytest.fixture
def spots(tmp_path):
    """Coordinates of the town's corners, as lines `vertex x y`."""
    path = tmp_path / "corners.txt"
    path.write_text("# vertex x y\n" + "".join(f"{u} {2.0 * (u % SIDE)} {2.0 * (u // SIDE)}\n" for u in range(SIDE * SIDE)))
    return path


@pytest.fixture
def homes(tmp_path):
    """People by position, near the corners 13 and 130; some cells are no number."""
    rng = np.random.default_rng(0)
    people = np.concatenate([rng.normal((2, 2), 0.3, (1500, 2)), rng.normal((20, 20), 0.3, (1500, 2))])
    lines = [f"{x},{y}" for x, y in people] + ["nowhere,3", ",", "1e400,nan"]
    path = tmp_path / "homes.csv"
    path.write_text("east,north\n" + "\n".join(lines) + "\n")
    return path


def test_coordinates_turn_positions_into_vertices_and_centres_into_places(kveil, edges, spots, homes, tmp_path):
    place = ("--demand", homes, "-k", 2, "-o", tmp_path / "out", "--random-state", 0)
    done = kveil("fit", edges, *GRAPH, "--xy", spots, *place)
    assert done.code == 0, done.err
    assert "kveil plot" in done.out  # these centres can be drawn
    release = library.load(tmp_path / "out")
    assert sorted(release.centers.tolist()) == [13, 130]
    assert sorted(release.places.tolist()) == [[2.0, 2.0], [20.0, 20.0]]
    assert release.parameters["universe"]["coordinates"] == "plane"
    as_array = tmp_path / "corners.npy"
    np.save(as_array, [[2.0 * (u % SIDE), 2.0 * (u // SIDE)] for u in range(SIDE * SIDE)])
    assert kveil("fit", edges, *GRAPH, "--xy", as_array, *place, "--force").code == 0
    again = library.load(tmp_path / "out")
    assert again.parameters["universe"] == release.parameters["universe"], "the same coordinates, in another file"


def test_a_demand_of_vertices_has_places_too(kveil, edges, spots, ids, tmp_path):
    done = kveil("fit", edges, *GRAPH, "--xy", spots, "--demand", ids, "-k", 2, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    release = library.load(tmp_path / "out")
    np.testing.assert_array_equal(
        release.places, np.column_stack([2.0 * (release.centers % SIDE), 2.0 * (release.centers // SIDE)])
    )


def test_longitude_and_latitude_become_a_map(kveil, edges, tmp_path, ids):
    corners = tmp_path / "corners.npy"
    np.save(corners, [[10 + 0.01 * (u % SIDE), 50 + 0.01 * (u // SIDE)] for u in range(SIDE * SIDE)])
    out = tmp_path / "out"
    assert kveil("fit", edges, *GRAPH, "--xy", corners, "--degrees", "--demand", ids, "-k", 2, "-o", out).code == 0
    assert library.load(out).parameters["universe"]["coordinates"] == "degrees"
    assert kveil("plot", out, "-o", tmp_path / "stops.geojson").code == 0
    drawn = kveil("plot", out, "--graph", edges, "--xy", corners, "-o", tmp_path / "roads.geojson")
    assert drawn.code == 0, "the release knows that these are degrees"
    told = [json.loads((tmp_path / name).read_text())["features"] for name in ("stops.geojson", "roads.geojson")]
    assert told[0] == told[1]
    refused = kveil("plot", out, "--graph", edges, "-o", tmp_path / "none.svg")
    assert refused.code == 2
    assert "Name a file of them with --xy." in refused.err


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("0 1\n", (), "every line must be `vertex x y`"),
        ("0 1 2\n", (), "does not hold finite coordinates of every vertex"),
        ("999 1 2\n", (), "with a vertex of the graph"),
        ("0 nan 2\n", (), "does not hold finite coordinates"),
        ("", (), "does not hold finite coordinates"),
        (None, (), "there is no file"),
        ("whole", ("--degrees",), "--xy must be longitudes of -180 to 180"),
    ],
)
def test_coordinates_that_are_none_are_refused_before_anything_is_spent(kveil, edges, ids, tmp_path, text, options, said):
    ledger = Ledger.create(tmp_path / "budget.db", "town", 1.0, relation="add-remove")
    path = tmp_path / "xy.txt"
    if text is not None:
        path.write_text("".join(f"{u} {u} {u}\n" for u in range(SIDE * SIDE)) if text == "whole" else text)
    given = ("--demand", ids, "--xy", path, *options, "-k", 2, "-o", tmp_path / "out", "--ledger", tmp_path / "budget.db")
    done = kveil("fit", edges, *GRAPH, *given)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert ledger.spent().epsilon == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (GRAPH, "--demand FILE"),
        ((*GRAPH, "--demand", "nowhere.txt"), "there is no file nowhere.txt"),
        ((*GRAPH, "--demand", "{ids}", "--bounds", "0,1"), "its own domain"),
        ((*GRAPH, "--demand", "{ids}", "--radius", "1"), "its own domain"),
        ((*GRAPH, "--demand", "{ids}", "--scaling", "bounds"), "its own domain"),
        ((*GRAPH, "--demand", "{ids}", "--person", "who"), "no columns"),
        ((*GRAPH, "--demand", "{ids}", "--k", "145"), "the universe has 144 point(s)"),
        ((*GRAPH, "--demand", "{ids}", "--method", "tree"), "counts"),
        ((*GRAPH, "--demand", "{ids}", "--epsilon", "inf"), "say --no-privacy"),
        (("--demand", "{ids}", "--bounds", "0,1"), "belong to --metric graph"),
        (("--truncate", "4", "--bounds", "0,1"), "belong to --metric graph"),
        (("--xy", "{ids}", "--bounds", "0,1"), "belong to --metric graph"),
        (("--degrees", "--bounds", "0,1"), "belong to --metric graph"),
        (
            (*GRAPH, "--demand", "{ids}", "--degrees"),
            "no coordinates that could be longitude and latitude. Name a file of them with --xy.",
        ),
        (("--objective", "k-median", "--bounds", "0,1", "--method", "counts"), "is not for --objective k-median"),
    ],
    ids=lambda given: str(given)[:60],
)
def test_what_is_refused_spends_nothing(kveil, edges, ids, tmp_path, arguments, text):
    ledger = Ledger.create(tmp_path / "budget.db", "town", 1.0, relation="add-remove")
    given = [str(argument).format(ids=ids) for argument in arguments]
    done = kveil("fit", edges, "-o", tmp_path / "out", *given, "--ledger", tmp_path / "budget.db")
    assert done.code == 2
    assert text in done.err
    assert str(N_ROWS) not in done.err
    assert done.err.count("\n") == 1
    assert ledger.spent().epsilon == 0
    assert not (tmp_path / "out").exists()


def test_whatever_the_demand_holds_nothing_is_said_of_it(kveil, edges, tmp_path):
    (tmp_path / "odd.txt").write_bytes(b"\xff\xfe\n271828182\n\x00\n" + "é".encode() * 50)
    done = kveil("fit", edges, *GRAPH, "--demand", tmp_path / "odd.txt", "-k", 2, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert "271828182" not in done.out + done.err


def test_a_line_is_a_row_whatever_else_it_holds(kveil, edges, tmp_path):
    """Form feeds and the like end no line, so nobody is many rows; a line as long as a book is one that names no vertex."""
    from kveil.cli.universe import read_demand

    path = tmp_path / "odd.txt"
    path.write_bytes(b"\xef\xbb\xbf13\r\n" + b"\x0c".join([b"90"] * 300) + b"\n14\n" + b"9" * 10_000_000 + b"\n\n# no row\n")
    assert read_demand(library.Graph.read(edges), path, None, None, 1).tolist() == [13, 0, 14, 0]
