"""Points with coordinates: integer distances, equal to Python's integers for any blocking."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Euclidean, Manhattan
from kveil.errors import GridOverflow, InvalidType, InvalidValue
from kveil.space import diameter, finder, vectors


def slow_distances(universe) -> np.ndarray:
    """In Python integers: ceil of the root, or the sum of absolute differences, of codes."""
    rows = [[int(x) for x in row] for row in universe.codes]

    def apart(a: list[int], b: list[int]) -> int:
        if isinstance(universe, Manhattan):
            return sum(abs(x - y) for x, y in zip(a, b, strict=True))
        square = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        return isqrt(square - 1) + 1 if square else 0

    return np.array([[apart(a, b) for b in rows] for a in rows])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([Euclidean, Manhattan]),
    st.integers(1, 25),
    st.integers(1, 6),
    st.sampled_from([2, 8, 16, 23]),
    st.sampled_from([1e-300, 1e-3, 1.0, 1e9, 1e290]),
    st.integers(0, 2**32 - 1),
)
def test_distances_equal_python_integers_and_obey_the_triangle_inequality(kind, n, d, bits, scale, seed):
    rng = np.random.default_rng(seed)
    corners = rng.random() < 0.3
    points = (rng.choice([-1.0, 1.0], (n, d)) if corners else rng.normal(size=(n, d))) * scale + scale * rng.normal()
    universe = kind(points, bits=bits)
    apart = universe.distances(np.arange(n)).astype(np.int64)
    assert np.array_equal(apart, slow_distances(universe))
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :]).all()
    assert apart.max() <= universe.diameter
    assert np.abs(universe.codes).max() <= 2 ** (bits - 1)


@pytest.mark.parametrize("kind", [Euclidean, Manhattan])
def test_distances_are_those_of_the_points_up_to_rounding(kind):
    points = np.random.default_rng(1).normal(size=(60, 5))
    universe = kind(points)
    away = points[:, None] - points
    true = np.linalg.norm(away, axis=2, ord=1 if kind is Manhattan else 2)
    assert np.abs(universe.distances(np.arange(60)) * universe.step - true).max() <= 6 * universe.step


def test_ceilings_keep_the_triangle_inequality_where_floors_would_break_it():
    universe = Euclidean(np.array([[0, 0], [1, 1], [3, 3], [65000, 0]]))
    assert universe.step == 1.0
    assert universe.distances([0, 1], [1, 2]).tolist() == [[2, 5], [0, 3]]  # 5 <= 2 + 3; floors: 4 > 1 + 2


def test_roots_are_right_up_to_the_largest_squares():
    """Just below 2**53 a float root may round down to an integer whose square is too small."""
    top = 2**25 - 1
    points = np.array([[-top, -top], [top, top], [-top, top], [1 - top, top], [top, top - 1], [0, 0]], dtype=np.float64)
    universe = Euclidean(points, bits=26)
    assert universe.step == 1.0
    assert np.array_equal(universe.distances(np.arange(6)), slow_distances(universe))
    squares = np.concatenate([np.arange(2**25, 2**25 + 200) ** 2, np.arange(2**26 - 200, 2**26 + 1) ** 2])
    for change in (-1, 0, 1):
        asked = (squares + change).astype(np.float64)
        out = np.empty((1, len(asked)), dtype=np.int32)
        vectors.kernels.ceil_roots(np.zeros((1, len(asked))), np.zeros(1), asked, out, 0, 0)
        assert out[0].tolist() == [isqrt(int(square) - 1) + 1 for square in asked]


@pytest.mark.parametrize("kind", [Euclidean, Manhattan])
@pytest.mark.parametrize("tile", [1, 7, 64])
def test_blocks_do_not_matter(kind, tile, monkeypatch):
    universe = kind(np.random.default_rng(2).normal(size=(150, 7)))
    whole, near = universe.distances(np.arange(150)), universe.nearest([3, 1, 4, 15, 92])
    monkeypatch.setattr(vectors, "TILE", tile)
    monkeypatch.setattr("kveil.space.dense.BLOCK", 5 * tile)
    assert np.array_equal(universe.distances(np.arange(150)), whole)
    for one, other in zip(universe.nearest([3, 1, 4, 15, 92]), near, strict=True):
        assert np.array_equal(one, other)


def test_whole_numbers_that_fit_stay_whole():
    pixels = np.random.default_rng(3).integers(0, 256, (30, 9))
    universe = Manhattan(pixels)
    assert np.array_equal(universe.distances([0]) * universe.step, np.abs(pixels - pixels[0]).sum(axis=1)[None])


@pytest.mark.parametrize("kind", [Euclidean, Manhattan])
def test_one_point_and_equal_points_have_diameter_0(kind):
    for points in ([[3.0, 4.0]], [[3.0, 4.0]] * 5):
        universe = kind(points)
        assert universe.diameter == 0
        assert not universe.distances(0).any()
        assert not universe.locations().any()
        assert universe.nearest([0])[2].tolist() == [0] * len(points)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([Euclidean, Manhattan]), st.sampled_from([1, 2, 3, 8, 9]), st.booleans(), st.integers(0, 2**32 - 1))
def test_coordinates_stand_for_the_nearest_point_ties_to_the_smallest(kind, d, is_large, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6 if d < 3 else 3, (600 if is_large else 50, d))  # duplicates and many ties
    rows = rng.integers(-8, 40, (80, d)) / 4
    universe = kind(points)
    away = np.clip(rows, points.min(axis=0), points.max(axis=0))[:, None] - points
    apart = np.abs(away).sum(axis=2) if kind is Manhattan else (away**2).sum(axis=2)
    assert np.array_equal(universe.locate(rows), apart.argmin(axis=1))
    assert np.array_equal(universe.locate(points), universe.locations())


def test_the_tree_and_the_comparison_with_all_points_agree(monkeypatch):
    rng = np.random.default_rng(4)
    points, rows = rng.integers(0, 40, (3000, 2)), rng.integers(0, 80, (4000, 2)) / 2
    by_tree = Euclidean(points)
    found = by_tree.locate(rows)
    assert by_tree._finder.tree is not None
    monkeypatch.setattr(finder, "MOST_AXES", 0)
    compared = Euclidean(points)
    assert np.array_equal(compared.locate(rows), found)
    assert compared._finder.tree is None


@pytest.mark.parametrize("kind", [Euclidean, Manhattan])
def test_broken_rows_are_in_the_middle_and_other_rows_do_not_notice(kind):
    rng = np.random.default_rng(5)
    universe, rows = kind(rng.normal(size=(300, 3))), rng.normal(size=(3000, 3))
    whole = universe.locate(rows)
    rows[[0, 1500, 2999], [0, 1, 2]] = np.nan, np.inf, -np.inf
    rows[7] = 1e308
    with np.errstate(all="raise"):
        found = universe.locate(rows)
    middle = universe.points.min(axis=0) / 2 + universe.points.max(axis=0) / 2
    assert found[[0, 1500, 2999]].tolist() == universe.locate([middle] * 3).tolist()
    same = np.setdiff1d(np.arange(3000), [0, 7, 1500, 2999])
    assert np.array_equal(found[same], whole[same])
    assert np.array_equal(universe.locate(rows[100:103]), found[100:103])


@pytest.mark.parametrize("kind", [Euclidean, Manhattan])
def test_points_that_are_none_are_refused(kind):
    for points, trouble in [
        ([[np.nan, 0.0]], InvalidValue),
        ([[np.inf, 0.0]], InvalidValue),
        ([[1e301, 0.0]], InvalidValue),
        ([1.0, 2.0], InvalidValue),
        (np.empty((0, 2)), InvalidValue),
        (np.empty((2, 0)), InvalidValue),
        ([["a"]], InvalidType),
        ([[1j]], InvalidType),
        (None, InvalidType),
    ]:
        with pytest.raises(trouble, match="points"):
            kind(points)


def test_a_grid_too_fine_for_exact_distances_is_refused_with_the_widest_that_fits():
    with pytest.raises(GridOverflow, match="bits=21 or fewer"):
        Euclidean(np.zeros((2, 1000)), bits=22)
    with pytest.raises(GridOverflow, match="bits=20 or fewer"):
        Manhattan(np.zeros((2, 1000)), bits=21)
    assert Euclidean(np.zeros((2, 1000)), bits=21).bits == 21
    assert Manhattan(np.zeros((2, 1000)), bits=20).bits == 20
    for bits, trouble in [(1, InvalidValue), (27, InvalidValue), (8.0, InvalidType), (True, InvalidType), ("8", InvalidType)]:
        with pytest.raises(trouble, match="bits"):
            Euclidean([[0.0]], bits=bits)


def test_the_points_are_copied():
    points = np.array([[0.0], [1.0]])
    universe = Euclidean(points)
    points[:] = 9.0
    assert universe.points.tolist() == [[0.0], [1.0]]


def test_diameter_is_the_diagonal_of_the_public_box():
    assert diameter([0, 0, 0], [2, 3, 6]) == 7.0
    assert diameter([0, 0, 0], [2, 3, 6], norm=1) == 11.0
    assert diameter(0.0, 5.0) == 5.0
    for low, high in [([0], [1, 2]), ([1], [0]), ([np.nan], [1]), ([0], [np.inf])]:
        with pytest.raises(InvalidValue, match="low and high"):
            diameter(low, high)
    with pytest.raises(InvalidValue, match="norm"):
        diameter(0, 1, norm=3)
