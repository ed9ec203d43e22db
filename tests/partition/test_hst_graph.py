"""Trees of graphs against brute force: the first vertex of a random order within the radius, over all pairs of distances."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from kveil.partition import medoids
from kveil.partition.hst import Hst
from kveil.space.graph import Graph


def some_graph(seed, most):
    """A random graph with short whole lengths (so ties), perhaps edges of length 0, loops, parallel edges and pieces."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most))
    edges = rng.integers(0, n, (int(n * rng.uniform(0.3, 3)), 2))
    lengths = rng.integers(0 if seed % 2 else 1, int(rng.integers(2, 30)), len(edges))
    return Graph.from_edges(edges, lengths=lengths, n_points=n, truncate=float(rng.integers(1, 60)))


def all_distances(graph):
    """By SciPy; lengths are moved off 0, which its sparse graphs take for no edge, and back."""
    n, tails = graph.n_points, np.repeat(np.arange(graph.n_points, dtype=np.int32), np.diff(graph.indptr))
    lengths = graph.lengths + 1e-7
    apart = dijkstra(coo_array((lengths, (tails, graph.heads.astype(np.int32))), shape=(n, n)).tocsr())
    return np.minimum(np.rint(np.where(np.isinf(apart), graph.diameter, apart)), graph.diameter)


def brute_force(apart, perm, radii):
    """For every vertex the cell of each level: the centres of all levels above and its own."""
    rank = np.empty(len(perm), dtype=int)
    rank[perm] = np.arange(len(perm))
    cells = [() for _ in perm]
    for radius in reversed(radii):
        for u in range(len(perm)):
            cells[u] += (min(rank[v] for v in np.flatnonzero(apart[u] <= radius)),)
    return cells


def sets_of(tree):
    named = tree.space.locations()
    return {frozenset(np.flatnonzero(np.isin(named, tree.points(node))).tolist()) for node in range(tree.n_nodes)}


def agrees_with_brute_force(graph, levels, seed):
    tree = Hst.of(graph, levels=levels, random_state=seed)
    perm = np.random.default_rng(seed).permutation(graph.n_points)
    radii = [tree.factor * tree.diameter / 2 ** (levels - level) for level in range(levels)]
    apart = all_distances(graph)
    cells = brute_force(apart, perm, radii)
    expected = set()
    for depth in range(levels + 1):
        for prefix in {cell[:depth] for cell in cells}:
            members = frozenset(u for u, cell in enumerate(cells) if cell[:depth] == prefix)
            expected.add(members)
    assert all(apart[u, graph.locations()[u]] == 0 for u in range(graph.n_points))
    inner = {frozenset(group) for group in expected if apart[np.ix_(sorted(group), sorted(group))].any()}
    places = {group for group in sets_of(tree) if not apart[np.ix_(sorted(group), sorted(group))].any()}
    return inner == sets_of(tree) - places and places <= expected


@pytest.mark.parametrize("part", range(4))
def test_least_elements_are_the_brute_force_ones(part):
    """200 graphs, ties, lengths of 0, several pieces, all truncated: by much, or by more than their diameter."""
    for seed in range(50 * part, 50 * part + 50):
        assert agrees_with_brute_force(some_graph(seed, 40), 1 + seed % 6, seed), seed


@pytest.mark.parametrize("seed", [1, 2])
def test_least_elements_of_larger_graphs_too(seed):
    graph = some_graph(seed, 500)
    assert agrees_with_brute_force(graph, 5, seed)


def test_a_connected_graph_needs_no_truncation():
    rng = np.random.default_rng(3)
    edges = np.concatenate([np.column_stack([np.arange(199), np.arange(1, 200)]), rng.integers(0, 200, (200, 2))])
    graph = Graph.from_edges(edges, lengths=rng.integers(1, 9, len(edges)))
    assert all(agrees_with_brute_force(graph, levels, levels) for levels in (1, 4, 8))


def test_cells_of_a_graph_keep_the_radius_around_some_vertex_and_split_children_in_creation_order():
    graph = some_graph(12, 200)
    tree = Hst.of(graph, random_state=1)
    apart = all_distances(graph)
    for node in range(tree.n_nodes):
        assert apart[:, tree.points(node)].max(axis=1).min() <= tree.radius[node]
    order = {int(u): place for place, u in enumerate(np.random.default_rng(1).permutation(graph.n_points))}
    for node in np.flatnonzero(tree.n_children).tolist():
        radius = tree.gap[tree.first_child[node]]
        centers = [
            min((v for v in range(graph.n_points) if apart[tree.points(child)[0], v] <= radius), key=order.get)
            for child in tree.children(node).tolist()
        ]
        assert [order[v] for v in centers] == sorted(order[v] for v in centers)


def test_small_leaves_of_a_graph_have_the_exact_medoid():
    graph = some_graph(12, 200)
    tree = Hst.of(graph, levels=3, random_state=5)
    apart, copies = all_distances(graph), np.bincount(graph.locations(), minlength=graph.n_points)
    checked = 0
    for leaf in tree.leaves.tolist():
        members = tree.points(leaf)
        if 1 < len(members) <= medoids.MOST_ANCHORS:
            sums = apart[np.ix_(members, members)] @ copies[members]
            assert sums[members == tree.representative[leaf]] == sums.min()
            checked += 1
    assert checked > 5


def test_cells_that_are_small_and_wide_have_a_member_for_a_medoid_too():
    """A graph that grows quickly: two members of a cell may have hundreds of vertices between them, and searches give up."""
    rng = np.random.default_rng(0)
    edges = np.concatenate([np.column_stack([np.arange(1999), np.arange(1, 2000)]), rng.integers(0, 2000, (6000, 2))])
    tree = Hst.of(Graph.from_edges(edges, lengths=rng.integers(1, 1000, len(edges))), leaf_size=4, random_state=1)
    sizes = (tree.stop - tree.start)[tree.leaves]
    assert np.count_nonzero(sizes > 1) > 100
    assert all(tree.representative[leaf] in tree.points(leaf) for leaf in tree.leaves.tolist())
