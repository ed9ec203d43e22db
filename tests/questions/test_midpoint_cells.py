"""Counts and deviation sums over midpoint cells: linear in rows, and moved by one row no more than stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.partition.midpoints import Midpoints, descendants
from kveil.partition.tiling import Tiling
from kveil.questions.frame import Frame
from kveil.questions.midpoint_cells import CellCounts, CellSums, TileCounts


def domains(seed, d):
    """A box with columns alike, one with others, and a ball: each with its frame and cells."""
    rng = np.random.default_rng(seed)
    wide = rng.uniform(0.01, 3.0, d)
    for domain, radius in ((Box([-1.0] * d, [1.0] * d, 10), None), (Box(-wide, wide, 10), None), (Ball([0.5] * d, 1.0, 10), 511)):
        frame = Frame.of(domain, None)
        half = np.maximum(np.rint(domain.top * (np.ones(d) if frame.ratio is None else frame.ratio)), 1)
        if radius is not None:
            half = np.full(d, int(rng.integers(100, 512)))  # a cube that cuts the ball
        yield domain, frame, Midpoints.in_turn(half, int(rng.integers(2, 11)), radius)


def some_cells(cells, rng):
    """An antichain over two levels."""
    level = int(rng.integers(0, cells.depth))
    split = rng.random(1 << level) < 0.5
    codes = np.arange(1 << level)
    return [(level, codes[~split]), (cells.depth, descendants(codes[split], cells.depth - level))]


VALUES = [0.0, 0.5, 1.0, -1.0, 1e9, -1e300, np.nan, np.inf, -np.inf, 1e-9, 0.5 + 2**-10]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_one_row_moves_one_count_by_one_and_one_deviation_by_at_most_the_reach(data, d, seed):
    rng = np.random.default_rng(seed)
    value = st.floats(-2, 2) | st.sampled_from(VALUES)
    rows = np.array(data.draw(st.lists(st.lists(value, min_size=d, max_size=d), max_size=4)), dtype=float).reshape(-1, d)
    more = np.vstack([rows, data.draw(st.lists(value, min_size=d, max_size=d))])
    for domain, frame, cells in domains(seed, d):
        question = CellCounts(frame, cells, cells.depth)
        moved = question.raw(domain.encode(more))[0] - question.raw(domain.encode(rows))[0]
        assert sorted(moved)[-1] == moved.sum() == 1
        levels = some_cells(cells, rng)
        for norm, order in (("l1", 1), ("l2", 2)):
            sums = CellSums.in_levels(frame, cells, levels, norm)
            (n0, s0), (n1, s1) = (sums.raw(domain.encode(part)) for part in (rows, more))
            where = np.flatnonzero(n1 - n0)
            assert ((n1 - n0)[where].tolist(), len(where)) == ([1], 1)
            level = levels[0][0] if where[0] < len(levels[0][1]) else cells.depth
            assert np.linalg.norm((s1 - s0)[where[0]], order) <= cells.reach(level, norm) + 1e-9
            assert not np.delete(s1 - s0, where, axis=0).any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_order_and_splits_do_not_matter_and_sums_are_those_of_the_rows(seed, d):
    rng = np.random.default_rng(seed)
    rows = rng.normal(0, 0.7, (300, d))
    for domain, frame, cells in domains(seed, d):
        codes = domain.encode(rows)
        sums = CellSums.in_levels(frame, cells, some_cells(cells, rng))
        nodes = np.unique(rng.integers(0, 1 << cells.depth, 5))
        for question in (CellCounts(frame, cells, 2), CellCounts(frame, cells, cells.depth, nodes), sums):
            whole = question.raw(codes)
            parts = [question.raw(part) for part in np.array_split(rng.permutation(codes), 4)]
            assert all(np.array_equal(sum(part[i] for part in parts), whole[i]) for i in range(len(whole)))
        counts, deviations = sums.raw(codes)
        total = cells.clamped(frame.measured(codes)).sum(axis=0)
        anchors = sums.anchors[np.argsort(sums.listed)]
        assert ((deviations + counts[:, None] * anchors).sum(axis=0) == total).all()
        assert counts.sum() == 300


def test_counts_of_listed_cells_are_those_of_the_whole_level():
    rng = np.random.default_rng(3)
    domain, frame, cells = next(domains(3, 2))
    codes = domain.encode(rng.normal(0, 0.5, (500, 2)))
    (every,) = CellCounts(frame, cells, cells.depth).raw(codes)
    nodes = np.array([0, 3, (1 << cells.depth) - 1])
    assert CellCounts(frame, cells, cells.depth, nodes).raw(codes)[0].tolist() == every[nodes].tolist()
    assert CellCounts(frame, cells, cells.depth, nodes[:0]).raw(codes)[0].size == 0


def test_sums_come_in_the_order_the_cells_were_listed():
    """[-8, 8] in eighths: the last two eighths, then the left half."""
    frame = Frame(None, np.zeros(1, dtype=np.int64), 100)
    cells = Midpoints.in_turn([8], 3)
    question = CellSums.in_levels(frame, cells, [(3, np.array([6, 7])), (1, np.array([0]))])
    counts, sums = question.raw(np.array([[5], [8], [7], [-8], [1]], dtype=np.int16))
    assert (counts.tolist(), sums.ravel().tolist()) == ([1, 2, 1], [5 - 4, 8 + 7 - 14, -8 + 5])


def test_cells_that_would_count_a_row_twice_are_refused():
    _, frame, cells = next(domains(0, 2))
    for nodes in ([1, 1], [2, 1], [-1, 0], [0, 4]):
        with pytest.raises(InvalidValue):
            CellCounts(frame, cells, 2, np.array(nodes))
    for levels in ([(1, [0]), (2, [1])], [(2, [1, 1])], [(1, [2])], [(63, [0])]):
        with pytest.raises(InvalidValue):
            CellSums.in_levels(frame, cells, [(level, np.array(codes)) for level, codes in levels])


def test_a_row_at_any_border_of_a_partition_adds_one_to_one_cell():
    """Every row of a small cube and some outside, one by one: among them all that lie on a border, or beside one."""
    tiling = Tiling.whole(np.array([6, 3])).divided(np.array([2])).divided(np.array([0, 1, 3, 2]))
    question = TileCounts(Frame(None, np.zeros(2, dtype=np.int64), 100), tiling)
    rows = np.array([[x, y] for x in range(-8, 9) for y in range(-5, 6)], dtype=np.int32)
    added = np.array([question.raw(rows[i : i + 1])[0] for i in range(len(rows))])
    assert (added.sum(axis=1) == 1).all()
    assert (added.max(axis=1) == 1).all()
    assert question.raw(rows)[0].tolist() == added.sum(axis=0).tolist()
