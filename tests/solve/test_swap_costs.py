"""All swaps at once equal one swap after another; Algorithm 1 takes the best of them."""

import numpy as np
import pytest
from all_swaps import swap_costs

from kveil import Precomputed
from kveil.solve import local_search
from kveil.solve.demand import Demand
from kveil.solve.local_search import Swaps, best_swaps
from kveil.solve.loss import Loss


def one_by_one(space, centers, indices, weights, power):
    """The costs of all swaps in Python's integers."""
    apart = space.distances(np.arange(space.n_points)).tolist()
    costs = []
    for i in range(len(centers)):
        others = [c for j, c in enumerate(centers) if j != i]
        costs.append(
            [
                sum(w * min(apart[o][f] for f in [*others, y]) ** power for o, w in zip(indices, weights, strict=True))
                for y in range(space.n_points)
            ]
        )
    return costs


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_every_swap_costs_what_counting_says(make, k, objective):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        space = make(rng, 12)
        centers = rng.choice(12, k, replace=False).tolist()
        indices, weights = rng.integers(0, 12, 9).tolist(), rng.integers(0, 5, 9).tolist()  # repeated points, zero weights
        costs = swap_costs(space, centers, indices, weights, objective=objective)
        assert costs.dtype == np.int64
        assert costs.tolist() == one_by_one(space, centers, indices, weights, 1 if objective == "k-median" else 2)


@pytest.mark.parametrize("block_pairs", [1, 40, 10**6])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("is_kept", [True, False])
def test_blocks_and_threads_change_nothing(make, block_pairs, n_threads, is_kept, monkeypatch):
    rng = np.random.default_rng(3)
    space, centers = make(rng, 30), [3, 14, 15, 9]
    demand = Demand.of(np.arange(30), rng.integers(0, 1000, 30))
    expected = swap_costs(space, centers, demand.indices, demand.weights)
    monkeypatch.setattr(local_search, "MOST_PAIRS", 10**6 if is_kept else 0)
    swaps = Swaps(space, demand, Loss(is_squared=False), block_pairs=block_pairs, n_threads=n_threads)
    assert np.array_equal(swaps.costs(centers), expected)
    assert np.array_equal(swaps.costs(centers), expected)  # and again, from what was kept
    assert swaps.cost(centers) == expected[0, centers[0]]


def test_large_weights_and_squares_are_shifted_down_instead_of_overflowing():
    far = 2**30
    space = Precomputed(np.array([[0, far, 3], [far, 0, far], [3, far, 0]]))
    weights = [2**33, 1, 2**33]
    loss = Loss.within(space.diameter, "k-means", sum(weights))
    assert loss.shift == 61 + 35 - 62
    costs = swap_costs(space, [1], [0, 1, 2], weights, objective="k-means")
    assert costs[0].tolist() == [(far * far) >> loss.shift, 2 * 2**33 * ((far * far) >> loss.shift), (far * far) >> loss.shift]
    assert (costs >= 0).all()
    assert loss.worth(0.5) == 2.0**loss.shift / 4


def test_no_demand_costs_nothing():
    space = Precomputed([[0, 1], [1, 0]])
    assert swap_costs(space, [0], [], []).tolist() == [[0, 0]]


def literal_search(space, centers, indices, weights, alpha, max_steps):
    centers = list(centers)
    apart = space.distances(np.arange(space.n_points)).tolist()
    cost = sum(w * min(apart[o][f] for f in centers) for o, w in zip(indices, weights, strict=True))
    for _ in range(max_steps):
        costs = one_by_one(space, centers, indices, weights, 1)
        swaps = [(costs[i][y], i, y) for i in range(len(centers)) for y in range(space.n_points) if y not in centers]
        if not swaps or cost == 0 or min(swaps)[0] > (1 - alpha / len(centers)) * cost:
            break
        cost, i, y = min(swaps)
        centers[i] = y
    return centers, cost


@pytest.mark.parametrize("alpha", [1e-3, 0.3])
def test_the_search_by_best_swaps_is_the_literal_one(make, alpha):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        space, k = make(rng, 10), int(rng.integers(1, 5))
        start, weights = rng.choice(10, k, replace=False), rng.integers(0, 4, 10)
        swaps = Swaps(space, Demand.of(np.arange(10), weights), Loss(is_squared=False))
        found = best_swaps(swaps, start, alpha=alpha, max_steps=20)
        expected = literal_search(space, start.tolist(), range(10), weights.tolist(), alpha, 20)
        assert (found.centers.tolist(), found.cost) == expected


def test_the_search_by_best_swaps_stops_when_told_and_when_every_point_is_a_centre():
    space = Precomputed(np.abs(np.subtract.outer(np.arange(9), np.arange(9))))
    swaps = Swaps(space, Demand.of(np.arange(9)), Loss(is_squared=False))
    assert best_swaps(swaps, [0, 1, 2], max_steps=0).centers.tolist() == [0, 1, 2]
    assert best_swaps(swaps, np.arange(9)[::-1]).centers.tolist() == list(range(9))[::-1]
    assert best_swaps(swaps, [0]).centers.tolist() == [4]
