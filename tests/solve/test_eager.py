"""Eager search ends in a local optimum, on tables and on graphs alike, and keeps its books exactly."""

import numpy as np
import pytest
from all_swaps import swap_costs

from kveil import Graph, Precomputed
from kveil.solve import _graph_kernels, _kernels, eager
from kveil.solve.demand import Demand
from kveil.solve.eager import GraphSearch, TableSearch, search_for
from kveil.solve.loss import Loss

OBJECTIVES = ["k-median", "k-means"]


def problem(make, seed, objective):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    space, k = make(rng, n), int(rng.integers(1, min(6, n) + 1))
    demand = Demand.of(np.arange(n), rng.integers(0, 4, n))
    loss = Loss.within(space.diameter, objective, demand.total)
    return space, demand, loss, rng.choice(n, k, replace=False), rng.permutation(n)


def cost_of(space, demand, loss, centers):
    return int(loss.of(space.distances(centers, demand.indices).min(axis=0)) @ demand.weights)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_swap_is_left_that_would_lower_the_cost(make, objective):
    for seed in range(40):
        space, demand, loss, start, order = problem(make, seed, objective)
        found = TableSearch(space, demand, loss).improve(start, order, 100)
        assert found.cost == cost_of(space, demand, loss, found.centers) <= cost_of(space, demand, loss, start)
        assert swap_costs(space, found.centers, demand.indices, demand.weights, objective=objective).min() >= found.cost
        assert len(set(found.centers.tolist())) == len(start)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_settled_centres_leave_no_swap_that_would_lower_the_cost(make, objective, monkeypatch):
    """With few tried by themselves, so that bounds have to tell of all others."""
    monkeypatch.setattr(eager, "NEXT", 2)
    for seed in range(40):
        space, demand, loss, start, order = problem(make, seed, objective)
        search = TableSearch(space, demand, loss)
        for found in (search.settle(start, order, 100), search.settle(start, order[::-1], 100)):
            assert found.cost == cost_of(space, demand, loss, found.centers) <= cost_of(space, demand, loss, start)
            assert swap_costs(space, found.centers, demand.indices, demand.weights, objective=objective).min() >= found.cost
            assert len(set(found.centers.tolist())) == len(start)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_never_pass_the_least_cost_of_a_swap(make, objective):
    """Whatever swaps came since, cheaper or not; and right after all were valued they are that cost."""
    for seed in range(40):
        space, demand, loss, start, _ = problem(make, seed, objective)
        search, rng, n = TableSearch(space, demand, loss), np.random.default_rng(seed), space.n_points
        state = search._start(start.copy())
        _kernels.try_all(*search.across, np.argsort(state.owner, kind="stable"), state)
        for step in range(5 if len(start) < n else 0):
            least = swap_costs(space, state.centers, demand.indices, demand.weights, objective=objective).min(axis=0)
            others = np.flatnonzero(~state.is_center)
            bounds = (state.bound - state.totals[1])[others]
            assert (bounds <= least[others]).all()
            assert step > 0 or np.array_equal(bounds, least[others])
            x, y = int(rng.integers(len(start))), int(rng.choice(others))
            row = search.table[y]
            there, near, far = loss.of(row), loss.of(state.first), loss.of(state.second)
            change = state.removal.copy()
            np.add.at(change, state.owner, -demand.weights * np.maximum(far - np.maximum(there, near), 0))
            _kernels.note_swap(x, int(demand.weights @ np.maximum(near - there, 0)), change, state)
            _kernels.swap(x, y, row, state)


def test_bounds_start_anew_before_their_sums_overflow():
    search = TableSearch(Precomputed([[0, 1], [1, 0]]), Demand.of([0, 1]), Loss(is_squared=False))
    state = search._start(np.array([0]))
    state.bound[:], state.totals[1] = 5, _kernels.FULL - 1
    _kernels.note_swap(1, 1, state.removal.copy(), state)
    assert state.totals[1] == 0
    assert (state.bound == _kernels.UNTRIED).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_searches_along_arcs_make_the_swaps_of_searches_on_tables(make_graph, objective):
    for seed in range(60):
        space, demand, loss, start, order = problem(make_graph, seed, objective)
        on_table = TableSearch(space, demand, loss).improve(start, order, 100)
        on_arcs = GraphSearch(space, demand, loss).improve(start, order, 100)
        assert (on_arcs.centers.tolist(), on_arcs.cost) == (on_table.centers.tolist(), on_table.cost)
        assert swap_costs(space, on_arcs.centers, demand.indices, demand.weights, objective=objective).min() >= on_arcs.cost


@pytest.mark.parametrize("block_pairs", [1, 70, 10**6])
def test_rows_that_do_not_fit_are_asked_for_in_blocks_of_any_size(make, block_pairs, monkeypatch):
    for seed in range(10):
        space, demand, loss, start, order = problem(make, seed, "k-median")
        expected = TableSearch(space, demand, loss).improve(start, order, 100)
        with monkeypatch.context() as patch:
            patch.setattr(eager, "MOST_PAIRS", 0)
            patch.setattr(eager, "fits", lambda space, demand: False)
            found = TableSearch(space, demand, loss, block_pairs=block_pairs).improve(start, order, 100)
        assert found.centers.tolist() == expected.centers.tolist()


def test_labels_mended_around_a_swap_are_those_of_a_fresh_search(make_graph):
    """The second nearest centre too, and whatever stands in one place with two others."""
    for seed in range(60):
        space, demand, loss, start, _ = problem(make_graph, seed, "k-median")
        search, n = GraphSearch(space, demand, loss), space.n_points
        state, rng = search.start(start.copy()), np.random.default_rng(seed)
        apart = space.distances(np.arange(n))
        for _ in range(6 if len(start) < n else 0):
            y = int(rng.choice(np.setdiff1d(np.arange(n), state.centers)))
            _graph_kernels.swap(search.graph, int(rng.integers(len(start))), y, state, search.room)
            ranked = np.sort(apart[state.centers], axis=0)
            assert np.array_equal(state.first, ranked[0])
            assert np.array_equal(state.second, ranked[1] if len(start) > 1 else np.full(n, space.diameter))
            assert np.array_equal(apart[state.centers[state.owner], np.arange(n)], state.first)
            known = np.flatnonzero(state.runner >= 0)
            assert np.array_equal(apart[state.centers[state.runner[known]], known], state.second[known])
            assert (state.runner[known] != state.owner[known]).all()
            assert (search.room.tentative == _graph_kernels.FAR).all()
            assert np.flatnonzero(state.is_center).tolist() == sorted(state.centers.tolist())


@pytest.mark.parametrize("engine", [TableSearch, GraphSearch])
def test_one_round_is_one_pass_over_the_candidates(engine):
    line = Graph.from_edges([[i, i + 1] for i in range(8)])
    search = engine(line, Demand.of(np.arange(9)), Loss(is_squared=False))
    assert search.improve([0], np.array([1, 2, 3]), 1).centers.tolist() == [3]
    assert search.improve([0], np.array([1, 2, 3]), 0).centers.tolist() == [0]
    assert search.improve([0], np.arange(9), 9).centers.tolist() == [4]
    assert search.improve([0], np.arange(0), 9).centers.tolist() == [0]


@pytest.mark.parametrize("engine", [TableSearch, GraphSearch])
def test_nobody_to_serve_and_nowhere_to_go(engine):
    line = Graph.from_edges([[0, 1], [1, 2]])
    assert engine(line, Demand.of([]), Loss(is_squared=False)).improve([2], np.arange(3), 5) == ([2], 0)
    assert engine(line, Demand.of([0, 1, 2]), Loss(is_squared=False)).improve([2, 0, 1], np.arange(3), 5).cost == 0


def test_the_engine_suits_the_universe_and_the_work():
    line = Graph.from_edges([[i, i + 1] for i in range(99)])
    everyone, loss = Demand.of(np.arange(100)), Loss(is_squared=False)
    assert isinstance(search_for(line, everyone, loss, 20), GraphSearch)
    assert isinstance(search_for(line, everyone, loss, 20, n_searches=500), TableSearch)  # a table pays off
    assert isinstance(search_for(line, Demand.of([3, 5]), loss, 20), TableSearch)
    matrix = Precomputed(line.distances(np.arange(100)))
    search = search_for(matrix, everyone, loss, 20)
    assert isinstance(search, TableSearch)
    assert search.table is matrix.matrix  # not copied
