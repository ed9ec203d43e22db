"""Leaves of a public partition: a row is in one of them, and adds what is stated there."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.kernel.grid import Box
from kveil.questions.leaves import MOST_AXES, LeafTotals, Leaves, signs

VALUES = [0.0, 0.5, 1.0, -1.0, 1e9, -1e300, np.nan, np.inf, -np.inf, 1e-9, 0.5 + 2**-10]


def a_box(d, seed):
    rng = np.random.default_rng(seed)
    half = np.ones(d) if seed % 2 else rng.uniform(0.001, 2.0, d)
    middle = rng.normal(size=d)
    return Box(middle - half, middle + half)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 5, MOST_AXES, MOST_AXES + 1, 40]), st.integers(0, 2**32 - 1))
def test_one_row_adds_one_to_one_count_and_a_bounded_vector_to_one_sum(data, d, seed):
    value = st.floats(-3, 3) | st.sampled_from(VALUES)
    box = a_box(d, seed)
    leaves = Leaves.of(box, 6)
    rows = box.encode(np.array(data.draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=1, max_size=4))))
    (n0, s0), (n1, s1) = (LeafTotals(leaves).raw(table) for table in (rows[:-1], rows))
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


def test_signs_are_the_same_everywhere_and_nearly_keep_distances():
    assert signs(3, 2).tolist() == [[1, -1], [-1, 1], [-1, -1]]
    made = signs(200, 12)
    assert set(np.unique(made)) == {-1, 1}
    rows = np.random.default_rng(0).normal(size=(300, 200))
    kept = ((rows @ made) ** 2).sum(axis=1) / (rows**2).sum(axis=1) / 12
    assert abs(kept.mean() - 1) < 0.1
    assert all(abs((made[:, a] * made[:, b]).sum()) < 60 for a, b in itertools.combinations(range(12), 2))
