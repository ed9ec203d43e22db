"""Costs of all swaps in one pass: against brute force, and what one row may add to them."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kveil.questions import saturating, swaps
from kveil.questions.frame import BLOCK, Frame, clipped
from kveil.questions.swaps import Loss, SetCosts, SwapCosts

OBJECTIVES = ["k-means", "k-median"]


def frame(n_axes, radius):
    return Frame(None, np.zeros(n_axes, dtype=np.int64), radius)


def brute(rows, centers, loss):
    """The cost of a set of centres, one row and one centre at a time, in Python integers."""

    def between(x, c):
        square = sum((int(a) - int(b)) ** 2 for a, b in zip(x, c, strict=True))
        return (square if loss.is_squared else int(square**0.5)) >> loss.shift

    return sum(min(between(x, c) for c in centers) for x in rows)


def brute_swaps(rows, centers, candidates, loss):
    swapped = [[[*centers[:x], y, *centers[x + 1 :]] for y in candidates] for x in range(len(centers))]
    return [[brute(rows, with_y, loss) for with_y in line] for line in swapped]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_table_of_swaps_is_brute_force_with_duplicates_and_ties(objective):
    rng = np.random.default_rng(0)
    rows = clipped(rng.integers(-3, 4, size=(50, 2)) * 5, 21)  # few places: many rows and candidates coincide
    candidates = clipped(rng.integers(-3, 4, size=(20, 2)) * 5, 21)
    centers = candidates[[0, 1, 1, 2]]
    question = SwapCosts(frame(2, 21), objective, 2**40, centers, candidates)
    assert question.loss == Loss.within(21, objective, 2**40)
    (table,) = question.raw(rows)
    assert table.tolist() == brute_swaps(rows.tolist(), centers.tolist(), candidates.tolist(), question.loss)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from(OBJECTIVES), st.sampled_from([2**8, 2**40, 2**52]),
       st.integers(0, 2**32 - 1))  # fmt: skip
def test_it_is_brute_force_for_any_number_of_centres_axes_and_declared_rows(n_axes, k, objective, max_rows, seed):
    rng = np.random.default_rng(seed)
    radius = 2**18
    rows, candidates = (clipped(rng.integers(-radius, radius, size=(n, n_axes)), radius) for n in (15, 6))
    loss = Loss.within(radius, objective, max_rows)
    assert (loss.highest - 1) * max_rows <= 2**62
    assert (loss.highest - 1) * BLOCK <= 2**53
    (table,) = SwapCosts(frame(n_axes, radius), objective, max_rows, candidates[:k], candidates).raw(rows)
    assert table.tolist() == brute_swaps(rows.tolist(), candidates[:k].tolist(), candidates.tolist(), loss)
    sets = np.stack([candidates[:k], candidates[2 : 2 + k]])
    (costs,) = SetCosts(frame(n_axes, radius), objective, max_rows, sets).raw(rows)
    assert costs.tolist() == [brute(rows.tolist(), candidates[start : start + k].tolist(), loss) for start in (0, 2)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.sampled_from(OBJECTIVES), st.integers(0, 2**32 - 1))
def test_one_more_row_raises_every_cost_by_at_most_the_stated_amount(n_axes, objective, seed):
    rng = np.random.default_rng(seed)
    radius = int(rng.integers(1, 2**26))
    ends = rng.choice([-radius, radius, 0, 1], size=(8, n_axes))  # on the sphere, or shrunken to it
    points = clipped(ends * 2, radius)
    question = SwapCosts(frame(n_axes, radius), objective, 2**40, points[:2], points[2:6])
    (without,), (more,) = question.raw(points[6:7]), question.raw(points[6:8])
    assert (more >= without).all()
    assert (more - without).max() <= question.parts[0].length


def test_the_stated_amount_is_attained_but_for_one_unit():
    question = SwapCosts(frame(1, 100), "k-means", 2**40, np.array([[-100]]), np.array([[-100]]))
    (table,) = question.raw(np.array([[100]]))
    assert table.tolist() == [[200**2 >> question.loss.shift]] == [[question.parts[0].length - 1]]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("radius", [50, 2**24])
def test_sparse_rows_cost_what_dense_ones_do(objective, radius):
    rng = np.random.default_rng(0)
    rows = clipped(rng.integers(-radius, radius + 1, (40, 20)) * (rng.random((40, 20)) < 0.2), radius)
    sets = np.stack([clipped(rng.integers(-radius, radius + 1, (3, 20)), radius) for _ in range(4)])
    question = SetCosts(frame(20, radius), objective, 2**40, sets)
    assert question.raw(csr_array(rows))[0].tolist() == question.raw(rows)[0].tolist()


LINE = [-2, -1, 0, 1, 2]


def largest_move(k, places, n_rows=3, *, is_replaced=False, times=1):
    """The largest log-ratio of any swap between neighbours, P ~ exp(-cost/(times length)), over all small tables."""
    tables = [t for size in range(n_rows + 1) for t in combinations_with_replacement(LINE, size)]
    candidates = np.array(places)[:, None]
    question = SwapCosts(frame(1, 2), "k-means", 2**40, candidates[:k], candidates)
    (part,) = question.parts

    def logs(table):
        costs = question.raw(np.array(table, dtype=np.int64).reshape(-1, 1))[0].ravel() / (times * part.length)
        return -costs - np.log(np.exp(-costs).sum())

    laws = {table: logs(table) for table in tables}
    few = [table for table in tables if len(table) < n_rows]
    pairs = [(t, tuple(sorted((*t, x)))) for t, x in product(few, LINE)]
    if is_replaced:
        pairs = [(tuple(sorted((*t, x))), tuple(sorted((*t, y)))) for t, x, y in product(few, LINE, LINE)]
    return max(np.abs(laws[one] - laws[other]).max() for one, other in pairs)


@pytest.mark.parametrize("k", [1, 2])
def test_a_choice_by_these_costs_moves_by_at_most_its_epsilon(k):
    """All tables of up to three rows on five places, epsilon 1; twice the range, as printed, costs half of it."""
    assert 0.5 < largest_move(k, LINE) <= 1
    assert 0.25 < largest_move(k, LINE, times=2) <= 0.5


def test_replacing_a_row_needs_twice_the_range():
    assert largest_move(1, LINE, is_replaced=True) > 1
    assert largest_move(1, LINE, is_replaced=True, times=2) <= 1


def test_a_candidate_outside_the_ball_would_break_that_and_is_refused(monkeypatch):
    """The guard: clip candidates, or one row moves the odds by more than epsilon."""
    with pytest.raises(AssertionError, match="in the ball"):
        largest_move(1, [*LINE, 14])
    with pytest.raises(AssertionError, match="in the ball"):
        SetCosts(frame(1, 2), "k-means", 2**40, np.array([[[0]], [[14]]]))
    monkeypatch.setattr(swaps, "check_inside", lambda *_: None)
    assert largest_move(1, [*LINE, 14]) > 1


def test_costs_of_more_rows_than_there_may_be_stop_and_do_not_wrap():
    """Blocks merge to min(sum, MOST) in any grouping, so one row more moves a cost by at most what it adds."""
    loss = Loss.within(2**30, "k-means", 1)
    question = SwapCosts(frame(1, 2**30), "k-means", 1, np.array([[-(2**30)]]), np.array([[-(2**30)], [2**30]]))
    (block,) = question.raw(np.full((BLOCK, 1), 2**30))
    (row,) = question.raw(np.array([[2**30]]))
    assert question.combine is saturating.add
    total = block
    for _ in range(60):  # doubled: 2**71 rows
        total = saturating.add(total, total)
        more = saturating.add(total, row)
        assert (total >= 0).all()
        assert (more >= total).all()
        assert (more - total).max() <= loss.highest
    assert total.max() == saturating.MOST


@given(st.lists(st.integers(0, saturating.MOST), max_size=9), st.randoms())
def test_saturating_sums_mind_neither_order_nor_grouping(numbers, random):
    expected = min(sum(numbers), saturating.MOST)
    values = np.array(numbers, dtype=np.int64)
    assert saturating.total(values) == expected
    assert saturating.running(values).tolist() == [min(sum(numbers[: n + 1]), saturating.MOST) for n in range(len(numbers))]
    left = [np.array([number]) for number in numbers] or [np.zeros(1, dtype=np.int64)]
    while len(left) > 1:
        left.append(saturating.add(left.pop(random.randrange(len(left))), left.pop(random.randrange(len(left)))))
    assert left[0].tolist() == [expected]


@given(st.integers(0, 2**62), st.integers(0, saturating.MOST))
@example(2**62, 0)
def test_a_saturating_product_is_exact_below_the_end_and_grows_by_at_most_one_value_a_row(count, value):
    found, more = saturating.product(np.array([count, count + 1]), np.array([value, value])).tolist()
    assert found == min(count * value, saturating.MOST)
    assert 0 <= found <= more <= min(found + value, saturating.MOST)
