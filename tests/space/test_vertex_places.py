"""Coordinates of vertices: where they come from, and that positions become vertices one by one, whatever they hold."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from kveil import Graph, KMedian, Ledger, PrivateKMedian
from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.space.places import Places

EDGES = [[0, 1], [1, 2], [2, 3], [3, 0]]
CORNERS = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
SQUARE = Graph.from_edges(EDGES, xy=CORNERS)
WILD = np.array([[np.nan, 0.0], [np.inf, 1.0], [0.0, -np.inf], [1e308, -1e308], [-1e308, 1e308], [0.4, 0.9]])


def brute(xy, rows):
    return np.array([((xy - row) ** 2).sum(axis=1).argmin() for row in rows])


def test_a_position_is_its_nearest_vertex():
    rng = np.random.default_rng(0)
    xy, rows = rng.uniform(0, 1, (400, 2)), rng.uniform(0, 1, (3000, 2))
    graph = Graph.from_edges([[i, i + 1] for i in range(399)], xy=xy)
    found = graph.snap(rows)
    assert (found == brute(xy, rows)).mean() > 0.999, "but for ties within the grid"
    assert found.tolist() == [int(graph.snap(row[None])[0]) for row in rows], "a row by itself"
    assert graph.snap(xy).tolist() == list(range(400))


def test_what_is_no_position_is_one_fixed_vertex_and_nothing_raises_or_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SQUARE.snap(WILD).tolist() == [0, 0, 0, 3, 1, 1]
        assert SQUARE.snap([[None, 1.0], ["a", 2], [0.1, 0.9], [True, 10**400], [1.0]]).tolist() == [0, 0, 1, 0, 0]
        assert Places(SQUARE, 2).encode(WILD).tolist() == [0, 0, 0, 3, 1, 1]
        assert SQUARE.snap(np.empty((0, 2))).tolist() == []
    with np.errstate(all="raise"):  # a process may ask for that; a longitude of next to nothing is made shorter still
        assert Graph.from_edges(EDGES, xy=CORNERS, degrees=True).snap(np.array([[3e-308, 0.9]])).tolist() == [1]


def test_a_frame_and_whole_numbers_are_positions_too():
    assert SQUARE.snap(pd.DataFrame({"x": [0.1, 2.0], "y": [0.9, 2.0]})).tolist() == [1, 2]
    assert SQUARE.snap(np.array([[0, 1], [1, 0]])).tolist() == [1, 3]


def test_a_degree_of_longitude_is_as_long_as_it_is_there():
    """At 60 degrees north it is half as long as one of latitude: 1.5 of them are nearer than 1 degree north."""
    xy = [[0.0, 60.0], [1.5, 60.0], [0.0, 59.0], [0.0, 61.0]]
    places = [Graph.from_edges([[0, 1], [0, 2], [0, 3]], xy=xy, degrees=flag).snap([[0.7, 60.4]])[0] for flag in (False, True)]
    assert places == [0, 0]
    flat, round_ = (Graph.from_edges([[0, 1]], xy=[[0.0, 60.0], [1.0, 60.7]], degrees=flag) for flag in (False, True))
    assert (flat.snap([[0.55, 60.3]])[0], round_.snap([[0.55, 60.3]])[0]) == (1, 0)


def test_numbers_and_names_of_vertices_still_are_what_they_were():
    assert SQUARE.locate(np.array([3, 1, 9])).tolist() == [3, 1, 0]
    assert SQUARE.locate(np.array([[3.0], [1.0]])).tolist() == [3, 1]
    assert SQUARE.locate(["2", "0"]).tolist() == [2, 0]


def test_distances_and_their_digest_do_not_depend_on_coordinates():
    plain = Graph.from_edges(EDGES)
    assert plain.identity()["sha256"] == SQUARE.identity()["sha256"]
    assert set(SQUARE.identity()) - set(plain.identity()) == {"coordinates", "xy_sha256"}
    moved = Graph.from_edges(EDGES, xy=np.array(CORNERS) + 1)
    assert moved.identity()["xy_sha256"] != SQUARE.identity()["xy_sha256"], "rows given as positions are counted by them"


@pytest.mark.parametrize(
    ("xy", "degrees"), [([[0, 0]] * 3, False), ([[0, np.nan]] * 4, False), ([[0, 0, 0]] * 4, False), ([[0, 91]] * 4, True)]
)
def test_coordinates_that_cannot_be_are_refused(xy, degrees):
    with pytest.raises(InvalidValue, match="xy"):
        Graph.from_edges(EDGES, xy=xy, degrees=degrees)


def test_a_graph_without_coordinates_snaps_nothing():
    with pytest.raises(InvalidValue, match="xy="):
        Graph.from_edges(EDGES).snap([[0.0, 0.0]])
    with pytest.raises(InvalidType, match="rows of 2 numbers"):
        SQUARE.snap(np.array([0.0, 1.0]))


def test_networkx_nodes_carry_coordinates_as_two_attributes_or_as_a_pair():
    graph = nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate("dcba")))
    nx.set_node_attributes(graph, {name: {"x": i, "y": 2 * i, "pos": (i, 2 * i)} for i, name in enumerate("dcba")})
    for xy in (("x", "y"), "pos"):
        found = Graph.from_networkx(graph, xy=xy)
        assert found.names.tolist() == list("abcd")
        assert found.points.tolist() == [[3, 6], [2, 4], [1, 2], [0, 0]]
    with pytest.raises(InvalidValue, match="no coordinates"):
        Graph.from_networkx(graph, xy=("x", "z"))


def test_coordinates_on_disk(tmp_path):
    (tmp_path / "roads.txt").write_text("a b 1\nb c 2\n")
    (tmp_path / "spots.csv").write_text("# vertex, x, y\nc, 5, 6\na, 1, 2\nb, 3, 4\n")
    assert Graph.read(tmp_path / "roads.txt", xy=tmp_path / "spots.csv").points.tolist() == [[1, 2], [3, 4], [5, 6]]
    np.savez(tmp_path / "roads.npz", edges=EDGES, xy=CORNERS)
    assert Graph.read(tmp_path / "roads.npz").points.tolist() == CORNERS
    np.save(tmp_path / "spots.npy", np.array(CORNERS) + 7)
    assert Graph.read(tmp_path / "roads.npz", xy=tmp_path / "spots.npy").points[0].tolist() == [7, 7]
    assert Graph.read(tmp_path / "roads.txt").points is None


@pytest.mark.parametrize("text", ["a 1 2\nb 3 4\n", "a 1 2\nb 3 4\nz 1 1\n", "a 1 2\nb 3\nc 1 1\n", "a x y\nb 1 1\nc 2 2\n", ""])
def test_files_of_coordinates_that_do_not_fit_the_graph_are_refused(tmp_path, text):
    (tmp_path / "roads.txt").write_text("a b\nb c\n")
    (tmp_path / "spots.txt").write_text(text)
    with pytest.raises(SourceError, match="vertex"):
        Graph.read(tmp_path / "roads.txt", xy=tmp_path / "spots.txt")


def test_a_fit_takes_positions_and_charges_as_it_does_for_vertices():
    rng = np.random.default_rng(1)
    xy = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    edges = [[i, j] for i in range(100) for j in (i + 1, i + 10) if j < 100 and (j % 10 or j == i + 10)]
    graph = Graph.from_edges(edges, xy=xy)
    rows = np.concatenate([rng.normal([1, 1], 0.3, (3000, 2)), rng.normal([8, 7], 0.3, (3000, 2)), [[np.nan, 0.0]]])
    spent, near = [], np.array([[1.2, 0.9], [8.0, 8.0]])
    for demand in (rows, graph.snap(rows)):
        ledger = Ledger.memory("town", 1.0, relation="add-remove")
        model = PrivateKMedian(2, universe=graph, ledger=ledger, random_state=0).fit(demand)
        assert sorted(model.cluster_centers_.tolist()) == [[1.0, 1.0], [8.0, 7.0]]
        assert np.array_equal(model.release_.places, model.cluster_centers_)
        spent.append([(charge.label, charge.sensitivity, charge.norm) for charge in model.guarantee_.charges])
        own = near if demand is rows else graph.snap(near)
        assert model.cluster_centers_[model.predict(own)].tolist() == [[1.0, 1.0], [8.0, 7.0]]
    assert spent[0] == spent[1]


def test_the_search_without_privacy_takes_positions_too():
    model = KMedian(1, random_state=0).fit(SQUARE, sample_weight=[9, 1, 1, 1])
    assert model.cluster_centers_.tolist() == [[0.0, 0.0]]
    assert model.predict([[0.9, 0.9]]).tolist() == [0]
