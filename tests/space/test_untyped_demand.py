"""Demand as Python objects: how a row is read depends on that row alone, and nothing it holds raises."""

import numpy as np
import pytest

from kveil import Euclidean, Graph, Precomputed, PrivateKMedian, read
from kveil.testing import scripted

PATH = Graph.from_edges([[i, i + 1] for i in range(9)])
ODD = ["x", "7", None, 7.0, 7.5, True, b"\xff", [2], float("nan"), 10**30, 10**5000, -1, 10**400, {"a": 1}]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("rows", [[7.0, 7.0], [7, 3], [True, True], ["7", "3"]])
def test_one_more_row_changes_no_other(rows, odd):
    for read_rows in (PATH.find, PATH.locate, Precomputed(PATH.distances(range(10))).locate):
        assert read_rows([*rows, odd])[:-1].tolist() == read_rows(rows).tolist()


def test_rows_of_coordinates_are_read_one_by_one():
    corners = Euclidean([[0, 0], [0, 8], [8, 0], [8, 8]])
    rows = [[0, 1], [8.0, 7]]
    for odd in ([None, 1], [10**30, 1], ["x", 1], [1], 5, None):
        assert corners.locate([*rows, odd])[:-1].tolist() == corners.locate(rows).tolist() == [0, 3]


@pytest.mark.parametrize(
    "odd", [*ODD, [1], [1, 2, 3], np.array(0.5), np.ones(2), "ab", []], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_wherever_a_row_is_it_changes_no_other(odd, place):
    """The first one, too: a list has no type, so nothing says of all rows whether they are positions."""
    corners = [[0.0, 0.0], [0.0, 8.0], [8.0, 8.0], [8.0, 0.0]]
    road = Graph.from_edges([[0, 1], [1, 2], [2, 3]], xy=corners)
    rows = [[0, 7], [7.0, 9]]
    for read_rows in (road.locate, road.snap, Euclidean(corners).locate):
        found = read_rows([*rows[:place], odd, *rows[place:]]).tolist()
        assert found[:place] + found[place + 1 :] == read_rows(rows).tolist() == [1, 2]
        assert found[place] == read_rows([odd])[0]


def test_names_beside_numbers_stay_names(tmp_path):
    file = tmp_path / "edges.txt"
    file.write_text("10 20\n20 30\n")
    named = Graph.read(file)
    assert named.locate([1, "30", 2, "x"]).tolist() == [1, 2, 2, 0]
    assert named.find([30, 30.0, "30", "moon"]).tolist() == [2, 2, 2, 0]


def test_a_very_long_row_takes_no_memory_of_the_others():
    assert PATH.find(["3"] * 100_000 + ["1" * 5_000_000])[-2:].tolist() == [3, 0]


@pytest.mark.parametrize("last", ["5", "5,5", ""])
def test_under_replace_one_the_number_of_rows_is_paid_for(tmp_path, last):
    """A line that is no row is left out, so replacing a record can change how many there are."""
    file = tmp_path / "demand.csv"
    file.write_text("v\n" + "5\n" * 100 + last + "\n")
    with scripted(3):
        model = PrivateKMedian(2, universe=PATH, relation="replace-one", random_state=0).fit(read(file))
    assert model.guarantee_.charges[0].label == "number of rows"


def test_typed_arrays_are_still_refused_by_their_type():
    with pytest.raises(TypeError, match="point numbers"):
        Precomputed(np.zeros((2, 2))).locate(np.array(["a", "b"]))
