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
    done = kveil("fit", edges, *GRAPH, "--demand", ids, "-k", 2, "-o", tmp_path / "out", "--random-state", 0)
    assert done.code == 0, done.err
    assert "2 centres among 144 points by counts saved at" in done.out
    assert "fixed without looking at the demand" in done.out
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
    assert "Vertices: " in said


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
