"""Midpoint cells: nested, disjoint, covering, all in integers; and how far rows lie from what they are measured from."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.partition.midpoints import Midpoints, ancestors, descendants, frontier, halving_order, is_antichain


def all_rows(half):
    return np.array(list(itertools.product(*(range(-h, h + 1) for h in half))), dtype=np.int64)


@st.composite
def small_cells(draw):
    half = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    order = draw(st.lists(st.integers(0, len(half) - 1), max_size=7))
    return Midpoints(tuple(half), tuple(order), draw(st.none() | st.integers(1, 12)))


def test_cells_by_hand():
    """x, y, x of [-8, 8] x [-4, 4]: code 101 is the right half, the lower half of it, and its right quarter."""
    cells = Midpoints.in_turn([8, 4], 3)
    assert cells.order == (0, 1, 0)
    assert cells.find(np.array([[5, -1], [-8, -4], [8, 4], [0, 0], [99, -99]])).tolist() == [0b101, 0b000, 0b111, 0b110, 0b101]
    low, high = cells.boxes(np.array([0b101]), 3)
    assert (low.tolist(), high.tolist()) == ([[4, -4]], [[8, -1]])
    assert cells.centers(np.array([0b101]), 3).tolist() == [[6, -3]]
    assert cells.find(np.array([[5, -1]]), 0).tolist() == [0]
    assert [cells.reach(level, "l1") for level in range(4)] == [12, 8, 6, 4]


def test_axes_are_halved_widest_first():
    assert halving_order(np.array([8, 4]), 4).tolist() == [0, 0, 1, 0]
    assert Midpoints.widest_first([8, 4], 4).order == (0, 0, 1, 0)
    assert Midpoints.widest_first([7, 7, 7], 5).order == Midpoints.in_turn([7, 7, 7], 5).order == (0, 1, 2, 0, 1)


def test_a_side_that_is_a_power_of_two_is_halved_by_shifts():
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**15), 2**15, (500, 3))
    cells = Midpoints.in_turn([2**15] * 3, 30)
    bits = [((rows[:, b % 3] + 2**15) >> (15 - b // 3)) & 1 for b in range(30)]
    assert (cells.find(rows) == sum(bit << (29 - b) for b, bit in enumerate(bits))).all()


@pytest.mark.parametrize("depth", [0, 1, 45, 50, 51, 53, 54, 57, 58])
def test_the_deepest_cells_are_those_of_whole_numbers(depth):
    """Also where a quotient passes 2**53, beyond which floats have gaps."""
    half = 5
    wanted = [min((y + half << depth) // (2 * half), (1 << depth) - 1) for y in range(-half, half + 1)]
    assert Midpoints.in_turn([half], depth).find(all_rows([half])).tolist() == wanted


@settings(max_examples=60, deadline=None)
@given(small_cells())
def test_every_row_is_in_the_box_of_its_cell_and_within_reach_of_its_anchor(cells):
    rows = all_rows(cells.half)
    if cells.radius is not None:
        rows = rows[(rows**2).sum(axis=1) <= cells.radius**2]
    for level in range(cells.depth + 1):
        codes = cells.find(rows, level)
        assert ((codes >= 0) & (codes < 1 << level)).all()
        assert (codes == ancestors(cells.find(rows), cells.depth - level)).all()
        low, high = cells.boxes(codes, level)
        assert ((low <= rows) & (rows <= high)).all()
        assert (np.abs(rows - cells.centers(codes, level)) <= cells.reaches(level)).all()
        for norm, order in (("l1", 1), ("l2", 2)):
            away = rows - cells.anchors(codes, level, norm)
            assert (np.linalg.norm(away, order, axis=1) <= cells.reach(level, norm) + 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(small_cells())
def test_the_boxes_of_a_level_cover_the_cube_once(cells):
    low, high = cells.boxes(np.arange(1 << cells.depth), cells.depth)
    volume = np.prod(np.maximum(high - low + 1, 0), axis=1)
    assert volume.sum() == np.prod([2 * h + 1 for h in cells.half])


def test_in_a_ball_wide_cells_are_measured_from_the_middle_and_narrow_ones_from_their_centres():
    cells = Midpoints.in_turn([1000] * 10, 40, radius=1000)
    assert (cells.reach(12, "l1"), cells.is_anchored(12)) == (3162, False)  # floor(sqrt(10) 1000); half-widths add up to 4500
    assert not cells.anchors(np.array([3]), 12).any()
    assert (cells.reach(40, "l1"), cells.is_anchored(40)) == (630, True)
    assert (cells.reach(12, "l2"), cells.reach(40, "l2")) == (1000, 200)
    assert Midpoints.in_turn([1000] * 10, 12).is_anchored(12)


def test_rows_outside_are_moved_in_and_no_norm_grows():
    cells = Midpoints.in_turn([5, 3], 4)
    rows = np.array([[9, -7], [-5, 3], [0, 4]])
    assert cells.clamped(rows).tolist() == [[5, -3], [-5, 3], [0, 3]]


def test_descendants_and_ancestors():
    assert descendants(np.array([1, 3]), 2).tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    assert ancestors(np.array([4, 7, 12]), 2).tolist() == [1, 1, 3]


@pytest.mark.parametrize(
    ("cells", "is_one"),
    [
        ([], True),
        ([(2, [0, 1, 2, 3])], True),
        ([(2, [0, 0])], False),
        ([(1, [0]), (3, [4])], True),
        ([(1, [0]), (3, [3])], False),
        ([(3, [3]), (1, [0])], False),
        ([(0, [0]), (62, [5])], False),
        ([(1, [1]), (62, [2**61 - 1])], True),
        ([(1, [1]), (62, [2**61])], False),
    ],
    ids=str,
)
def test_an_antichain_lists_no_row_twice(cells, is_one):
    assert is_antichain([(level, np.array(codes, dtype=np.int64)) for level, codes in cells]) is is_one


def test_the_frontier_is_kept_cells_without_kept_descendants():
    kept = [(1, np.array([0, 1])), (2, np.array([0, 1, 2])), (4, np.array([1, 3]))]
    found = [(level, codes.tolist()) for level, codes in frontier(kept)]
    assert found == [(1, []), (2, [1, 2]), (4, [1, 3])]
    assert is_antichain(frontier(kept))
    none_below = frontier([(1, np.array([0, 1])), (2, np.array([], dtype=np.int64))])
    assert [(level, codes.tolist()) for level, codes in none_below] == [(1, [0, 1]), (2, [])]


@pytest.mark.parametrize(
    "given",
    [{"half": (), "order": ()}, {"half": (0,), "order": ()}, {"half": (1,), "order": (1,)}, {"half": (1,), "order": (0,) * 63},
     {"half": (2**40,), "order": (0,) * 30}, {"half": (4,), "order": (0,), "radius": 0}],
)  # fmt: skip
def test_impossible_cells_are_refused(given):
    with pytest.raises(InvalidValue):
        Midpoints(**given)
