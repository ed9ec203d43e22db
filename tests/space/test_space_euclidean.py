"""Distances on the grid: exact integers, whatever the blocking."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kveil.kernel.grid import Ball, Box
from kveil.space import euclidean
from kveil.space.euclidean import Centers, assign, clip, evenly, nearest


def brute_force(codes: np.ndarray, centers: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Nearest and second nearest in Python integers, ties to the lowest index."""
    owner, first, second = [], [], []
    for row in codes.tolist():
        apart = [sum((int(a) - int(b)) ** 2 for a, b in zip(row, center, strict=True)) for center in centers.tolist()]
        owner.append(min(range(len(apart)), key=lambda c: (apart[c], c)))
        ordered = sorted(apart)
        first.append(ordered[0])
        second.append(ordered[1] if len(ordered) > 1 else np.iinfo(np.int64).max)
    return owner, first, second


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_nearest_equals_brute_force_in_integers(d, k, n, seed, extreme):
    rng = np.random.default_rng(seed)
    top = 2**15 - 1
    codes = (rng.choice([-top, 0, top], (n, d)) if extreme else rng.integers(-3, 4, (n, d))).astype(np.int16)
    centers = Centers((rng.choice([-top, top], (k, d)) if extreme else rng.integers(-3, 4, (k, d))).astype(np.float64), None)
    owner, first, second = nearest(codes, centers)
    expected = brute_force(codes, centers.codes.astype(np.int64))
    assert [owner.tolist(), first.tolist(), second.tolist()] == list(map(list, expected))
    assert assign(codes, centers).tolist() == expected[0]


@pytest.mark.parametrize("block", [1, 7, 2048, 10_000])
def test_labels_do_not_depend_on_the_block_size(block, monkeypatch):
    rng = np.random.default_rng(3)
    codes = rng.integers(-(2**15) + 1, 2**15, (4001, 6)).astype(np.int16)
    near_ties = rng.integers(-5, 5, (12, 6)).astype(np.float64)
    whole = assign(codes, Centers(near_ties, None))
    monkeypatch.setattr(euclidean, "BLOCK", block)
    assert np.array_equal(assign(codes, Centers(near_ties, None)), whole)


def test_dropping_a_row_moves_no_other_label():
    rng = np.random.default_rng(4)
    codes = rng.integers(-100, 100, (500, 3)).astype(np.int16)
    centers = Centers(rng.integers(-9, 9, (8, 3)).astype(np.float64), None)
    whole = assign(codes, centers)
    for gone in (0, 1, 250, 499):
        assert np.array_equal(assign(np.delete(codes, gone, axis=0), centers), np.delete(whole, gone))


def test_sparse_rows_have_the_labels_of_dense_ones():
    rng = np.random.default_rng(5)
    rows = np.where(rng.random((300, 20)) < 0.2, rng.normal(size=(300, 20)), 0.0)
    domain = Box(np.full(20, -2.0), np.linspace(2.0, 2.0, 20))
    wide = Box(-np.linspace(1.0, 5.0, 20), np.linspace(1.0, 5.0, 20))
    for grid in (domain, wide, Ball(np.zeros(20), 1.5)):
        centers = Centers.of(rng.normal(size=(5, 20)), grid)
        dense, sparse = grid.encode(rows), grid.encode_sparse(csr_array(rows))
        assert np.array_equal(assign(dense, centers), assign(sparse, centers))
        for one, other in zip(nearest(dense, centers), nearest(sparse, centers), strict=True):
            assert np.array_equal(one, other)


def test_distance_is_measured_in_the_units_of_the_data_unless_scaled_by_bounds():
    domain = Box(np.array([0.0, 0.0]), np.array([1.0, 100.0]))
    centers = np.array([[0.0, 50.0], [1.0, 58.0]])
    row = domain.encode(np.array([[0.9, 53.0]]))
    assert assign(row, Centers.of(centers, domain)).tolist() == [0]  # 3.1 against 5.0
    assert assign(row, Centers.of(centers, domain, "bounds")).tolist() == [1]  # 0.9 and 0.03 of a width against 0.1 and 0.05


def test_clip_moves_rows_to_the_domain_and_broken_rows_to_its_centre():
    rows = np.array([[3.0, 0.0], [0.25, -0.25], [np.nan, 1.0], [np.inf, 0.0], [1e308, -1e308]])
    box = clip(Box(np.array([-1.0, -1.0]), np.array([1.0, 2.0])), rows)
    assert box.tolist() == [[1.0, 0.0], [0.25, -0.25], [0.0, 0.5], [0.0, 0.5], [1.0, -1.0]]
    ball = clip(Ball(np.zeros(2), 1.0), rows)
    assert np.allclose(ball, [[1.0, 0.0], [0.25, -0.25], [0.0, 0.0], [0.0, 0.0], [np.sqrt(0.5), -np.sqrt(0.5)]])


@pytest.mark.parametrize("domain", [Box(np.array([0.0, -5.0]), np.array([1.0, 5.0])), Ball(np.array([3.0, 4.0, 5.0]), 2.0)])
def test_evenly_stays_inside_the_domain(domain):
    points = evenly(domain, 500, np.random.default_rng(0))
    assert np.allclose(clip(domain, points), points)
    assert np.abs(points.mean(axis=0) - domain.center).max() < domain.half.max() / 4


@pytest.mark.parametrize("d", [1, 3, 4, 12, 32])
@pytest.mark.parametrize("spread", [3, 1000, 2**21], ids=["ties", "near ties", "wide"])
def test_guesses_in_float32_are_the_exact_labels(d, spread):
    """Ties and near ties everywhere, about points far from the origin: floats of 24 bits cannot tell them apart, and say so."""
    rng = np.random.default_rng(d)
    away = rng.integers(-(2**21), 2**21, d)
    rows, codes = (away + rng.integers(-spread, spread + 1, (n, d)) for n in (1500, 40))
    centers = Centers(np.vstack([codes, codes[:3]]).astype(np.float64), None)
    expected = ((rows[:, None, :] - centers.codes.astype(np.int64)) ** 2).sum(axis=2).argmin(axis=1)
    for dtype in (np.int32, np.int64, np.float64):
        assert assign(rows.astype(dtype), centers).tolist() == expected.tolist()


@pytest.mark.parametrize("d", [3, 32])
def test_many_centres_are_exact_where_steps_differ_by_column_or_rows_are_sparse(d):
    """Guesses are for dense rows whose steps are all alike; others must not be taken for such."""
    rng = np.random.default_rng(d)
    rows = np.where(rng.random((500, d)) < 0.4, rng.integers(-1000, 1001, (500, d)), 0).astype(np.int32)
    codes, ratio = rng.integers(-1000, 1001, (40, d)).astype(np.float64), np.linspace(0.01, 1.0, d)
    for steps in (None, ratio):
        seen = rows if steps is None else np.rint(rows * steps)
        expected = ((seen[:, None] - codes) ** 2).sum(axis=2).argmin(axis=1).tolist()
        assert assign(rows, Centers(codes, steps)).tolist() == expected
        assert assign(csr_array(rows), Centers(codes, steps)).tolist() == expected


def test_float32_alone_would_mistake_labels():
    """The twin: without asking who is sure, labels of the test above are wrong."""
    rng = np.random.default_rng(3)
    away = rng.integers(2**20, 2**21, 3)
    rows, codes = (away + rng.integers(-1000, 1001, (n, 3)) for n in (1500, 40))
    centers = Centers(codes.astype(np.float64), None)
    owner, is_sure = np.empty(1500, dtype=np.int32), np.empty(1500, dtype=np.bool_)
    euclidean._kernels.guess_closest(rows, *centers.narrow, owner, is_sure)
    exact = ((rows[:, None, :] - codes) ** 2).sum(axis=2).argmin(axis=1)
    assert (owner != exact).any()
    assert np.array_equal(owner[is_sure], exact[is_sure])


@pytest.mark.parametrize(
    ("long", "d", "near"),
    [*(("rows and centres", d, 2**16) for d in (1, 4, 32)), ("rows", 4, 2**6), ("rows", 32, 2**6), ("two centres", 4, 2**16)],
)
def test_whoever_is_sure_leads_by_more_than_floats_may_be_off(long, d, near):
    """Rows beside the middle of two centres, by leads of all sizes. Right labels alone would not show a bound that is too short:
    roundings seldom add up. Its own is 4 (d + 4) of these units; half of that, a lead of one `off` where two scores are off, or a
    row's length counted once or less, would be below what the proof needs."""
    rng = np.random.default_rng(d)
    codes = rng.integers(-near, near + 1, (40, d))
    codes[: {"rows and centres": 40, "rows": 0, "two centres": 2}[long]] += 2**20
    if long == "rows":  # along an axis in which all centres agree
        codes[:, 0] = 1
    one, other = codes[rng.integers(0, 2 if long == "two centres" else 40, (2, 20_000))]
    steps = np.rint(2.0 ** rng.uniform(0, 14, (20_000, 1))).astype(np.int64)
    rows = (one + other) // 2 + steps * np.sign(one - other)
    rows[:, 0] = 2**24 if long == "rows" else rows[:, 0]
    centers = Centers(codes.astype(np.float64), None)
    owner, is_sure = np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.bool_)
    euclidean._kernels.guess_closest(rows, *centers.narrow, owner, is_sure)
    two = np.sort(((rows[:, None] - codes) ** 2).sum(axis=2), axis=1)[:, :2]
    lead, longest = two[:, 1] - two[:, 0], np.linalg.norm(codes, axis=1).max()
    off = 2.5 * (d + 4) * 2.0**-24 * longest * (longest + 2 * np.linalg.norm(rows, axis=1))
    assert (lead[is_sure] > off[is_sure]).all()
    assert is_sure.any()
    assert ((off / 2 < lead) & (lead <= off)).any()
