"""Rows and the places they own: by score, for any order and partitions, and one row moves nobody else's."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kveil
from kveil.desk import row_places as places
from kveil.desk.row_places import RowPlaces, Score, bucket_rows, bucket_scores, merge_rows
from kveil.kernel.grid import Ball, Box
from kveil.space.euclidean import Centers

KEY = np.array([12345, 678910111213], dtype=np.uint64)
LINE = Box(np.zeros(1), np.ones(1), 8)
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -1e308, 1e-300]) | st.floats(-4, 4)


def tables(d):
    return st.lists(st.lists(NUMBERS, min_size=d, max_size=d), max_size=15).map(lambda rows: np.array(rows).reshape(-1, d))


def owners(table, domain, score, key=KEY):
    """{code: how many places it owns}, by asking for every place."""
    found = RowPlaces(kveil.read(table), domain, score, key)
    codes = found.at(list(range(found.total)))
    return Counter(map(tuple, codes.tolist()))


@settings(max_examples=40, deadline=None)
@given(tables(2), st.sampled_from(["box", "uneven", "ball"]), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_a_row_owns_as_many_places_as_it_scores(table, shape, n_centers, seed, is_crowded):
    """Also when many rows share a bucket."""
    domain = Ball(np.zeros(2), 3.0, 3) if shape == "ball" else Box([-3.0, -3.0], [3.0, 0.0 if shape == "uneven" else 3.0], 3)
    rng = np.random.default_rng(seed)
    score = Score(Centers.of(rng.uniform(-3, 3, (n_centers, 2)), domain), 7, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "BUCKETS", 2 if is_crowded else 2**16)
        held = owners(table, domain, score)
    expected = Counter()
    for code in domain.encode(table).astype(np.int64):
        expected[tuple(code.tolist())] += int(score.of(code[None])[0])
    assert held == +expected


@settings(max_examples=40, deadline=None)
@given(tables(2), st.lists(NUMBERS, min_size=2, max_size=2), st.integers(0, 50), st.integers(0, 14))
def test_one_row_adds_its_own_score_and_moves_no_other(table, row, cap, shift):
    domain = Box([-3.0, -3.0], [3.0, 3.0], 6)
    score = Score(Centers.of(np.array([[0.5, -1.0]]), domain), cap, shift)
    without, with_row = (RowPlaces(kveil.read(t), domain, score, KEY).total for t in (table, np.vstack([table, [row]])))
    assert 0 <= with_row - without <= score.most


def test_order_and_partitions_do_not_matter(tmp_path):
    rows = np.random.default_rng(0).integers(0, 9, (400, 3)) / 8
    domain, score = Box(np.zeros(3), np.ones(3), 5), Score(Centers.of(np.full((1, 3), 0.5), Box(np.zeros(3), np.ones(3), 5)), 99)
    asked = [0, 5, 77, 1000, 2**70]
    expected = RowPlaces(kveil.read(rows), domain, score, KEY)
    answers = expected.at(asked)
    np.savetxt(tmp_path / "rows.csv", rows[::-1], delimiter=",", header="a,b,c", comments="", fmt="%.4f")
    for other in (rows[::-1], rows[np.random.default_rng(1).permutation(400)], tmp_path / "rows.csv"):
        found = RowPlaces(kveil.read(other), domain, score, KEY)
        assert found.total == expected.total
        assert np.array_equal(found.at(asked), answers)
    parts = [bucket_scores(domain.encode(part), expected._hashed)[0] for part in np.array_split(rows, 7)]
    assert np.array_equal(sum(parts), bucket_scores(domain.encode(rows), expected._hashed)[0])


def test_gathered_rows_merge_in_any_grouping():
    wanted = np.ones(2**16, dtype=bool)
    state = places.Hashed(Score(), KEY, wanted)
    one, two, three = (
        bucket_rows(LINE.encode(np.array(part)[:, None]), state)[0] for part in ([0.1, 0.1, 0.9], [0.5], [0.1, 0.5])
    )
    left, right = merge_rows(merge_rows(one, two), three), merge_rows(one, merge_rows(three, two))
    assert left.tolist() == right.tolist()
    assert left[:, -1].tolist() == [3, 2, 1]


def test_the_key_decides_where_rows_stand_and_nothing_else():
    rows = np.linspace(0, 1, 50)[:, None]
    keys = [np.array([k, k + 1], dtype=np.uint64) for k in range(2)]
    found = [RowPlaces(kveil.read(rows), LINE, Score(), key) for key in keys]
    assert found[0].total == found[1].total == 50
    orders = [places.at(list(range(50))).ravel().tolist() for places in found]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_what_nobody_owns_is_the_centre_and_a_table_without_rows_owns_nothing():
    found = RowPlaces(kveil.read(np.array([[0.9]])), LINE, Score(), KEY)
    assert found.at([1, 0, 10**30]).ravel().tolist() == [0, int(LINE.encode([[0.9]])[0, 0]), 0]
    empty = RowPlaces(kveil.read(np.empty((0, 1))), LINE, Score(), KEY)
    assert (empty.total, empty.at([0, 3]).tolist()) == (0, [[0], [0]])
    on_centre = RowPlaces(kveil.read(np.full((5, 1), 0.5)), LINE, Score(Centers.of(np.array([[0.5]]), LINE), 9), KEY)
    assert (on_centre.total, on_centre.at([0]).tolist()) == (0, [[0]])


@given(st.integers(1, 2**56), st.integers(1, 2**45))
def test_scores_of_all_rows_stay_below_the_largest_total(cap, max_rows):
    shift = Score.shift_for(cap, max_rows)
    assert (cap >> shift) * max_rows < places.MOST
    rows = max(max_rows, places.BLOCK_ROWS)
    assert (cap >> shift) * rows < 2**63  # nor can one block wrap, should `max_rows` be false
    assert shift == 0 or (8 * cap >> shift) * rows >= places.MOST  # and no more bits are lost than need be
    assert Score(None, cap, shift).most >= 1


def test_more_rows_than_there_may_be_own_no_place_past_the_largest_total(monkeypatch):
    """With a false bound on the rows the total would wrap, and nobody, or somebody else, would own the places."""
    score = Score(Centers.of(np.array([[0.0]]), LINE), 2**14, 0)
    monkeypatch.setattr(places.saturating, "MOST", 3 * 65025 // 4)  # less than a quarter of what the rows below score
    rows = np.array([[1.0], [1.0], [0.9], [1.0], [0.8]])
    found = RowPlaces(kveil.read(rows), LINE, score, KEY)
    totals = [RowPlaces(kveil.read(rows[:n]), LINE, score, KEY).total for n in range(6)]
    assert totals == [
        min(sum(score.of(LINE.encode(rows[:n]).astype(np.int64)).tolist()), places.saturating.MOST) for n in range(6)
    ]
    codes = set(map(tuple, LINE.encode(rows).tolist()))
    asked = [0, found.total // 2, found.total - 1, found.total, 10**20]
    held = [tuple(code) in codes for code in found.at(asked).tolist()]
    assert held == [True, True, True, False, False]
