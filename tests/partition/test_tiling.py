"""A partition of a cube into cells of different sizes: every row is in exactly one, at borders too."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.partition import tiling as tilings_of
from kveil.partition.tiling import Tiling


@st.composite
def tilings(draw):
    """A small cube, some of whose cells were divided, and some of these again."""
    tiling = Tiling.whole(np.array(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)), dtype=np.int64))
    for _ in range(draw(st.integers(0, 3))):
        n = len(tiling.codes)
        tiling = tiling.divided(np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64))
    return tiling


def rows_of(half):
    """All rows of a cube, and some outside."""
    return np.array(list(itertools.product(*(range(-h - 1, h + 2) for h in half))), dtype=np.int64)


@settings(deadline=None, max_examples=60)
@given(tilings())
def test_every_row_is_in_the_one_cell_whose_code_begins_its_own(tiling):
    rows = rows_of(tiling.half.tolist())
    deepest = tiling.midpoints.find(rows)
    begins = deepest[:, None] >> (tiling.depth - tiling.levels) == tiling.codes  # (rows, cells)
    assert (begins.sum(axis=1) == 1).all()
    assert tiling.find(rows).tolist() == begins.argmax(axis=1).tolist()


@settings(deadline=None, max_examples=60)
@given(tilings(), st.integers(0, 7))
def test_the_cell_of_a_row_is_the_same_however_much_of_its_code_is_looked_up_in_a_table(tiling, head_bits):
    rows = rows_of(tiling.half.tolist())
    with mock.patch.object(tilings_of, "HEAD_BITS", head_bits):
        found = tiling.find(rows)
        assert len(tiling._starts[0]) == 1 + (1 << min(head_bits, tiling.depth))
    assert found.tolist() == (np.searchsorted(tiling.first, tiling.midpoints.find(rows), side="right") - 1).tolist()


@settings(deadline=None, max_examples=60)
@given(tilings())
def test_boxes_fill_the_cube_and_hold_their_rows(tiling):
    middles, halves = tiling.boxes()
    assert np.prod(2 * halves, axis=1).sum() == pytest.approx(np.prod(2.0 * tiling.half))
    rows = np.clip(rows_of(tiling.half.tolist()), -tiling.half, tiling.half)
    owner = tiling.find(rows)
    assert (np.abs(rows - middles[owner]) <= halves[owner] + 1e-9).all()
    shown = np.arange(len(middles)) % 3 == 1
    assert [part.tolist() for part in tiling.boxes(shown)] == [middles[shown].tolist(), halves[shown].tolist()]


@settings(deadline=None, max_examples=60)
@given(tilings(), st.integers(0, 3))
def test_a_block_is_the_cells_of_one_size_in_the_farthest_ancestor_that_holds_no_others(tiling, levels):
    values = np.arange(1.0, len(tiling.codes) + 1) ** 2
    for cell, found in enumerate(tiling.around(values, levels)):
        up = min(levels, int(tiling.levels[cell]))
        while True:
            size = 1 << (tiling.depth - int(tiling.levels[cell]) + up)
            block = tiling.first // size == tiling.first[cell] // size
            if (tiling.levels[block] == tiling.levels[cell]).all() and block.sum() == 1 << up:
                break
            up -= 1
        assert found == values[block].sum()


def test_cells_of_other_sizes_are_no_block_even_if_their_number_would_fit():
    """A half, a quarter and two eighths: four cells, as a block of two halvings has."""
    tiling = Tiling.whole(np.array([8, 8])).divided(np.array([1])).divided(np.array([0, 1])).divided(np.array([0, 0, 1]))
    assert tiling.levels.tolist() == [1, 2, 3, 3]
    assert tiling.around(np.ones(4), 2).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("codes", "levels"), [([0, 1], [1, 2]), ([1], [1]), ([0, 0], [1, 1]), ([0, 0, 1], [0, 1, 1]), ([1, 0], [1, 1])]
)
def test_cells_with_a_gap_or_one_inside_another_are_refused(codes, levels):
    with pytest.raises(AssertionError, match="exactly one"):
        Tiling(np.array([4, 4]), np.array(codes), np.array(levels))


@settings(deadline=None, max_examples=60)
@given(tilings(), st.integers(0, 5), st.data())
def test_joined_cells_are_the_farthest_ancestors_down_from_a_level_that_hold_none_of_those_kept(tiling, level, data):
    n = len(tiling.codes)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    joined, which = tiling.joined(kept, level)
    found = {(int(code), int(own)) for code, own in zip(joined.codes, joined.levels, strict=True)}
    for cell in range(n):
        expected = int(tiling.levels[cell])
        for up in range(expected - 1, level - 1, -1):
            inside = tiling.first >> (tiling.depth - up) == tiling.first[cell] >> (tiling.depth - up)
            if not kept[cell] and not kept[inside].any():
                expected = up
        assert (int(tiling.codes[cell]) >> (int(tiling.levels[cell]) - expected), expected) in found
    first = (tiling.codes << (tiling.depth - tiling.levels))[which]
    assert first.tolist() == (joined.codes << (tiling.depth - joined.levels)).tolist()


@settings(deadline=None, max_examples=60)
@given(tilings())
def test_cells_touch_where_their_boxes_meet(tiling):
    middles, halves = tiling.boxes()
    every = np.arange(len(middles))
    touching = tiling.touching(every, every)
    for one, other in itertools.product(every, every):
        low = np.maximum(middles[one] - halves[one], middles[other] - halves[other])
        high = np.minimum(middles[one] + halves[one], middles[other] + halves[other])
        assert touching[one, other] == (low <= high).all()


def test_around_a_cell_are_those_that_touch_it_where_all_have_one_size():
    """Sixteen cells, two steps wide: nine around an inner one, six around one at a side, four around a corner."""
    tiling = Tiling.whole(np.array([4, 4])).divided(np.array([4]))
    every = np.arange(16)
    around, is_new = tiling.neighbours(every)
    named = np.zeros((16, 16), dtype=bool)
    np.put_along_axis(named, around, True, axis=1)
    assert (named == tiling.touching(every, every)).all()
    assert is_new.sum(axis=1).tolist() == named.sum(axis=1).tolist()
    assert sorted(is_new.sum(axis=1).tolist()) == [4] * 4 + [6] * 8 + [9] * 4
    assert [part.shape for part in tiling.neighbours(every[:0])] == [(0, 9), (0, 9)]


def test_a_large_cell_beside_a_small_one_counts_once():
    """A line of 8 steps in a half, a quarter and two eighths. Beside the half, the middle of the other half is where the third
    cell begins; beside the quarter, it is where the fourth begins."""
    tiling = Tiling.whole(np.array([4])).divided(np.array([1])).divided(np.array([0, 1])).divided(np.array([0, 0, 1]))
    around, is_new = tiling.neighbours(np.arange(4))
    assert [cells[new].tolist() for cells, new in zip(around, is_new, strict=True)] == [[0, 2], [0, 1, 3], [1, 2, 3], [2, 3]]
    wide = Tiling.whole(np.array([4, 4])).divided(np.array([1])).divided(np.array([0, 3]))  # a half, and eight cells beside it
    around, is_new = wide.neighbours(np.arange(1, 9))
    assert ((around == 0) & is_new).sum(axis=1).max() == 1 < (around == 0).sum(axis=1).max()


@settings(deadline=None, max_examples=60)
@given(tilings())
def test_a_cell_is_among_those_around_it_and_none_is_new_twice(tiling):
    every = np.arange(len(tiling.codes))
    around, is_new = tiling.neighbours(every)
    for cell in every:
        found = around[cell][is_new[cell]]
        assert cell in found
        assert found.tolist() == np.unique(around[cell]).tolist()
