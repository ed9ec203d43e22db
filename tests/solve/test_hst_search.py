"""Subtree search and leaf search against the procedure as the paper has it, and the seeds they give."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kveil.seeding
from kveil.errors import InvalidValue
from kveil.partition.hst import Hst
from kveil.solve.hst import hst, hst_seeds, leaf_search, seeds_from_counts, subtree_search
from kveil.space.graph import Graph
from kveil.space.matrix import Precomputed
from kveil.space.vectors import Euclidean


def made(children):
    """A tree of any shape: children[v] is how many node v gets, nodes numbered level by level."""
    parent, first, counts, depth = [-1], [], [], [0]
    for v, n in enumerate(children):
        if v == len(parent):
            break
        first.append(len(parent) if n else 0)
        counts.append(n)
        depth += [depth[v] + 1] * n
        parent += [v] * n
    missing = len(parent) - len(first)
    shape = {
        "parent": np.array(parent), "depth": np.array(depth),
        "first_child": np.array(first + [0] * missing), "n_children": np.array(counts + [0] * missing),
    }  # fmt: skip
    others = ("level", "radius", "gap", "start", "stop", "members", "leaf", "representative")
    return Hst(None, 8, 1.0, 1, **shape, **dict.fromkeys(others))


def ancestors(parent, v):
    while parent[v] >= 0:
        v = parent[v]
        yield v


def literal_subtree_search(tree, scores, k):
    """Add the best k - |C| nodes that are left, drop what lies above another, never take it again; until there are k."""
    waiting = sorted(range(1, tree.n_nodes), key=lambda v: (-scores[v], v))
    chosen = []
    while len(chosen) < k and waiting:
        wanted = k - len(chosen)
        chosen, waiting = chosen + waiting[:wanted], waiting[wanted:]
        above = {a for v in chosen for a in ancestors(tree.parent, v)}
        chosen = [v for v in chosen if v not in above]
        waiting = [v for v in waiting if v not in above]
    return sorted(chosen)


shapes = st.lists(st.integers(0, 4), min_size=1, max_size=25)


@settings(max_examples=800, deadline=None)
@given(shapes, st.integers(1, 40), st.randoms(use_true_random=False))
def test_prefix_minima_are_what_the_batch_procedure_finds(children, k, random):
    """Trees of any shape, scores with ties and signs, k from 1 to more than the leaves."""
    tree = made(children)
    scores = np.array([random.randint(-4, 4) for _ in range(tree.n_nodes)], dtype=float)
    assert subtree_search(tree, scores, k).tolist() == literal_subtree_search(tree, scores.tolist(), k)


@settings(max_examples=200, deadline=None)
@given(shapes, st.randoms(use_true_random=False))
def test_leaf_search_follows_the_largest_count(children, random):
    tree = made(children)
    counts = np.array([random.randint(-3, 3) for _ in range(tree.n_nodes)])
    found = leaf_search(tree, counts, np.arange(tree.n_nodes))
    for node, leaf in enumerate(found.tolist()):
        while tree.n_children[node]:
            node = max(tree.children(node).tolist(), key=lambda c: (counts[c], -c))
        assert leaf == node


def uncollapsed(tree):
    """The same tree with a node on every level below the root: parent, radius and collapsed node of each, as they arise."""
    parent, gap, stands_for = [-1], [float(tree.diameter)], [0]
    latest = {0: 0}  # of every collapsed node its lowest node so far
    for level in reversed(range(tree.n_levels)):
        radius = tree.factor * tree.diameter / 2 ** (tree.n_levels - level)
        for node in range(1, tree.n_nodes):
            is_cut_here = tree.gap[node] == radius
            is_divided = tree.n_children[node] and tree.gap[tree.first_child[node]] >= radius
            if is_cut_here or (node in latest and not is_divided):
                parent.append(latest[tree.parent[node] if is_cut_here else node])
                gap.append(radius)
                stands_for.append(node)
                latest[node] = len(parent) - 1
    return np.array(parent), np.array(gap), np.array(stands_for)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 6), st.integers(1, 8))
def test_collapsing_chains_does_not_change_what_is_found(seed, n, levels, k):
    """The score of a collapsed node is its count times the radius at which it was cut off: the first of its chain to be taken."""
    rng = np.random.default_rng(seed)
    tree = Hst.of(Euclidean(rng.integers(0, 12, (n, 2)).astype(float) ** 2), levels=levels, random_state=seed)
    counts = tree.sums(rng.integers(0, 4, n))
    parent, gap, stands_for = uncollapsed(tree)
    full = replace(tree, parent=parent)
    assert len(parent) >= tree.n_nodes
    found = stands_for[subtree_search(full, counts[stands_for] * gap, k)]
    assert sorted(found.tolist()) == subtree_search(tree, counts * tree.gap, k).tolist()


def three_towns():
    rng = np.random.default_rng(5)
    return Euclidean(np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 40, axis=0) + rng.random((120, 2)))


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
def test_seeds_of_three_towns_are_one_in_each(objective):
    space = three_towns()
    for seed in range(20):
        assert sorted((hst(space, 3, objective=objective, random_state=seed) // 40).tolist()) == [0, 1, 2]


def test_weights_decide_where_seeds_go():
    space = three_towns()
    weights = np.zeros(120)
    weights[40:80] = 0.25
    for seed in range(20):
        assert set((hst(space, 2, weights=weights, random_state=seed) // 40).tolist()) == {1}


def test_the_k_means_score_prefers_the_wide_cell():
    """Cells of 5 at radius r and 2 at radius 2r: 5 < 4 r counts, but 5 < 8 squared: the two objectives part."""
    tree = made([2, 2, 2])
    gap = np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    counts = np.array([7, 2, 5, 1, 1, 3, 2])
    scores = {power: counts * gap**power for power in (1, 2)}
    assert subtree_search(tree, scores[1], 1).tolist() == [2]
    assert subtree_search(tree, scores[2], 1).tolist() == [1]


@pytest.mark.parametrize("k", range(1, 13))
def test_there_are_always_k_different_seeds(k):
    """Twelve points at eight places, in leaves of several places: members and duplicates fill up."""
    points = [[0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [50.0], [51.0], [52.0], [53.0], [53.0], [53.0]]
    graph = Graph.from_edges([[i, i + 1] for i in range(11)], lengths=[0, 0, 1, 1, 1, 47, 1, 1, 1, 0, 0])
    for space in (Euclidean(points), Precomputed(Euclidean(points).distances(np.arange(12))), graph):
        for levels in (1, 4, 10):
            seeds = hst(space, k, levels=levels, random_state=k)
            assert (seeds.dtype, len(set(seeds.tolist()))) == (np.int64, k)
            if k == 8:
                assert len(set(space.locations()[seeds].tolist())) == 8  # all places, before any is taken twice


def test_a_universe_of_one_place_still_gives_k_points():
    space = Euclidean(np.zeros((5, 2)))
    assert sorted(hst(space, 5).tolist()) == [0, 1, 2, 3, 4]
    assert hst(space, 1).tolist() == [0]


def test_missing_leaves_are_filled_where_the_counts_are():
    """Two leaves of 50 places each, all weight on the second: the third seed is one of its members."""
    space = Euclidean(np.concatenate([np.linspace(0, 1, 50), np.linspace(100, 101, 50)])[:, None])
    tree = Hst.of(space, levels=2, random_state=1)
    assert len(tree.leaves) == 2
    counts = tree.sums(np.repeat([0, 1], 50))
    for seed in range(20):
        seeds = seeds_from_counts(tree, counts, 3, np.random.default_rng(seed))
        assert np.count_nonzero(seeds >= 50) == 2


def test_noisy_counts_of_any_sign_and_a_root_that_is_not_looked_at():
    tree = Hst.of(three_towns(), random_state=2)
    noisy = np.random.default_rng(0).normal(0, 100, tree.n_nodes)
    for k in (1, 5, 119, 120):
        found = []
        for root in (-1e9, 0.0, 1e9):
            noisy[0] = root
            found.append(seeds_from_counts(tree, noisy, k, np.random.default_rng(1)).tolist())
        assert len(set(found[0])) == k
        assert found[0] == found[1] == found[2]
    assert len(seeds_from_counts(tree, np.full(tree.n_nodes, -3.0), 120)) == 120


def test_one_public_name_and_the_same_seeds_for_the_same_state():
    space = three_towns()
    assert kveil.seeding.hst is hst
    first, again = (hst_seeds(space, 5, np.ones(120, dtype=np.int64), np.random.default_rng(3)) for _ in range(2))
    assert first.tolist() == again.tolist() == hst(space, 5, random_state=3).tolist()


@pytest.mark.parametrize(
    ("n_clusters", "more", "word"),
    [
        (0, {}, "n_clusters"),
        (121, {}, "120"),
        (2.0, {}, "n_clusters"),
        (2, {"objective": "k-medians"}, "objective"),
        (2, {"weights": np.ones(3)}, "weights"),
        (2, {"weights": np.full(120, np.nan)}, "finite"),
        (2, {"weights": -np.ones(120)}, ">= 0"),
        (2, {"weights": np.zeros(120)}, "not all"),
        (2, {"weights": ["a"] * 120}, "weights"),
        (2, {"levels": 0}, "levels"),
    ],
)
def test_what_cannot_be_seeded_is_refused_in_words(n_clusters, more, word):
    with pytest.raises(InvalidValue, match=word):
        hst(three_towns(), n_clusters, **more)
