"""A table of leaves is a sum over rows: order, split and merge do not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.desk.leaf_table import LeafTable, depth_for, table_bytes
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.source import read


def a_box(d, seed):
    rng = np.random.default_rng(seed)
    half = np.ones(d) if seed % 2 else rng.uniform(0.001, 2.0, d)
    middle = rng.normal(size=d)
    return Box(middle - half, middle + half)


def table_of(rows, box, depth=6):
    table = LeafTable(box, depth)
    table.update(read(rows))
    return table


def same(one, other):
    return all(one.arrays()[name].tobytes() == other.arrays()[name].tobytes() for name in ("counts", "sums"))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 30]))
def test_any_split_order_and_merge_tree_gives_the_same_bytes(seed, d):
    rng = np.random.default_rng(seed)
    box, rows = a_box(d, seed), rng.normal(0, 2, (60, d))
    whole = table_of(rows, box)
    parts = [table_of(part, box) for part in np.split(rng.permutation(rows), sorted(rng.integers(0, 61, 3)))]
    a, b, c, e = parts
    a.merge(b)
    c.merge(e)
    c.merge(a)
    assert same(c, whole)


def test_memory_is_the_formula_whatever_the_rows_are():
    box = Box([-1.0], [1.0])
    for n in (0, 1, 1_000_000):
        table = table_of(np.zeros((n, 1)), box, 10)
        assert table.n_bytes == table_bytes(10, 1) == 8 * 1024 * 2
        assert table.arrays()["counts"].sum() == n
    assert [depth_for(memory) for memory in (4, 1023, 1024, 10_000, 65_536, 10**9)] == [2, 9, 10, 13, 16, 16]


def test_tables_that_were_cut_otherwise_are_refused_by_name():
    table = LeafTable(Box([0.0, 0.0], [1.0, 1.0]), 4)
    for other, what in (
        (LeafTable(Box([0.0, 0.0], [1.0, 2.0]), 4), "half, order, upper"),
        (LeafTable(Box([0.0, 0.0], [1.0, 1.0]), 5), "depth, order"),
        (LeafTable(Box([0.0, 0.0], [1.0, 1.0], bits=12), 4), "bits, half"),
        (LeafTable(Box([0.0], [1.0]), 4), "columns"),
    ):
        with pytest.raises(InvalidValue, match=what):
            table.merge(other)


def test_tables_go_to_a_file_and_back():
    box = Box([0.0, 0.0], [1.0, 1.0])
    table = table_of(np.random.default_rng(0).random((100, 2)), box)
    kept = table.arrays()
    assert same(LeafTable.from_arrays(kept, box, 6), table)
    for change in ({"counts": kept["counts"][1:]}, {"sums": kept["sums"].astype(float)}):
        with pytest.raises(InvalidValue):
            LeafTable.from_arrays({**kept, **change}, box, 6)
