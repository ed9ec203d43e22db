"""Statistics of cells: what they are by hand, and that neither blocks nor order matter."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.questions import _kernels, frame
from kveil.questions.cells import TOP, Lengths, LengthsByCenter, Residuals, Squares, Stage, Whole
from kveil.questions.frame import AXIS_BITS, Frame
from kveil.space.euclidean import Centers

TOP_CODE = 2**19 - 1


def a_frame(rng, d, p=None):
    ratio = None if rng.random() < 0.5 else rng.uniform(0.001, 1.0, d)
    middle = rng.integers(-1000, 1000, d)
    radius = int(rng.integers(1, 2 * TOP_CODE))
    if p is None:
        return Frame(ratio, middle, radius)
    axes = np.rint(np.linalg.qr(rng.standard_normal((d, p)))[0] * 2**AXIS_BITS).astype(np.int64)
    return Frame(ratio, middle, radius, axes, int(rng.integers(1, radius + 1)))


def questions(rng, d):
    """Every question about cells."""
    p = int(rng.integers(1, d + 1))
    seen = a_frame(rng, d, p)
    k = int(rng.integers(1, 5))
    edges = np.sort(rng.integers(0, 2**42, 39))[::-1].copy()
    yield Whole(a_frame(rng, d))
    yield Lengths(a_frame(rng, d), edges)
    centers = Centers(rng.integers(-TOP_CODE, TOP_CODE, (k, d)).astype(np.float64), None)
    yield Lengths(a_frame(rng, d), edges, centers)
    yield LengthsByCenter(a_frame(rng, d), edges, centers)
    yield Squares(a_frame(rng, d))
    half = rng.integers(1, 2**20, p)
    order = rng.integers(0, p, 6)
    kept = np.unique(rng.integers(0, 8, 3))
    yield Stage(seen, half, order, kept, 3)
    places = Centers(rng.integers(-TOP_CODE, TOP_CODE, (k, p)).astype(np.float64), None)
    radii = rng.integers(1, 2**20, k)
    yield Residuals(seen, places, "projected", "projected", places.codes.astype(np.int64), radii)
    zeros = np.zeros((k, d), dtype=np.int64)
    yield Residuals(seen, places, "projected", "centred", zeros, radii)
    yield Residuals(seen, centers, "measured", "measured", centers.codes.astype(np.int64), radii)
    some = replace(seen, columns=np.flatnonzero(rng.random(d) < 0.5))
    yield Residuals(some, centers, "measured", "measured", centers.codes.astype(np.int64), radii)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 100]))
def test_neither_blocks_nor_order_matter(seed, block):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-TOP_CODE, TOP_CODE, (150, 3)).astype(np.int32)
    for question in questions(rng, 3):
        whole = question.raw(rows)
        parts = [question.raw(part) for part in np.array_split(rng.permutation(rows), 5)]
        assert all(np.array_equal(sum(part[i] for part in parts), whole[i]) for i in range(len(whole)))
        saved, frame.BLOCK = frame.BLOCK, block
        again = question.raw(rows)
        frame.BLOCK = saved
        assert all(np.array_equal(a, b) for a, b in zip(again, whole, strict=True))


def test_a_tree_counts_rows_where_they_lie():
    """Halvings of x, y, x of the square [-8, 8]^2: eight cells, 4 wide and 8 high."""
    plain = Frame(None, np.zeros(2, dtype=np.int64), 100)
    rows = np.array([[-8, -8], [-5, 7], [-3, -1], [3, 1], [7, 8], [8, 8], [4, 0]], dtype=np.int16)
    (counts,) = Stage(plain, np.array([8, 8]), np.array([0, 1, 0]), np.array([0]), 3).raw(rows)
    assert counts.tolist() == [1, 1, 1, 0, 0, 0, 1, 3]


def test_children_of_dropped_cells_are_not_counted():
    plain = Frame(None, np.zeros(1, dtype=np.int64), 100)
    rows = np.arange(-8, 8, dtype=np.int16)[:, None]
    (counts,) = Stage(plain, np.array([8]), np.array([0, 0, 0]), np.array([0, 3]), 1).raw(rows)
    assert counts.tolist() == [2, 2, 2, 2]


def test_distances_fall_into_descending_bins():
    plain = Frame(None, np.zeros(2, dtype=np.int64), 100)
    edges = np.array([100, 25, 4])
    (counts,) = Lengths(plain, edges).raw(np.array([[0, 0], [2, 0], [3, 4], [6, 8], [8, 8]], dtype=np.int16))
    assert counts.tolist() == [1, 1, 1, 2]


def test_distances_by_centre_add_up_to_those_of_all_rows():
    """Two centres, worked by hand; and over many rows each bin is the sum over centres."""
    plain, edges = Frame(None, np.zeros(2, dtype=np.int64), 100), np.array([100, 25, 4])
    near = Centers(np.array([[0.0, 0.0], [50.0, 0.0]]), None)
    (counts,) = LengthsByCenter(plain, edges, near).raw(np.array([[2, 0], [3, 4], [50, 0], [50, 10], [50, 11]], dtype=np.int16))
    assert counts.reshape(2, 4).tolist() == [[0, 0, 1, 1], [1, 1, 0, 1]]
    rows = np.random.default_rng(0).integers(-30, 80, (300, 2)).astype(np.int16)
    (by_center,), (together,) = (kind(plain, edges, near).raw(rows) for kind in (LengthsByCenter, Lengths))
    assert by_center.reshape(2, 4).sum(axis=0).tolist() == together.tolist()


def test_the_sum_of_a_block_of_long_rows_is_exact():
    """All on one side: single floats would round it, and blocks would round it differently."""
    rows = np.random.default_rng(0).integers(2**22, 2**23, (3000, 3)).astype(np.int32)
    (n,), total = Whole(Frame(None, np.zeros(3, dtype=np.int64), 2**25)).raw(rows)
    assert (n, total.tolist()) == (3000, rows.astype(np.int64).sum(axis=0).tolist())


@pytest.mark.parametrize("radius", [1, 5, 1000])
def test_residuals_are_clipped_and_scaled(radius):
    plain = Frame(None, np.zeros(2, dtype=np.int64), 10**6)
    center = Centers(np.zeros((1, 2)), None)
    question = Residuals(plain, center, "measured", "measured", np.array([[10, 0]]), np.array([radius]))
    counts, sums = question.raw(np.array([[13, 4]], dtype=np.int16))
    assert counts.tolist() == [1]
    expected = np.array([3.0, 4.0]) * TOP / max(radius, 5)
    assert np.all(np.abs(sums[0]) <= expected + 1e-9)
    assert np.all(np.abs(sums[0] - expected) < (0.35 * expected if radius < 5 else 1))


def test_sums_of_so_many_rows_that_they_pass_32_bits_are_exact():
    """All at the clip radius on one side of one base, in one block: a sum that wrapped would move by 2**32 with one row."""
    plain, center = Frame(None, np.zeros(2, dtype=np.int64), 10**6), Centers(np.zeros((1, 2)), None)
    question = Residuals(plain, center, "measured", "measured", np.zeros((1, 2), dtype=np.int64), np.array([1000]))
    (n,), sums = question.raw(np.tile(np.array([[1000, 0]], dtype=np.int32), (40_000, 1)))
    assert (n, sums.tolist()) == (40_000, [[40_000 * TOP, 0]])


@given(st.lists(st.integers(-(2**28) + 1, 2**28 - 1), min_size=1, max_size=6), st.integers(1, 2**29), st.integers(-2, 2))
@settings(max_examples=1500, deadline=None)
def test_scaled_residuals_are_those_of_whole_numbers(row, radius, off):
    """Also where the quotient is just below, at or just above a whole number."""
    row[0] = max(min(radius * (row[0] % TOP) // TOP + off, 2**28 - 1), -(2**28) + 1)
    counts, sums = np.zeros(1, dtype=np.int64), np.zeros((1, len(row)), dtype=np.int64)
    bases, radii = np.zeros((1, len(row)), dtype=np.int64), np.array([radius])
    _kernels.add_residuals(np.array([row]), np.zeros(1, dtype=np.int32), bases, radii, TOP, counts, sums)
    square = sum(x * x for x in row)
    divisor = radius if square <= radius * radius else int(math.sqrt(square)) + 2
    assert sums[0].tolist() == [(1 if x >= 0 else -1) * (abs(x) * TOP // divisor) for x in row]


@pytest.mark.parametrize(("by", "of"), [("measured", "measured"), ("projected", "centred"), ("projected", "projected")])
def test_sums_in_some_columns_are_those_columns_of_all_sums(by, of):
    rng = np.random.default_rng(4)
    seen, rows = a_frame(rng, 5, 2), rng.integers(-TOP_CODE, TOP_CODE, (60, 5)).astype(np.int32)
    near = Centers(rng.integers(-TOP_CODE, TOP_CODE, (3, 2 if by == "projected" else 5)).astype(np.float64), None)
    bases, some = np.zeros((3, 2 if of == "projected" else 5), dtype=np.int64), np.array([1, 2, 4])
    asked = [Residuals(frame, near, by, of, bases, np.full(3, 2**18)) for frame in (seen, replace(seen, columns=some))]
    (counts, sums), (same, fewer) = (question.raw(rows) for question in asked)
    assert np.array_equal(counts, same)
    assert np.array_equal(fewer, sums if of == "projected" else sums[:, some])
