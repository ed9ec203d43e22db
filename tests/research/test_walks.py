"""Walks of private searches: what is measured of them, the corrected one step by step, and the one that looks at nothing."""

from itertools import pairwise

import numpy as np
import pytest

from kveil import Precomputed
from kveil.desk.pool import Pool
from kveil.research.walks import aimless_sets, corrected_walk, steps_to_least
from kveil.testing import scripted

pytestmark = pytest.mark.research

LINE = Precomputed(np.abs(np.arange(30)[:, None] - np.arange(30)).astype(np.int32))


def test_steps_are_counted_to_the_first_of_the_five_that_cost_least():
    assert steps_to_least([9, 9, 1, 1, 1, 1, 1, 9, 9]) == 3
    assert steps_to_least([1, 1, 1, 1, 1, 9]) == 1
    assert steps_to_least([9, 1, 9, 9, 9, 9, 3, 3, 3, 3, 3]) == 7  # not where a single one is least
    assert steps_to_least([2] * 8) == 1
    assert steps_to_least([1, 2, 3, 4]) is None


def test_a_corrected_walk_with_much_budget_goes_straight_down_and_its_costs_are_exact():
    counts = np.zeros(30, dtype=np.int64)
    counts[[3, 4, 5, 20, 21]] = (10, 50, 10, 30, 5)
    with scripted(0):
        first, second, third, fourth = corrected_walk(
            LINE, counts, np.array([28, 29]), np.random.default_rng(0), epsilon=1000.0, n_steps=4
        )
    assert first == 10 + 10 + 30 * 8 + 5 * 7  # one at the larger heap, one still at 28
    assert second == 10 + 10 + 5  # one at each heap
    assert third > second == fourth  # a step is a swap, also where none is better


def test_a_corrected_walk_pays_an_equal_share_for_every_step_and_the_last_choice(monkeypatch):
    shares, real = [], Pool.choose
    monkeypatch.setattr(Pool, "choose", lambda pool, part, raw, share: shares.append(share) or real(pool, part, raw, share))
    corrected_walk(LINE, np.ones(30, dtype=np.int64), np.array([0, 9]), np.random.default_rng(0), epsilon=1.0, n_steps=6)
    assert shares == [1 / 7] * 7


def test_an_aimless_walk_swaps_one_centre_for_another_point_each_time():
    start = np.array([4, 7, 9])
    sets = [set(start.tolist()), *({*centers.tolist()} for centers in aimless_sets(12, start, np.random.default_rng(0), 50))]
    assert len(sets) == 51
    assert all(len(some) == 3 and len(some & after) == 2 for some, after in pairwise(sets))
    assert set().union(*sets) == set(range(12))
    assert list(aimless_sets(3, np.arange(3), np.random.default_rng(0), 5)) == []
