"""Consistent counts of a tree against dense least squares, and against the nearest point of a simplex by enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.partition.hst import Hst
from kveil.solve.pool_tree import consistent_counts, point_weights
from kveil.space.vectors import Euclidean


def some_tree(seed, n):
    points = np.random.default_rng(seed).integers(0, 40, (n, 2)).astype(float)
    return Hst.of(Euclidean(points), random_state=seed)


def noisy(tree, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(3, 10, tree.n_nodes), rng.uniform(0.2, 9, tree.n_nodes)


def membership(tree):
    """(nodes, leaves): which leaves lie in a node."""
    leaves = tree.leaves
    inside = (tree.start[:, None] <= tree.start[leaves]) & (tree.stop[leaves] <= tree.stop[:, None])
    return inside.astype(float)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.booleans())
def test_two_passes_are_dense_weighted_least_squares(seed, n, is_total_known):
    tree = some_tree(seed, n)
    counts, variances = noisy(tree, seed)
    rows = membership(tree)
    scaled = rows[1:] / np.sqrt(variances[1:, None])  # the root is not measured
    normal, right = scaled.T @ scaled, scaled.T @ (counts[1:] / np.sqrt(variances[1:]))
    if is_total_known:  # with a multiplier for the sum of all leaves
        ones = np.ones((len(normal), 1))
        normal, right = np.block([[normal, ones], [ones.T, np.zeros((1, 1))]]), np.append(right, 17.5)
    leaves = np.linalg.solve(normal, right)[: rows.shape[1]]
    found = consistent_counts(tree, counts, variances, total=17.5 if is_total_known else None, may_be_negative=True)
    assert found == pytest.approx(rows @ leaves, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([None, 0.0, -3.0, 25.0]))
def test_counts_are_never_negative_and_add_up_to_the_parent(seed, n, total):
    tree = some_tree(seed, n)
    found = consistent_counts(tree, *noisy(tree, seed), total=total)
    assert (found >= 0).all()
    if total is not None:
        assert found[0] == max(0.0, total)
    for node in np.flatnonzero(tree.n_children).tolist():
        assert found[tree.children(node)].sum() == pytest.approx(found[node], abs=1e-9)


def nearest_by_enumeration(z, spread, total):
    """argmin of sum (x - z)^2 / spread over x >= 0 with that sum: try every set of positive ones."""
    best = None
    for kept in product([False, True], repeat=len(z)):
        a = np.array(kept)
        if not a.any():
            continue
        x = np.where(a, z - (z[a].sum() - total) / spread[a].sum() * spread, 0.0)
        cost = ((x - z) ** 2 / spread).sum()
        if (x >= -1e-9).all() and (best is None or cost < best[0]):  # a count of 0 may come out a little below
            best = cost, x
    return best[1]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6, unique=True), st.integers(0, 2**32 - 1), st.floats(0.01, 60))
def test_children_become_the_nearest_counts_that_add_up(places, seed, total):
    tree = Hst.of(Euclidean(np.array(places, dtype=float)[:, None]), levels=20, random_state=seed)
    z, spread = noisy(tree, seed)
    found = consistent_counts(tree, z, spread, total=total)
    pooled = consistent_counts(tree, z, spread, total=total, may_be_negative=True)
    leaves_of = [node for node in np.flatnonzero(tree.n_children) if (tree.n_children[tree.children(node)] == 0).all()]
    for node in leaves_of:  # pooled estimates of leaves are their own counts
        children = tree.children(node)
        assert found[children] == pytest.approx(nearest_by_enumeration(z[children], spread[children], found[node]), abs=1e-7)
    assert pooled[0] == total


def test_by_hand():
    """Children 8 and 2 with variances 1 and 3 below a root of 6: the excess of 4 is shared 1 to 3, which would be 7 and -1."""
    tree = Hst.of(Euclidean([[0.0], [9.0]]), levels=1, beta=1.0)
    assert tree.parent.tolist() == [-1, 0, 0]
    noisy_counts, variances = np.array([99.0, 8.0, 2.0]), np.array([1.0, 1.0, 3.0])
    assert consistent_counts(tree, noisy_counts, variances, total=6.0, may_be_negative=True).tolist() == [6, 7, -1]
    assert consistent_counts(tree, noisy_counts, variances, total=6.0).tolist() == [6, 6, 0]
    assert consistent_counts(tree, noisy_counts, variances).tolist() == [10, 8, 2]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0.001, 10))
def test_all_mass_reaches_the_points(seed, n, epsilon):
    tree = some_tree(seed, n)
    counts = consistent_counts(tree, *noisy(tree, seed), total=50.0)
    weights = point_weights(tree, counts, np.full(tree.n_nodes, epsilon))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(50.0)
    assert np.array_equal(weights, weights[tree.space.locations()])  # points at one place weigh alike


def test_mass_goes_down_only_where_it_stands_out():
    """Places 0 and 1 | 8 and 9 and 9 again: a node with 12 keeps to itself, one of 1 is spread over what is not in the other."""
    tree = Hst.of(Euclidean([[0.0], [1.0], [8.0], [9.0], [9.0]]), levels=1, beta=1.0, random_state=0)
    left, right = (int(tree.leaf[u]) for u in (0, 2))
    assert left != right
    counts = np.zeros(3)
    counts[[0, left, right]] = 13, 12, 1
    assert point_weights(tree, counts, np.full(3, 0.5)).tolist() == [6, 6, 1 / 3, 1 / 3, 1 / 3]
    assert point_weights(tree, counts, np.full(3, 0.1)).tolist() == [13 / 5] * 5
