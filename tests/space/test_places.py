"""Rows become points one by one; nothing that they hold raises, warns or gets lost."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Euclidean, Graph
from kveil.desk.fixed import FixedDesk
from kveil.errors import KveilError
from kveil.questions.demand import DemandSize, PartitionCounts, PointCounts
from kveil.space.places import Places

STREET = Graph.from_edges([[0, 1], [1, 2], [2, 3]])
TOWN = Euclidean([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [4.0, 4.0]])
WILD = [2, 3, 4, -1, 0.5, np.nan, np.inf, -np.inf, 1e300, 2**63, 1.0]


def exact(source, question, places):
    """The answer at a desk without noise, which promises nothing."""
    (counts,) = FixedDesk(source, places, None, None).draw(question)
    return counts.tolist()


def test_what_is_no_index_is_point_0():
    rows = np.array(WILD)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Places(STREET, 1).encode(rows).tolist() == [2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_coordinates_are_the_nearest_point_with_ties_to_the_first():
    rows = np.array([[0.1, 0.2], [3.9, 0.3], [9.0, 9.0], [2.0, 0.0], [-1e300, 1e300], [4.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Places(TOWN, 2).encode(rows).tolist() == [0, 1, 3, 0, 2, 3]


@pytest.mark.parametrize("row", [[np.nan, 4.0], [4.0, np.inf], [-np.inf, np.nan]])
def test_a_row_with_nan_or_infinity_is_in_the_middle(row):
    town = Euclidean([[0.0, 0.0], [10.0, 10.0], [5.5, 5.0]])
    assert Places(town, 2).encode(np.array([row])).tolist() == [2]


def test_a_row_becomes_the_same_point_whatever_the_others_are():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((500, 2)) < 0.1, np.nan, rng.normal(2, 3, (500, 2)))
    together = Places(TOWN, 2).encode(rows)
    assert together.tolist() == [Places(TOWN, 2).encode(row[None])[0] for row in rows]


def test_the_number_of_columns_says_what_rows_are():
    assert Places(TOWN, 1).encode(np.array([[3.0]])).tolist() == [3]
    for space, n_columns in ((TOWN, 3), (STREET, 2)):
        with pytest.raises(KveilError, match="one column of indices"):
            Places(space, n_columns)


def test_every_row_is_counted_once_from_any_source(tmp_path):
    column = np.array(WILD)
    pd.DataFrame({"home": column}).to_parquet(tmp_path / "homes.parquet")
    for rows in (column[:, None], pd.DataFrame({"home": column}), tmp_path / "homes.parquet"):
        source = kveil.read(rows)
        places = Places(STREET, 1)
        assert exact(source, PointCounts(4), places) == [8, 1, 1, 1]
        assert exact(source, PartitionCounts(np.array([0, 1, 1, 0], dtype=np.int32)), places) == [9, 2]
        assert exact(source, DemandSize(), places) == [11]


def test_no_rows_are_counts_of_0():
    source = kveil.read(np.empty((0, 1)))
    assert exact(source, PointCounts(4), Places(STREET, 1)) == [0] * 4


def test_of_a_person_only_so_many_rows_count():
    frame = pd.DataFrame({"who": [1, 1, 1, 1, 2], "home": [0, 1, 2, 3, 3]})
    source = kveil.read(frame, person="who", max_rows_per_person=2)
    assert exact(source, DemandSize(), Places(STREET, 1)) == [3]


def test_sparse_rows_are_refused():
    with pytest.raises(KveilError, match="sparse"):
        kveil.read(csr_array(np.eye(1))).check(Places(STREET, 1))
