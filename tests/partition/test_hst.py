"""The tree against the procedure as it is written down: cells as sets, every level, no collapsing, nothing compiled."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.partition import divide, hst
from kveil.partition.hst import Hst
from kveil.space.matrix import Precomputed
from kveil.space.vectors import Euclidean, Manhattan


def literal_cells(apart, perm, radii, most):
    """Cells in the order they arise, each with its parent and the highest and lowest level where it is one cell.

    apart: distances of all pairs; radii: of levels 0 to L - 1; most: centres a cell may open.
    """
    cells = [(frozenset(perm), None, len(radii), len(radii))]
    level_above = [0]
    for level in reversed(range(len(radii))):
        now = []
        for number in level_above:
            members = cells[number][0]
            if not any(apart[u, v] for u in members for v in members):
                continue  # one location
            left = [u for u in perm if u in members]
            carved = []
            while left and len(carved) < most:
                ball = [u for u in left if apart[left[0], u] <= radii[level]]
                carved.append((left[0], ball))
                left = [u for u in left if u not in ball]
            for u in left:
                min(carved, key=lambda cell: apart[cell[0], u])[1].append(u)
            if len(carved) == 1:
                cells[number] = (members, cells[number][1], cells[number][2], level)
                now.append(number)
                continue
            for _, ball in carved:
                cells.append((frozenset(ball), number, level, level))
                now.append(len(cells) - 1)
        level_above = sorted(now)
    return cells


def cells_of(tree):
    """The same of a tree, with all points of every location."""
    named = tree.space.locations()
    found = []
    for node in range(tree.n_nodes):
        members = set(tree.points(node).tolist())
        points = frozenset(np.flatnonzero(np.isin(named, list(members))).tolist())
        cut_at = tree.n_levels - round(np.log2(tree.factor * tree.diameter / tree.gap[node])) if node else tree.n_levels
        found.append((points, int(tree.parent[node]) if node else None, cut_at, int(tree.level[node])))
    return found


def same_as_literal(space, levels, seed, most=hst.MOST_CHILDREN, beta=None):
    tree = Hst.of(space, levels=levels, beta=beta, random_state=seed)
    perm = np.random.default_rng(seed).permutation(space.n_points).tolist()
    radii = [tree.factor * tree.diameter / 2 ** (levels - level) for level in range(levels)]
    apart = space.distances(np.arange(space.n_points))
    return cells_of(tree) == literal_cells(apart, perm, radii, most)


def few_points(seed, n, d):
    """Points with many ties and duplicates."""
    return np.random.default_rng(seed).integers(0, 6, (n, d)).astype(float)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 3), st.integers(1, 6), st.sampled_from([None, 1.0]))
def test_the_tree_is_the_literal_one(seed, n, d, levels, beta):
    points = few_points(seed, n, d)
    for space in (Euclidean(points), Manhattan(points), Precomputed(Euclidean(points).distances(np.arange(n)))):
        assert same_as_literal(space, levels, seed, beta=beta)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_cell_with_too_many_children_gives_the_rest_to_the_nearest(monkeypatch, most):
    monkeypatch.setattr(hst, "MOST_CHILDREN", most)
    points = np.random.default_rng(most).random((40, 3))
    for space in (Euclidean(points), Manhattan(points), Precomputed(Manhattan(points).distances(np.arange(40)))):
        assert same_as_literal(space, 4, 7, most)
        assert Hst.of(space, random_state=7).n_children.max() <= most


def test_compiled_carving_of_large_cells_is_the_same_as_row_by_row(monkeypatch):
    """Enough points for several blocks, closing of gaps, and a cap that is reached."""
    monkeypatch.setattr(hst, "_diameter", lambda space, anywhere: 110_000)  # a matrix knows it exactly, points do not
    points = np.random.default_rng(0).random((1500, 16))
    space = Manhattan(points, bits=14)  # sums that single precision holds exactly, so that ties are ties to both
    fast, slow = (Hst.of(s, random_state=3) for s in (space, Precomputed(space.distances(np.arange(1500)))))
    assert fast.n_children.max() == hst.MOST_CHILDREN
    for name in ("parent", "level", "start", "stop", "members", "leaf"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def test_distances_that_single_precision_cannot_tell_apart_are_decided_in_integers():
    """Squared distances of 2**52 and more that differ by less than a millionth of a millionth from the squared radius."""
    center, inside, outside = [0, 0], [2**26 - 4, 0], [2**26 - 4, 1]
    codes = np.array([center, inside, outside], dtype=np.int32)
    child, far = np.zeros(3, dtype=np.int32), np.zeros(3)
    rows = np.arange(3)
    hst._kernels.carve_vectors(codes, rows, np.array([0]), np.array([3]), (2**26 - 4) ** 2, False, 256, child, far)
    assert child.tolist() == [0, 0, 1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 12))
def test_children_partition_their_parent_and_keep_the_radius(seed, n, leaf_size):
    space = Euclidean(few_points(seed, n, 3))
    tree = Hst.of(space, leaf_size=leaf_size, random_state=seed)
    named = space.locations()
    assert (tree.parent[1:] < np.arange(1, tree.n_nodes)).all()
    for node in range(tree.n_nodes):
        children = tree.children(node)
        members = tree.points(node)
        assert np.array_equal(tree.parent[children], np.full(len(children), node))
        if len(children):
            assert len(children) > 1
            assert len(members) > leaf_size
            assert np.array_equal(np.sort(np.concatenate([tree.points(child) for child in children])), np.sort(members))
        within = space.distances(np.arange(n), members).max(axis=1)
        assert within.min() <= tree.radius[node] <= tree.gap[node]
    assert np.array_equal(tree.leaf, tree.leaf[named])  # duplicates share a leaf
    for point, leaf in enumerate(tree.leaf.tolist()):
        assert named[point] in tree.points(leaf)
        assert tree.representative[leaf] in tree.points(leaf)
    assert (tree.representative[tree.n_children > 0] == -1).all()


def test_a_leaf_of_several_places_is_represented_by_its_medoid():
    points = np.array([[0.0], [1.0], [2.0], [2.0], [2.0], [4.0]])
    for space in (Euclidean(points), Manhattan(points), Precomputed(Euclidean(points).distances(np.arange(6)))):
        tree = Hst.of(space, leaf_size=9)
        assert (tree.n_nodes, tree.height, tree.representative.tolist()) == (1, 0, [2])


def test_a_large_leaf_is_judged_by_some_of_its_members():
    space = Euclidean(np.random.default_rng(1).random((3000, 2)))
    tree = Hst.of(space, leaf_size=3000, random_state=2)
    sums = space.distances(np.arange(3000)).sum(axis=1, dtype=np.int64)
    assert sums[tree.representative[0]] < 1.1 * sums.min()


def test_many_columns_are_projected_and_near_points_stay_together(monkeypatch):
    rng = np.random.default_rng(4)
    middles = rng.random((5, 200))
    points = np.repeat(middles, 20, axis=0) + 0.001 * rng.random((100, 200))
    tree = Hst.of(Euclidean(points), levels=3, random_state=1)
    assert (tree.leaf.reshape(5, 20) == tree.leaf.reshape(5, 20)[:, :1]).all()
    assert len(np.unique(tree.leaf)) == 5
    seen = []
    monkeypatch.setattr(divide, "_by_codes", lambda codes, *rest, **more: seen.append(codes.shape) or (lambda *a: a[4].fill(0)))
    Hst.of(Euclidean(points))
    assert seen == [(100, divide.MOST_COLUMNS)]


@pytest.mark.parametrize("points", [[[3.0]], [[3.0], [3.0], [3.0]]])
def test_a_universe_of_one_place_is_a_root(points):
    tree = Hst.of(Euclidean(points))
    assert (tree.n_nodes, tree.height, tree.leaf.tolist()) == (1, 0, [0] * len(points))
    assert tree.representative.tolist() == [0]


def test_trees_repeat_with_their_random_state_and_cannot_be_changed():
    space = Euclidean(np.random.default_rng(0).random((50, 2)))
    first, second, other = (Hst.of(space, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.members, second.members)
    assert first.factor == second.factor != other.factor
    assert 0.75 <= other.factor <= 1.5
    with pytest.raises(ValueError, match="read-only"):
        first.parent[0] = 3
    assert copy.deepcopy(first).space is space
    assert np.array_equal(pickle.loads(pickle.dumps(first)).leaf, first.leaf)


@pytest.mark.parametrize(
    "wrong",
    [{"levels": 0}, {"levels": 2.5}, {"levels": 99}, {"leaf_size": 0}, {"beta": 2.0}, {"beta": "paper"}, {"beta": float("nan")}],
)
def test_parameters_that_make_no_tree_are_refused(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Hst.of(Euclidean([[0.0], [1.0]]), **wrong)
