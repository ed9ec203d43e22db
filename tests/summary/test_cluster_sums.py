"""Counts and sums of clusters: one row moves one of each, by a bounded amount."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kveil.kernel.grid import Ball, Box
from kveil.space.euclidean import Centers
from kveil.summary.cluster_sums import cluster_sums

ODD = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.3, 1e308, -1e308, float("nan"), float("inf"), 1e-320, 0.7071067811865476])


@st.composite
def table_and_one_more_row(draw):
    d = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(ODD, min_size=d, max_size=d), max_size=6))
    row = draw(st.lists(ODD, min_size=d, max_size=d))
    place = draw(st.integers(0, len(rows)))
    k = draw(st.integers(1, 4))
    centers = np.array(draw(st.lists(st.lists(st.floats(-1, 1), min_size=d, max_size=d), min_size=k, max_size=k)))
    domain = draw(st.sampled_from([Box(np.full(d, -1.0), np.full(d, 1.0)), Ball(np.zeros(d), 1.0), Ball(np.zeros(d), 1.0, 20)]))
    return np.array(rows, dtype=np.float64).reshape(-1, d), np.array(row), place, centers, domain


@settings(max_examples=150, deadline=None)
@given(table_and_one_more_row())
def test_one_more_row_moves_one_count_by_one_and_one_sum_by_at_most_the_stated_sensitivity(case):
    rows, row, place, raw_centers, domain = case
    centers = Centers.of(raw_centers, domain)
    before = cluster_sums(domain.encode(rows), centers)
    after = cluster_sums(domain.encode(np.insert(rows, place, row, axis=0)), centers)
    moved_counts, moved_sums = after[0] - before[0], after[1] - before[1]
    assert sorted(moved_counts.tolist()) == [0] * (len(moved_counts) - 1) + [1]
    assert not moved_sums[moved_counts == 0].any()
    assert sum(int(x) ** 2 for x in moved_sums.ravel()) <= domain.l2_sensitivity**2
    assert sum(abs(int(x)) for x in moved_sums.ravel()) <= domain.l1_sensitivity


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_blocks_add_up_in_any_order(seed, n_blocks):
    rng = np.random.default_rng(seed)
    domain = Box(np.full(3, -1.0), np.full(3, 1.0))
    codes = domain.encode(rng.normal(size=(200, 3)))
    centers = Centers.of(rng.normal(size=(5, 3)), domain)
    whole = cluster_sums(codes, centers)
    parts = [cluster_sums(part, centers) for part in np.array_split(rng.permutation(codes), n_blocks)]
    assert all(np.array_equal(sum(part[i] for part in parts), whole[i]) for i in (0, 1))


def test_sparse_and_dense_sums_are_equal():
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((500, 30)) < 0.1, rng.normal(size=(500, 30)), 0.0)
    domain = Ball(np.zeros(30), 1.0)
    centers = Centers.of(rng.normal(size=(4, 30)), domain)
    dense, sparse = cluster_sums(domain.encode(rows), centers), cluster_sums(domain.encode_sparse(csr_array(rows)), centers)
    assert all(np.array_equal(one, other) for one, other in zip(dense, sparse, strict=True))


def test_no_rows_give_zeros_of_the_same_shape():
    domain = Box(np.full(2, 0.0), np.full(2, 1.0))
    counts, sums = cluster_sums(domain.encode(np.empty((0, 2))), Centers.of(np.zeros((3, 2)), domain))
    assert counts.tolist() == [0, 0, 0]
    assert sums.tolist() == [[0, 0]] * 3
