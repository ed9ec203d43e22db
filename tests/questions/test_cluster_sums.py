"""Counts and sums of clusters: blocks add up, and sparse rows give what dense ones do."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kveil.kernel.grid import Ball, Box
from kveil.questions.cluster_sums import ClusterSums
from kveil.space.euclidean import Centers


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_blocks_add_up_in_any_order(seed, n_blocks):
    rng = np.random.default_rng(seed)
    domain = Box(np.full(3, -1.0), np.full(3, 1.0))
    codes = domain.encode(rng.normal(size=(200, 3)))
    question = ClusterSums(domain, Centers.of(rng.normal(size=(5, 3)), domain))
    whole = question.raw(codes)
    parts = [question.raw(part) for part in np.array_split(rng.permutation(codes), n_blocks)]
    assert all(np.array_equal(sum(part[i] for part in parts), whole[i]) for i in (0, 1))


def test_sparse_and_dense_sums_are_equal():
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((500, 30)) < 0.1, rng.normal(size=(500, 30)), 0.0)
    domain = Ball(np.zeros(30), 1.0)
    question = ClusterSums(domain, Centers.of(rng.normal(size=(4, 30)), domain))
    dense, sparse = question.raw(domain.encode(rows)), question.raw(domain.encode_sparse(csr_array(rows)))
    assert all(np.array_equal(one, other) for one, other in zip(dense, sparse, strict=True))


def test_no_rows_give_zeros_of_the_same_shape():
    domain = Box(np.full(2, 0.0), np.full(2, 1.0))
    counts, sums = ClusterSums(domain, Centers.of(np.zeros((3, 2)), domain)).raw(domain.encode(np.empty((0, 2))))
    assert counts.tolist() == [0, 0, 0]
    assert sums.tolist() == [[0, 0]] * 3
