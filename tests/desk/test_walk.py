"""Costs of a demand after every swap, against adding up row by row."""

import numpy as np
import pytest

from kveil import Euclidean, Graph
from kveil.desk import walk
from kveil.desk.walk import PlaceCosts
from kveil.solve.loss import Loss

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
    monkeypatch.setattr(walk, "BLOCK_PAIRS", pairs)
    monkeypatch.setattr(walk, "MOST_PAIRS", pairs)
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
    one, other = costs.sets([centers, candidates]).tolist()
    assert one - other == one_by_one(space, loss, counts, centers) - one_by_one(space, loss, counts, candidates)


def test_nobody_costs_nothing():
    space = SPACES["points"]
    costs = PlaceCosts(space, np.zeros(40, dtype=np.int64), np.arange(40), Loss.within(space.diameter, "k-median", 2**40))
    assert not costs.swaps(np.array([1, 2])).any()
    assert costs.sets([np.array([3])]).tolist() == [0]


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
def test_more_rows_than_there_may_be_stop_every_cost_and_a_row_more_moves_none_beyond_its_own(objective):
    """With a false bound on the rows a cost would wrap, and one row would move it by 2**64."""
    space = Euclidean([[0.0], [1.0], [0.75]], bits=26)
    loss = Loss.within(space.diameter, objective, 1)
    most = int(loss.of(space.diameter))
    near = (2**62 - 1) // most  # so many rows at one point cost as much as a cost may be
    sets = [np.array([0]), np.array([1]), np.array([2])]
    for counts in ([near - 1, 0, 0], [near, near, 0], [2**61, 5, 2**61], [near, near, near]):
        for place in range(3):
            without, more = (
                PlaceCosts(space, np.array(counts) + extra * np.eye(3, dtype=np.int64)[place], np.arange(3), loss)
                for extra in (0, 1)
            )
            moved = more.swaps(np.array([0])) - without.swaps(np.array([0]))
            assert (moved >= 0).all()
            assert moved.max() <= most
            assert more.swaps(np.array([0])).max() < 2**62
            moved = more.sets(sets) - without.sets(sets)
            losses = np.array([loss.of(space.nearest(centers)[1][place]) for centers in sets])
            assert 0 <= moved.min() <= moved.max() <= np.ptp(losses)  # as far as a choice among them expects


def test_as_many_rows_as_there_may_be_do_not_overflow():
    space = Euclidean([[0.0], [1.0]], bits=26)
    for objective in ("k-median", "k-means"):
        loss = Loss.within(space.diameter, objective, 2**40)
        costs = PlaceCosts(space, np.array([2**40, 0]), np.arange(2), loss)
        assert 0 < costs.swaps(np.array([0]))[0, 1] < 2**62
