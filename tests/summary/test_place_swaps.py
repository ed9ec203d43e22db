"""Costs of a demand after every swap, against adding up row by row."""

import numpy as np
import pytest

from kveil import Euclidean, Graph
from kveil.solve.loss import Loss
from kveil.summary import place_swaps
from kveil.summary.place_swaps import PlaceCosts

RNG = np.random.default_rng(0)
PIECES = Graph.from_edges(RNG.integers(0, 40, (60, 2)), lengths=RNG.integers(0, 9, 60), n_points=40, truncate=25)
SPACES = {"points": Euclidean(RNG.random((40, 3)), bits=10), "graph in pieces": PIECES}


def one_by_one(space, loss, counts, centers):
    return int(counts @ loss.of(space.distances(centers).min(axis=0)))


@pytest.mark.parametrize("pairs", [1, 100, 10**6])
@pytest.mark.parametrize("objective", ["k-median", "k-means"])
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("k", [1, 3])
def test_every_swap_costs_what_its_rows_add_up_to(name, objective, k, pairs, monkeypatch):
    monkeypatch.setattr(place_swaps, "BLOCK_PAIRS", pairs)
    monkeypatch.setattr(place_swaps, "MOST_PAIRS", pairs)
    space = SPACES[name]
    loss = Loss.within(space.diameter, objective, 2**40)
    counts = RNG.poisson(1.0, 40)
    centers, candidates = RNG.choice(40, k, replace=False), np.sort(RNG.choice(40, 15, replace=False))
    costs = PlaceCosts(space, counts, candidates, loss)
    found = costs.swaps(centers)
    for x in range(k):
        for place, y in enumerate(candidates):
            swapped = np.append(np.delete(centers, x), y)
            assert found[x, place] == one_by_one(space, loss, counts, swapped)
    assert costs.sets([centers, candidates]).tolist() == [one_by_one(space, loss, counts, c) for c in (centers, candidates)]


def test_nobody_costs_nothing():
    space = SPACES["points"]
    costs = PlaceCosts(space, np.zeros(40, dtype=np.int64), np.arange(40), Loss.within(space.diameter, "k-median", 2**40))
    assert not costs.swaps(np.array([1, 2])).any()
    assert costs.sets([np.array([3])]).tolist() == [0]


def test_as_many_rows_as_there_may_be_do_not_overflow():
    space = Euclidean([[0.0], [1.0]], bits=26)
    for objective in ("k-median", "k-means"):
        loss = Loss.within(space.diameter, objective, 2**40)
        costs = PlaceCosts(space, np.array([2**40, 0]), np.arange(2), loss)
        assert 0 < costs.swaps(np.array([0]))[0, 1] < 2**62
