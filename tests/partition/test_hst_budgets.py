"""Budgets of a tree add up to the whole along every path, and one row moves the counts of one path."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.partition.budgets import path_shares
from kveil.partition.hst import Hst
from kveil.space.vectors import Euclidean

EPSILON = Fraction(7, 10)


def path(tree, node):
    """A node and those above it, without the root."""
    found = []
    while node > 0:
        found.append(node)
        node = int(tree.parent[node])
    return found


def path_budgets(tree, epsilon, split="uniform"):
    """The budget of every node, as a fraction."""
    shares, total = path_shares(tree, split)
    return [epsilon * share / total for share in shares.tolist()]


def some_tree(seed, n):
    points = np.random.default_rng(seed).integers(0, 30, (n, 2)).astype(float)
    return Hst.of(Euclidean(points), random_state=seed)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from(["uniform", "halving"]))
def test_every_path_costs_exactly_the_whole(seed, n, split):
    tree = some_tree(seed, n)
    budgets = path_budgets(tree, EPSILON, split)
    shares, total = path_shares(tree, split)
    assert len(budgets) == tree.n_nodes
    assert budgets[0] == shares[0] == 0
    for leaf in tree.leaves.tolist():
        if leaf:
            assert sum(budgets[node] for node in path(tree, leaf)) == EPSILON
            assert sum(shares[node] for node in path(tree, leaf)) == total
            assert all(budgets[node] > 0 for node in path(tree, leaf))


def test_budgets_by_hand():
    """Points 0 and 1 part at depth 2 below a node; 9 is a leaf of depth 1 and has what depth 2 would have had."""
    tree = Hst.of(Euclidean([[0.0], [1.0], [9.0]]), levels=4, beta=1.0, random_state=1)
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1]
    assert path_budgets(tree, Fraction(1)) == [0, Fraction(1, 2), 1, Fraction(1, 2), Fraction(1, 2)]
    assert path_budgets(tree, Fraction(1), "halving") == [0, Fraction(2, 3), 1, Fraction(1, 3), Fraction(1, 3)]


def test_dividing_by_the_length_of_each_path_would_give_a_node_two_budgets():
    """What the module warns of: leaves of different depth below one node."""
    tree = some_tree(3, 40)
    wanted = {}
    for leaf in tree.leaves.tolist():
        for node in path(tree, leaf):
            wanted.setdefault(node, set()).add(EPSILON / int(tree.depth[leaf]))
    assert any(len(budgets) > 1 for budgets in wanted.values())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.data())
def test_one_row_moves_one_count_a_depth_and_a_replaced_row_two(seed, n, data):
    tree = some_tree(seed, n)
    raw_weights = np.random.default_rng(seed).integers(0, 5, n)
    added, removed = (data.draw(st.integers(0, n - 1)) for _ in range(2))
    raw_counts = tree.sums(raw_weights)
    assert raw_counts.dtype == np.int64
    more = raw_weights.copy()
    more[added] += 1
    moved = tree.sums(more) - raw_counts
    assert np.flatnonzero(moved[1:]).tolist() == sorted(node - 1 for node in path(tree, int(tree.leaf[added])))
    assert set(moved[1:].tolist()) <= {0, 1}
    more[removed] -= 1
    swapped = tree.sums(more) - raw_counts
    assert swapped[0] == 0
    for depth in range(1, tree.height + 1):
        changes = swapped[tree.depth == depth]
        assert np.abs(changes).sum() <= 2
        assert np.abs(changes).max(initial=0) <= 1
    shares, total = path_shares(tree)
    assert np.abs(shares * moved).sum() <= total
    assert np.abs(shares * swapped).sum() <= 2 * total


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_sums_are_those_of_the_members(seed, n):
    tree = some_tree(seed, n)
    weights = np.random.default_rng(seed).random(n)
    named = tree.space.locations()
    for node, total in enumerate(tree.sums(weights).tolist()):
        assert total == pytest.approx(weights[np.isin(named, tree.points(node))].sum())


def test_an_unknown_split_is_refused():
    with pytest.raises(InvalidValue, match="split"):
        path_shares(some_tree(0, 5), "geometric")
