"""A table of leaves is a sum over rows: order, split and merge do not matter, and a row moves it by what is stated."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.source import read
from kveil.stream.table import LeafTable, depth_for, table_bytes
from kveil.summary.leaves import MOST_AXES, Leaves, leaf_sums, signs

VALUES = [0.0, 0.5, 1.0, -1.0, 1e9, -1e300, np.nan, np.inf, -np.inf, 1e-9, 0.5 + 2**-10]


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
    return one.raw_counts.tobytes() == other.raw_counts.tobytes() and one.raw_sums.tobytes() == other.raw_sums.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 5, MOST_AXES, MOST_AXES + 1, 40]), st.integers(0, 2**32 - 1))
def test_one_row_adds_one_to_one_count_and_a_bounded_vector_to_one_sum(data, d, seed):
    value = st.floats(-3, 3) | st.sampled_from(VALUES)
    box = a_box(d, seed)
    leaves = Leaves.of(box, 6)
    rows = box.encode(np.array(data.draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=1, max_size=4))))
    (n0, s0), (n1, s1) = leaf_sums(rows[:-1], leaves), leaf_sums(rows, leaves)
    where = np.flatnonzero(n1 - n0)
    assert ((n1 - n0)[where].tolist(), len(where)) == ([1], 1)
    assert not np.delete(s1 - s0, where, axis=0).any()
    added = (s1 - s0)[where[0]]
    assert np.linalg.norm(added) <= leaves.frame.radius
    if not leaves.is_projected:
        for level in range(7):
            code = where >> (6 - level)
            low, high = leaves.cells.boxes(code, level)
            assert ((low[0] <= added) & (added <= high[0])).all()
            assert np.linalg.norm(added - leaves.cells.centers(code, level)[0]) <= leaves.cells.reach(level, "l2")


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
        assert table.raw_counts.sum() == n
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
    assert same(LeafTable.from_arrays(table.arrays(), box, 6), table)
    for change in ({"counts": table.raw_counts[1:]}, {"sums": table.raw_sums.astype(float)}):
        with pytest.raises(InvalidValue):
            LeafTable.from_arrays({**table.arrays(), **change}, box, 6)


def test_signs_are_the_same_everywhere_and_nearly_keep_distances():
    assert signs(3, 2).tolist() == [[1, -1], [-1, 1], [-1, -1]]
    made = signs(200, 12)
    assert set(np.unique(made)) == {-1, 1}
    rows = np.random.default_rng(0).normal(size=(300, 200))
    kept = ((rows @ made) ** 2).sum(axis=1) / (rows**2).sum(axis=1) / 12
    assert abs(kept.mean() - 1) < 0.1
    assert all(abs((made[:, a] * made[:, b]).sum()) < 60 for a, b in itertools.combinations(range(12), 2))
