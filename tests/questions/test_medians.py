"""What one row adds to pulls, weights and costs of places: bounded in integers, and a function of that row alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.questions.frame import Frame
from kveil.questions.medians import MedianCosts, Pulls

REACH = 2**15


def frame(d):
    return Frame(None, np.zeros(d, dtype=np.int64), REACH)


@st.composite
def tables(draw):
    """Rows, a row to add, a place for it, centres, a smoothing and a top."""
    d, k, n = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(0, 6))
    numbers = st.integers(-REACH, REACH)
    table = draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n + 1 + k, max_size=n + 1 + k))
    codes = np.array(table, dtype=np.int64).reshape(-1, d)
    smoothing = draw(st.one_of(st.floats(1e-6, 1.0), st.floats(1.0, 1e6), st.just(2.0**40)))
    return codes[:n], codes[n], draw(st.integers(0, n)), codes[n + 1 :], smoothing, 2 ** draw(st.integers(1, 20))


@given(tables())
@settings(max_examples=300, deadline=None)
def test_a_row_anywhere_moves_one_cell_and_by_no_more_than_stated(table):
    rows, row, place, centers, smoothing, top = table
    question = Pulls(frame(rows.shape[1]), centers, smoothing, top)
    before, after = question.raw(rows), question.raw(np.insert(rows, place, row, axis=0))
    counts, pulled, weights = (more - less for more, less in zip(after, before, strict=True))
    assert counts.sum() == np.abs(counts).sum() == 1
    others = counts == 0
    assert not pulled[others].any()
    assert not weights[others].any()
    assert int((pulled**2).sum()) <= top**2  # in integers: no rounding can hide here
    assert 0 <= weights.min() <= weights.max() <= top


@given(tables())
@settings(max_examples=200, deadline=None)
def test_a_row_moves_the_costs_of_places_in_one_cell_within_twice_the_top(table):
    rows, row, place, centers, _, top = table
    away = np.random.default_rng(0).integers(-50, 51, (len(centers), 7, rows.shape[1]))
    radius = float(np.sqrt((away**2).sum(axis=2).max()))
    question = MedianCosts(frame(rows.shape[1]), centers, centers[:, None, :] + away, radius, top)
    (before,), (after,) = question.raw(rows), question.raw(np.insert(rows, place, row, axis=0))
    ranges = np.ptp(after - before, axis=1)
    assert np.count_nonzero((after - before).any(axis=1)) <= 1
    assert ranges.sum() <= 2 * top


def test_pulls_and_weights_by_hand():
    """x = (3, 4), z = 0, h = 12: q = 13. Pull 26 (3, 4)/13, weight 26 * 12/13."""
    counts, pulled, weights = Pulls(frame(2), np.zeros((1, 2), dtype=np.int64), 12.0, 26).raw(np.array([[3, 4]]))
    assert (counts.tolist(), pulled.tolist(), weights.tolist()) == ([1], [[6, 8]], [[24]])


def test_terms_are_cut_towards_0():
    _, pulled, weights = Pulls(frame(1), np.zeros((1, 1), dtype=np.int64), 1.0, 10).raw(np.array([[-1]]))
    assert (pulled.tolist(), weights.tolist()) == ([[-7]], [[7]])  # 10/sqrt(2) = 7.07


def test_costs_of_places_by_hand():
    """x = 10, z = 0, places -3, 0, 3: farther by 3, 0, -3, of at most 3; top 100."""
    question = MedianCosts(frame(1), np.zeros((1, 1), dtype=np.int64), np.array([[[-3], [0], [3]]]), 3.0, 100)
    assert question.raw(np.array([[10]]))[0].tolist() == [[100, 0, -100]]


def test_costs_of_places_are_relative_to_another_base_if_there_is_one():
    """x = 10 is nearest to the centre 9, and places -3, 0, 3 are farther than the base 1 by 4, 1, -2, of at most 4; top 100."""
    centers, places = np.array([[9], [-9]]), np.array([[[-3], [0], [3]]] * 2)
    question = MedianCosts(frame(1), centers, places, 4.0, 100, np.array([[1], [1]]))
    assert question.raw(np.array([[10]]))[0].tolist() == [[100, 25, -50], [0, 0, 0]]


@pytest.mark.parametrize("size", [1, 7, 4001])
def test_blocks_of_any_shape_add_up_to_the_same_integers(size):
    rng = np.random.default_rng(2)
    rows = rng.integers(-REACH, REACH, (4001, 5)).astype(np.int32)
    centers = rng.integers(-REACH, REACH, (6, 5))
    question = Pulls(frame(5), centers, 900.0, 2**20)
    whole = question.raw(rows)
    parts = [question.raw(np.asfortranarray(rows[i : i + size])) for i in range(0, len(rows), size)]
    for one, some in zip(whole, zip(*parts, strict=True), strict=True):
        assert np.array_equal(one, sum(some))


def test_the_divided_pull_is_weiszfelds_step():
    """One step from z is the mean of rows weighted by 1/q, up to the rounding of terms."""
    rng = np.random.default_rng(3)
    rows = rng.integers(-2000, 2000, (500, 3))
    question = Pulls(frame(3), np.array([[40, -30, 20]]), 100.0, 2**20)
    _, pulled, weights = question.raw(rows)
    q = np.sqrt(((rows - question.centers[0]) ** 2).sum(axis=1) + 100.0**2)
    expected = (rows / q[:, None]).sum(axis=0) / (1 / q).sum()
    assert np.allclose(question.centers[0] + pulled[0] / weights[0] * 100.0, expected, atol=math.sqrt(2000) * 1e-2)
