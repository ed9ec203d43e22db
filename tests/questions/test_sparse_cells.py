"""Statistics of sparse rows: those of dense ones, one row moves them by a bounded amount, and a bound on entries is kept."""

from math import isqrt

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kveil.questions import frame
from kveil.questions.cells import MOMENT_TOP, TOP, Lengths, Residuals, SecondMoments, Stage, Whole
from kveil.questions.frame import AXIS_BITS, Frame
from kveil.space.euclidean import Centers

D, TOP_CODE = 20, 2**19 - 1


def csr(rows):
    return csr_array(np.asarray(rows, dtype=np.int64).reshape(-1, D))


@st.composite
def sparse_table_and_row(draw):
    value = st.one_of(st.integers(-TOP_CODE, TOP_CODE), st.sampled_from([0, 0, 0, 1, -1, 5, -5, TOP_CODE]))
    row = st.lists(value, min_size=D, max_size=D)
    rows = np.array(draw(st.lists(row, max_size=4)), dtype=np.int64).reshape(-1, D)
    return rows, np.array(draw(row)), draw(st.integers(0, len(rows))), draw(st.integers(0, 2**32 - 1))


def questions(rng, nonzeros):
    """Every question that sparse rows are asked."""
    ratio = None if rng.random() < 0.5 else rng.uniform(0.001, 1.0, D)
    axes = np.rint(np.linalg.qr(rng.standard_normal((D, 3)))[0] * 2**AXIS_BITS).astype(np.int64)
    radius = int(rng.integers(1, 2 * TOP_CODE))
    seen = Frame(ratio, np.zeros(D, dtype=np.int64), radius, axes, int(rng.integers(1, radius + 1)), nonzeros)
    yield Lengths(seen, np.sort(rng.integers(0, 2**42, 39))[::-1].copy())
    yield Stage(seen, rng.integers(1, 2**20, 3), rng.integers(0, 3, 6), np.array([0, 3, 5]), 3)
    places, radii = rng.integers(-TOP_CODE, TOP_CODE, (4, 3)), rng.integers(1, 2**20, 4)
    near, zeros = Centers(places.astype(np.float64), None), np.zeros((4, D), dtype=np.int64)
    yield Residuals(seen, near, "projected", "projected", places, radii)
    yield Residuals(seen, near, "projected", "centred", zeros, radii)
    wide = Centers(rng.integers(-TOP_CODE, TOP_CODE, (4, D)).astype(np.float64), None)
    yield Residuals(seen, wide, "measured", "centred", zeros, radii)
    yield Whole(seen)


@settings(max_examples=100, deadline=None)
@given(sparse_table_and_row(), st.integers(1, D))
def test_one_sparse_row_moves_one_cluster_by_at_most_the_stated_lengths(case, nonzeros):
    rows, row, place, seed = case
    more = np.insert(rows, place, row, axis=0)
    for question in list(questions(np.random.default_rng(seed), nonzeros))[:-1]:
        for old, new in zip(question.raw(csr(rows)), question.raw(csr(more)), strict=True):
            moved = [int(x) for x in (new - old).ravel()]
            if new.ndim == 1:
                assert sum(map(abs, moved)) <= 1
                continue
            assert np.count_nonzero((new - old).any(axis=1)) <= 1
            assert sum(x * x for x in moved) <= TOP**2
            if question.of == "centred":
                assert np.count_nonzero(moved) <= nonzeros
                assert sum(map(abs, moved)) <= isqrt(nonzeros * TOP**2)


@settings(max_examples=60, deadline=None)
@given(sparse_table_and_row())
def test_sparse_statistics_are_those_of_dense_rows(case):
    rows, _, _, seed = case
    for question in questions(np.random.default_rng(seed), None):
        for sparse, dense in zip(question.raw(csr(rows)), question.raw(rows), strict=True):
            assert np.array_equal(sparse, dense)


@settings(max_examples=60, deadline=None)
@given(sparse_table_and_row(), st.integers(1, D))
def test_the_largest_entries_are_kept_and_ties_go_to_the_lowest_column(case, nonzeros):
    rows, row, _, _ = case
    rows = np.vstack([rows, row])
    whole = Frame(None, np.zeros(D, dtype=np.int64), 2**30, nonzeros=nonzeros)
    kept = whole.measured(csr(rows)).toarray()
    for before, after in zip(rows, kept, strict=True):
        stays = sorted(range(D), key=lambda j: (-abs(before[j]), j))[:nonzeros]
        assert after.tolist() == [int(before[j]) if j in stays else 0 for j in range(D)]


def test_ties_by_hand():
    rows = np.zeros((1, D))
    rows[0, [2, 4, 7, 9]] = [-3, 5, 3, -5]
    whole = Frame(None, np.zeros(D, dtype=np.int64), 100, nonzeros=3)
    assert np.flatnonzero(whole.measured(csr(rows)).toarray()).tolist() == [2, 4, 9]


def test_blocks_and_order_of_sparse_rows_do_not_matter():
    rng = np.random.default_rng(0)
    rows = rng.integers(-TOP_CODE, TOP_CODE, (150, D)) * (rng.random((150, D)) < 0.3)
    for question in questions(rng, 4):
        whole = question.raw(csr(rows))
        parts = [question.raw(csr(part)) for part in np.array_split(rng.permutation(rows), 5)]
        assert all(np.array_equal(sum(part[i] for part in parts), whole[i]) for i in range(len(whole)))
        saved, frame.BLOCK = frame.BLOCK, 7
        again = question.raw(csr(rows))
        frame.BLOCK = saved
        assert all(np.array_equal(a, b) for a, b in zip(again, whole, strict=True))


def test_a_kernel_leaves_the_callers_codes_alone():
    codes = csr(np.full((3, D), TOP_CODE))
    for question in questions(np.random.default_rng(1), 2):
        question.raw(codes)
    assert np.all(codes.data == TOP_CODE)


def test_second_moments_are_the_upper_triangle_and_mind_no_blocks():
    rows = np.random.default_rng(2).integers(-1000, 1000, (200, D))
    question = SecondMoments(Frame(None, np.zeros(D, dtype=np.int64), MOMENT_TOP * 16))
    scaled = np.sign(rows) * (np.abs(rows) // 16)
    (found,) = question.raw(rows)
    assert np.array_equal(found, (scaled.T @ scaled)[np.triu_indices(D)])
    saved, frame.BLOCK = frame.BLOCK, 7
    assert np.array_equal(question.raw(rows)[0], found)
    frame.BLOCK = saved
