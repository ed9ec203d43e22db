"""Algorithm 7 as printed: its law, and how it fares beside the default. Small versions of the paper's graphs."""

import numpy as np
import pytest

from kveil import Precomputed, PrivateKMedian
from kveil.research import printed_search
from kveil.research.printed_search import printed_local_search
from kveil.solve.demand import Demand
from kveil.solve.kmedian import solve_kmedian
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.testing import scripted

pytestmark = pytest.mark.research

K, SIZE = 10, 60


def clusters(far):
    """Ten clusters of 60 points, 0.1 wide, about `far` apart from each other."""
    rng = np.random.default_rng(1)
    apart = rng.uniform(far / 2, far, (K, K))
    owner = np.repeat(np.arange(K), SIZE)
    place = rng.random((K * SIZE, 4)) * 0.1
    near = np.abs(place[:, None] - place).sum(axis=2)
    far_away = np.maximum(apart, apart.T)[owner[:, None], owner] + near
    return Precomputed(np.where(owner[:, None] == owner, near, far_away)), owner


def cost(space, centers, people):
    return space.nearest(centers)[1][people].sum(dtype=np.int64)


@pytest.mark.parametrize(("far", "kind"), [(1.0, "two"), (7.0, "spread")])
def test_the_default_is_near_the_ordinary_search_and_the_printed_one_far(far, kind):
    """500 people, k = 10, epsilon 1, means of 8 scripted runs: below 1.15 and above 1.5 times an ordinary search."""
    space, owner = clusters(far)
    ours, printed = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        people = rng.choice(np.flatnonzero(owner < (2 if kind == "two" else K)), 500)
        floor = cost(space, solve_kmedian(space, Demand.of(people), K, rng, n_restarts=3).centers, people)
        with scripted(seed):
            found = PrivateKMedian(K, universe=space, random_state=seed).fit(people).center_indices_
        ours.append(cost(space, found, people) / floor)
        start = kmedian_plusplus(space, K, random_state=seed)
        walk = printed_local_search(space, np.bincount(people, minlength=600), start, rng, epsilon=1.0)
        assert len(walk.sets) == 21
        printed.append(cost(space, walk.sets[walk.chosen], people) / floor)
    assert np.mean(ours) < 1.15
    assert np.mean(printed) > 1.5


def test_where_noise_hides_most_the_default_keeps_every_cluster():
    """500 people spread over clusters far apart, epsilon 0.1: below twice an ordinary search, mean of 10 scripted runs."""
    space, _ = clusters(7.0)
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        people = rng.integers(0, 600, 500)
        floor = cost(space, solve_kmedian(space, Demand.of(people), K, rng, n_restarts=3).centers, people)
        with scripted(seed):
            found = PrivateKMedian(K, universe=space, epsilon=0.1, random_state=seed).fit(people).center_indices_
        ratios.append(cost(space, found, people) / floor)
    assert np.mean(ratios) < 2


def test_a_printed_choice_has_the_printed_rate(monkeypatch):
    """epsilon / (4 diameter (T + 1)) for every swap and for the last choice, whatever the centres are."""
    rates, real = [], printed_search._drawn
    monkeypatch.setattr(printed_search, "_drawn", lambda costs, rate, rng: rates.append(rate) or real(costs, rate, rng))
    space = Precomputed([[0, 6, 9], [6, 0, 5], [9, 5, 0]])
    printed_local_search(space, np.array([7, 1, 0]), [0], np.random.default_rng(0), epsilon=4.0, n_steps=3)
    assert rates == [4.0 / (4 * 9 * 4)] * 4


@pytest.mark.statistical
def test_a_printed_choice_has_the_printed_law():
    """Two costs, 40 000 draws; catches a rate wrong by a fifth. False alarm 1e-9: 6.1 deviations."""
    rng, costs, rate, n = np.random.default_rng(), np.array([42, 68]), 1 / 18, 40_000
    chance = 1 / (1 + np.exp(rate * 26))
    hits = sum(printed_search._drawn(costs, rate, rng) for _ in range(n))
    assert abs(hits - n * chance) < 6.1 * np.sqrt(n * chance * (1 - chance))


def test_without_a_free_point_the_walk_ends():
    walk = printed_local_search(Precomputed([[0, 1], [1, 0]]), np.array([3, 4]), [0, 1], np.random.default_rng(0), epsilon=1.0)
    assert len(walk.sets) == 1
    assert walk.chosen == 0
