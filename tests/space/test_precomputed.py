"""Distance matrices and functions: what is kept, what is rounded, what is refused."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Metric, Precomputed
from kveil.errors import InvalidType, InvalidValue


def line(*places: float) -> np.ndarray:
    return np.abs(np.subtract.outer(places, places))


def test_whole_numbers_are_kept_and_int32_is_not_copied():
    matrix = line(0, 3, 10).astype(np.int32)
    universe = Precomputed(matrix)
    assert np.shares_memory(universe.matrix, matrix)
    assert matrix.flags.writeable  # the caller's array stays as it was
    for dtype in (np.uint8, np.int64, np.uint64, np.float32, np.float64):
        other = Precomputed(matrix.astype(dtype))
        assert other.step == 1.0
        assert np.array_equal(other.matrix, matrix)
        assert other.identity() == universe.identity()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.sampled_from([1e-290, 1e-6, 1.0, 1e12, 1e300]), st.integers(0, 2**32 - 1))
def test_fractions_are_rounded_up_and_stay_a_metric(n, scale, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    matrix = np.linalg.norm(points[:, None] - points, axis=2) * scale
    universe = Precomputed(matrix)
    apart = universe.matrix.astype(np.int64)
    assert (apart[:, None, :] <= apart[:, :, None] + apart[None, :, :]).all()
    assert (apart * universe.step >= matrix).all()
    assert (apart * universe.step <= matrix + universe.step).all()
    assert matrix.max() * 0.999 <= universe.diameter * universe.step <= matrix.max() * 1.000001
    assert universe.diameter <= 2**24


def test_numbers_past_the_range_get_a_coarser_step():
    universe = Precomputed(line(0, 2**40, 2**41 + 5))
    assert universe.step > 1
    assert abs(universe.diameter * universe.step / (2**41 + 5) - 1) < 1e-6


def test_float_noise_in_symmetry_and_diagonal_is_taken_and_the_result_is_symmetric():
    matrix = line(0.0, 0.3, 0.7)
    matrix[0, 1] *= 1 + 1e-13
    matrix[2, 2] = 1e-14
    universe = Precomputed(matrix)
    assert np.array_equal(universe.matrix, universe.matrix.T)
    assert not np.diagonal(universe.matrix).any()


def test_truncation_caps_distances_and_admits_infinity():
    whole = Precomputed(line(0, 3, 10).astype(np.int32), truncate=4)
    assert whole.distances([0]).tolist() == [[0, 3, 4]]
    apart = np.array([[0.0, 2.0, np.inf], [2.0, 0.0, np.inf], [np.inf, np.inf, 0.0]])
    universe = Precomputed(apart, truncate=9)
    assert (universe.distances([2]) * universe.step).tolist() == [[9.0, 9.0, 0.0]]
    assert universe.diameter * universe.step == 9.0
    for cap, trouble in [
        (0, InvalidValue),
        (-1.0, InvalidValue),
        (np.inf, InvalidValue),
        (np.nan, InvalidValue),
        ("4", InvalidType),
    ]:
        with pytest.raises(trouble, match="truncate"):
            Precomputed(apart, truncate=cap)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[0.0, np.nan], [np.nan, 0.0]], "NaN or a negative"),
        ([[0.0, np.inf], [np.inf, 0.0]], "Pass truncate"),
        ([[0, -1], [-1, 0]], "NaN or a negative"),
        ([[0, 1], [2, 0]], "not symmetric"),
        (np.array([[0, 1], [2, 0]], dtype=np.uint8), "not symmetric"),
        ([[0.0, 1.0], [1.001, 0.0]], "not symmetric"),
        ([[1, 1], [1, 0]], "diagonal"),
        ([[0, 1, 2], [1, 0, 3]], "square"),
        ([0, 1], "square"),
        (np.empty((0, 0)), "at least one point"),
    ],
)
def test_what_is_no_matrix_of_distances_is_refused(matrix, said):
    with pytest.raises(InvalidValue, match=said):
        Precomputed(matrix)


@pytest.mark.parametrize("pair", [(0, 599), (299, 300), (255, 256), (10, 20)])
def test_one_wrong_distance_of_many_is_found_in_either_half(pair):
    """Squares of the matrix are looked at one after another: none is left out."""
    matrix = np.abs(np.subtract.outer(np.arange(600), np.arange(600)))
    halves = Precomputed(matrix / 2)
    assert (halves.matrix * halves.step == matrix / 2).all()
    for wrong in (pair, pair[::-1]):
        broken = matrix.copy()
        broken[wrong] += 1
        with pytest.raises(InvalidValue, match="not symmetric"):
            Precomputed(broken)


def test_an_infinity_on_one_side_only_is_not_symmetric():
    with pytest.raises(InvalidValue, match="not symmetric"):
        Precomputed([[0.0, np.inf], [1.0, 0.0]], truncate=3)


@pytest.mark.parametrize("matrix", [[["a"]], [[True]], [[1j]], None])
def test_other_types_are_refused(matrix):
    with pytest.raises(InvalidType, match="matrix must hold numbers"):
        Precomputed(matrix)


def test_a_broken_triangle_inequality_is_said_and_taken():
    matrix = line(*range(500)).astype(np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Precomputed(matrix)
        Precomputed(np.sqrt(matrix) * 0.1)
    with pytest.warns(UserWarning, match="no metric"):
        universe = Precomputed(matrix.astype(np.int64) ** 2)
    assert universe.nearest([0, 499])[0].tolist() == [0] * 250 + [1] * 250


def test_one_point_is_a_universe():
    universe = Precomputed([[0]])
    assert (universe.diameter, universe.n_points) == (0, 1)
    assert universe.nearest([0])[2].tolist() == [0]


def test_a_function_is_called_on_the_points_once_a_pair_and_then_forgotten():
    calls = []

    def apart(a, b):
        calls.append((a, b))
        return abs(len(a) - len(b)) / 4

    universe = Metric(["one", "three", "eleven"], apart)
    assert (universe.distances([0]) * universe.step).tolist() == [[0.0, 0.5, 0.75]]
    assert len(calls) == 3 + 3 + 2  # pairs, each with itself, neighbours turned round
    universe.locate([0, 5])
    assert len(calls) == 8
    assert universe.points is None


@pytest.mark.parametrize(
    ("function", "trouble", "said"),
    [
        (lambda a, b: a - b, InvalidValue, "not symmetric"),
        (lambda a, b: -1.0, InvalidValue, "negative"),
        (lambda a, b: 1.0, InvalidValue, "diagonal"),
        (lambda a, b: float("nan"), InvalidValue, "not symmetric|NaN"),
        (lambda a, b: 0.0 if a == b else float("inf"), InvalidValue, "Pass truncate"),
        (lambda a, b: None, InvalidType, "return a number"),
        (lambda a, b: "far", InvalidType, "return a number"),
        ("euclidean", InvalidType, "callable"),
    ],
)
def test_functions_that_are_no_distance_are_refused(function, trouble, said):
    with pytest.raises(trouble, match=said):
        Metric([0.0, 1.0, 3.0], function)


def test_a_function_serves_small_universes_only():
    for points in ([], range(4097)):
        with pytest.raises(InvalidValue, match="1 to 4096"):
            Metric(points, lambda a, b: abs(a - b))
    with pytest.raises(InvalidType, match="sequence"):
        Metric(7, lambda a, b: 0)
