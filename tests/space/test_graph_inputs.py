"""Where graphs come from: arrays, SciPy, networkx, files; names; and what is refused."""

import networkx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix, lil_array

from kveil import Graph
from kveil.errors import InvalidType, InvalidValue, SourceError

TRIANGLE = Graph.from_edges([[0, 1], [1, 2], [0, 2]], lengths=[3, 4, 9])


@pytest.mark.parametrize("kind", [coo_array, csr_array, csr_matrix, lil_array])
def test_scipy_matrices_may_hold_one_triangle_or_both(kind):
    upper = np.array([[0, 3, 9], [0, 0, 4], [0, 0, 0]])
    assert Graph.from_scipy(kind(upper)).identity() == TRIANGLE.identity()
    assert Graph.from_scipy(kind(upper + upper.T)).identity() == TRIANGLE.identity()
    assert Graph.from_scipy(kind(upper > 0)).diameter == 2  # edges of length 1


def test_stored_zeros_are_edges_and_the_shorter_direction_counts():
    stored = coo_array(([0.0, 5.0, 2.0], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
    assert Graph.from_scipy(stored).distances([0]).tolist() == [[0, 0, 2]]


def test_scipy_matrices_that_are_no_graph_are_refused():
    with pytest.raises(InvalidType, match="Precomputed"):
        Graph.from_scipy(np.eye(3))
    with pytest.raises(InvalidValue, match="square"):
        Graph.from_scipy(csr_array(np.ones((2, 3))))
    with pytest.raises(InvalidValue, match="falls into pieces"):
        Graph.from_scipy(csr_array((3, 3)))
    assert Graph.from_scipy(csr_array((3, 3)), truncate=2).distances([0]).tolist() == [[0, 2, 2]]


def test_networkx_graphs_keep_numbers_and_names():
    graph = networkx.Graph()
    graph.add_weighted_edges_from([(2, 1, 4), (1, 0, 3), (0, 2, 9)])
    same = Graph.from_networkx(graph)
    assert same.names is None
    assert same.identity() == TRIANGLE.identity()
    assert Graph.from_networkx(graph, length=None).diameter == 2
    named = Graph.from_networkx(networkx.relabel_nodes(graph, {0: "ash", 1: "birch", 2: "cedar"}))
    assert named.names.tolist() == ["ash", "birch", "cedar"]
    assert named.identity() == TRIANGLE.identity()
    spaced = Graph.from_networkx(networkx.relabel_nodes(graph, {0: -5, 1: 30, 2: 200}))
    assert spaced.names.tolist() == [-5, 30, 200]
    assert spaced.identity() == TRIANGLE.identity()
    grid = Graph.from_networkx(networkx.grid_2d_graph(2, 2))
    assert grid.names.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]


def test_networkx_multigraphs_and_other_attributes():
    graph = networkx.MultiGraph()
    graph.add_edge(0, 1, km=7)
    graph.add_edge(0, 1, km=2)
    graph.add_edge(1, 2, km=1)
    assert Graph.from_networkx(graph, length="km").distances([0]).tolist() == [[0, 2, 3]]
    assert Graph.from_networkx(graph).distances([0]).tolist() == [[0, 1, 2]]
    graph.add_edge(2, 3)
    for length in ("km", "kilometres"):  # a length that is not there is no length of 1
        with pytest.raises(InvalidValue, match="some edges have no attribute"):
            Graph.from_networkx(graph, length=length)
    lonely = networkx.empty_graph(1)
    assert Graph.from_networkx(lonely).n_points == 1


def test_names_may_hold_blanks_where_commas_part_them(tmp_path):
    path = tmp_path / "streets.txt"
    path.write_text("Main Street,High Road,1.5\nHigh Road,Low Road,2\n")
    town = Graph.read(path)
    assert town.find(["Main Street", "Low Road"]).tolist() == [2, 1]
    with pytest.raises(InvalidType, match="flat"):
        town.find("Main Street")


def test_networkx_graphs_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidValue, match="directed"):
        Graph.from_networkx(networkx.DiGraph([(0, 1)]))
    with pytest.raises(InvalidType, match="networkx"):
        Graph.from_networkx([[0, 1]])
    with pytest.raises(InvalidValue, match="empty"):
        Graph.from_networkx(networkx.Graph())
    with pytest.raises(InvalidValue, match="read alike"):
        Graph.from_networkx(networkx.Graph([(1, "1")]))
    broken = networkx.Graph()
    broken.add_edge(0, 1, weight="far")
    with pytest.raises(InvalidType, match="lengths"):
        Graph.from_networkx(broken)


@pytest.mark.parametrize(
    "text",
    [
        "0 1 3\n1 2 4\n0 2 9\n",
        "0,1,3\n1,2,4\n0,2,9",
        "# a triangle\n\n0\t1\t3\r\n1\t2\t4.0 # the long one\r\n2, 0, 9e0\r\n",
        "\ufeff0 1 3\n1 2 4\n0 2 9\n",
    ],
)
def test_edge_lists_are_read_in_any_usual_form(text, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text(text, encoding="utf-8")
    for given in (path, str(path)):
        graph = Graph.read(given)
        assert graph.names is None
        assert graph.identity() == TRIANGLE.identity()


def test_names_in_a_file_are_numbered_in_sorted_order(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("zoo,home\nhome,Ärztehaus\n", encoding="utf-8")
    graph = Graph.read(path)
    assert graph.names.tolist() == ["home", "zoo", "Ärztehaus"]
    assert graph.distances([0]).tolist() == [[0, 1, 1]]
    assert graph.find(["zoo", "Ärztehaus", "home", "nowhere", ""]).tolist() == [1, 2, 0, 0, 0]
    assert graph.locate(np.array(["zoo", "none"], dtype=object)).tolist() == [1, 0]
    assert graph.locate([2, 1, 7]).tolist() == [2, 1, 0]  # numbers are point numbers
    assert not graph.names.flags.writeable


def test_whole_numbers_that_are_not_0_to_n_are_names_too(tmp_path):
    path = tmp_path / "osm.txt"
    path.write_text("1000 30\n30 200\n")
    graph = Graph.read(path)
    assert graph.names.tolist() == [30, 200, 1000]
    assert graph.find([1000, 30, 31]).tolist() == [2, 0, 0]
    assert graph.find(np.array([1000.0, 30.5, np.nan, np.inf, 200.0])).tolist() == [2, 0, 0, 0, 1]
    assert graph.find(["1000", "200", None]).tolist() == [2, 1, 0]
    path.write_text("07 7\n")  # not written as Python would: two names, not one number
    assert Graph.read(path).names.tolist() == ["07", "7"]


def test_graphs_without_names_find_their_numbers():
    assert TRIANGLE.find(["2", "0", "3", "-1", "x"]).tolist() == [2, 0, 0, 0, 0]
    assert TRIANGLE.find([2, 1, -1, 3]).tolist() == [2, 1, 0, 0]
    assert TRIANGLE.locate(np.array([["1"], ["2"]])).tolist() == [1, 2]
    with pytest.raises(InvalidType, match="flat"):
        TRIANGLE.find(np.array([["1", "2"]]))


def test_npz_files_hold_edges_and_perhaps_lengths_and_a_number_of_points(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, edges=np.array([[0, 1], [1, 2], [0, 2]], dtype=np.uint16), w=np.array([3, 4, 9], dtype=np.float32), n=3)
    assert Graph.read(path).identity() == TRIANGLE.identity()
    np.savez(path, edges=np.array([[0, 1]]), n=3)
    assert Graph.read(path, truncate=2).distances([0]).tolist() == [[0, 1, 2]]
    np.savez(path, x=np.zeros(3))
    with pytest.raises(SourceError, match="no array edges"):
        Graph.read(path)
    path.write_text("0 1\n")
    with pytest.raises(SourceError, match=r"no \.npz"):
        Graph.read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no edges"),
        ("# nothing\n", "no edges"),
        ("0 1\n1 2 5\n", "line 2"),
        ("0\n", "line 1"),
        ("0 1 2 3\n", "line 1"),
        ("u,v,length\n0,1,2\n", "line 1: the length is not a number. Put #"),
    ],
)
def test_files_that_are_no_edge_list_say_where(text, said, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(SourceError, match=said):
        Graph.read(path)


def test_files_that_are_absent_or_no_text_are_refused(tmp_path):
    with pytest.raises(SourceError, match="no file"):
        Graph.read(tmp_path / "nowhere.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(SourceError, match="UTF-8"):
        Graph.read(tmp_path / "binary.txt")
    (tmp_path / "bad.txt").write_text("0 1 nan\n")
    with pytest.raises(InvalidValue, match="finite"):
        Graph.read(tmp_path / "bad.txt")


@pytest.mark.parametrize(
    ("edges", "options", "trouble", "said"),
    [
        ([[0, 1]], {"lengths": [-1.0]}, InvalidValue, "lengths must be 0 or more"),
        ([[0, 1]], {"lengths": [np.nan]}, InvalidValue, "lengths"),
        ([[0, 1]], {"lengths": [np.inf]}, InvalidValue, "lengths"),
        ([[0, 1]], {"lengths": [1e300]}, InvalidValue, "ordinary size"),
        ([[0, 1]], {"lengths": [1, 2]}, InvalidValue, "one number an edge"),
        ([[0, 1]], {"lengths": ["far"]}, InvalidType, "lengths"),
        ([[0, -1]], {}, InvalidValue, "0 or more"),
        ([[0, 2**31]], {}, InvalidValue, "below"),
        ([[0, 1]], {"n_points": 1}, InvalidValue, "above every vertex"),
        ([[0, 1]], {"n_points": 2.0}, InvalidType, "n_points"),
        ([[0, 1, 2]], {}, InvalidValue, "two columns"),
        ([0, 1], {}, InvalidValue, "two columns"),
        ([[0.0, 1.0]], {}, InvalidType, "integers"),
        ([["a", "b"]], {}, InvalidType, "Graph.read"),
        ([], {}, InvalidValue, "empty"),
        ([[0, 1]], {"truncate": 0}, InvalidValue, "truncate"),
        ([[0, 1]], {"truncate": np.inf}, InvalidValue, "truncate"),
        ([[0, 1]], {"truncate": np.nan}, InvalidValue, "truncate"),
        ([[0, 1]], {"truncate": "far"}, InvalidType, "truncate"),
    ],
)
def test_edges_that_make_no_graph_are_refused(edges, options, trouble, said):
    with pytest.raises(trouble, match=said):
        Graph.from_edges(edges, **options)


def test_a_graph_of_one_vertex_needs_no_edges():
    graph = Graph.from_edges([], n_points=1)
    assert (graph.n_points, graph.diameter) == (1, 0)
    assert graph.nearest([0])[2].tolist() == [0]
    assert Graph.from_edges([], n_points=2, truncate=5).distances([0]).tolist() == [[0, 5]]
