"""The whole solver: proven optima, candidates in place of all points, and universes with no room to choose."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from kveil import Euclidean, Graph, Precomputed
from kveil.solve import eager
from kveil.solve.demand import Demand
from kveil.solve.eager import TableSearch
from kveil.solve.kmedian import INITS, around, solve_kmedian
from kveil.solve.local_search import Found
from kveil.solve.loss import Loss
from kveil.solve.perturbed import perturbed_search


def p_median_graph(n, n_edges, seed):
    """A random graph with whole lengths, as in the OR-Library: a tree through all vertices, then random edges."""
    rng = np.random.default_rng(seed)
    tree = [[rng.integers(0, v), v] for v in range(1, n)]
    edges = np.concatenate([tree, rng.integers(0, n, (n_edges - n + 1, 2))])
    return Graph.from_edges(edges, lengths=rng.integers(1, 100, len(edges)))


def proven_optimum(apart, k):
    """The p-median problem as an integer program: y_j opens a centre, x_ij serves i from j."""
    n = len(apart)
    cost = np.concatenate([np.zeros(n), apart.ravel()])
    served = np.hstack([np.zeros((n, n)), np.kron(np.eye(n), np.ones(n))])
    opened = np.hstack([-np.tile(np.eye(n), (n, 1)), np.eye(n * n)])  # x_ij <= y_j
    count = np.concatenate([np.ones(n), np.zeros(n * n)])[None]
    rules = [LinearConstraint(served, 1, 1), LinearConstraint(opened, -np.inf, 0), LinearConstraint(count, k, k)]
    whole = np.concatenate([np.ones(n), np.zeros(n * n)])
    return round(milp(cost, constraints=rules, integrality=whole, bounds=Bounds(0, 1)).fun)


@pytest.mark.parametrize("init", INITS)
def test_perturbations_reach_the_proven_optimum(init):
    space = p_median_graph(30, 90, seed=1)
    everyone = Demand.of(np.arange(30))
    best = proven_optimum(space.distances(np.arange(30)).astype(float), 5)
    for seed in range(4):
        plain = solve_kmedian(space, everyone, 5, np.random.default_rng(seed), init=init)
        thorough = solve_kmedian(space, everyone, 5, np.random.default_rng(seed), init=init, n_perturbations=100)
        assert best <= plain.cost <= 1.2 * best
        assert thorough.cost == best


def test_restarts_keep_the_cheapest():
    space, rng = p_median_graph(200, 600, seed=2), np.random.default_rng(0)
    everyone = Demand.of(np.arange(200))
    singles = [solve_kmedian(space, everyone, 20, np.random.default_rng(seed)).cost for seed in range(12)]
    assert len(set(singles)) > 1
    assert solve_kmedian(space, everyone, 20, rng, n_restarts=12).cost <= np.median(singles)


def test_a_perturbation_is_kept_only_if_it_is_not_worse():
    class Dearer:
        def improve(self, centers, candidates, max_rounds):
            assert len(set(centers.tolist())) == len(centers)
            return Found(centers, 11)

    start = Found(np.array([3, 1, 4]), 10)
    assert perturbed_search(Dearer(), start, np.arange(9), 20, 5, np.random.default_rng(0)) is start


def least_cost(apart, k):
    """By trying all choices of k points."""
    return min(apart[list(centers)].min(axis=0).sum() for centers in combinations(range(len(apart)), k))


def test_tiny_universes_are_solved_to_the_best_of_all_choices(make):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        space, k = make(rng, 9), int(rng.integers(1, 5))
        found = solve_kmedian(space, Demand.of(np.arange(9)), k, rng, n_perturbations=20)
        assert found.cost == least_cost(space.distances(np.arange(9)), k)


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
@pytest.mark.parametrize("kind", ["graph", "points"])
def test_candidates_do_nearly_as_well_as_all_points(kind, objective, monkeypatch):
    rng = np.random.default_rng(0)
    space = p_median_graph(2500, 6000, seed=3) if kind == "graph" else Euclidean(rng.random((2500, 3)))
    demand = Demand.of(np.arange(2500), rng.integers(0, 3, 2500))
    whole = solve_kmedian(space, demand, 10, np.random.default_rng(1), objective=objective)
    monkeypatch.setattr(eager, "MOST_PAIRS", 2**20)
    part = solve_kmedian(space, demand, 10, np.random.default_rng(1), objective=objective)
    assert part.cost <= 1.05 * whole.cost
    loss = Loss.within(space.diameter, objective, demand.total)
    assert part.cost == loss.of(space.distances(part.centers, demand.indices).min(axis=0)) @ demand.weights


def test_candidates_around_a_centre_are_among_the_nearest_of_its_cluster():
    line = Euclidean(np.arange(1000.0)[:, None])
    near = around(line, np.array([200, 800]), 15, 10, np.random.default_rng(0))
    assert len(near) == len(set(near.tolist())) == 30
    assert (np.minimum(abs(near - 200), abs(near - 800)) <= 25).all()


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize(
    ("space", "k"),
    [
        (Precomputed([[0]]), 1),
        (Precomputed(np.zeros((5, 5), dtype=int)), 3),
        (Euclidean(np.repeat([[1.0], [2.0]], 4, axis=0)), 2),
        (Euclidean(np.repeat([[1.0], [2.0]], 4, axis=0)), 5),
        (Euclidean(np.arange(4.0)[:, None]), 4),
        (Graph.from_edges([[0, 1]], n_points=4, truncate=3), 4),
    ],
    ids=["one point", "one place", "k places", "fewer places than k", "k points", "pieces"],
)
def test_where_every_demand_has_its_centre_it_costs_nothing(space, k, init):
    found = solve_kmedian(space, Demand.of(np.arange(space.n_points)), k, np.random.default_rng(0), init=init, n_perturbations=3)
    assert found.cost == 0
    assert len(set(found.centers.tolist())) == k


def test_no_demand_at_all_still_gives_centres():
    space = p_median_graph(20, 40, seed=0)
    for init in INITS:
        found = solve_kmedian(space, Demand.of([]), 3, np.random.default_rng(0), init=init, n_perturbations=2)
        assert len(set(found.centers.tolist())) == 3
        assert found.cost == 0


def test_fixed_point_weights_keep_whole_numbers_and_round_others_finely():
    whole = Demand.weighted([3.0, 0.0, 5.0])
    assert (whole.indices.tolist(), whole.weights.tolist(), whole.unit) == ([0, 2], [3, 5], 1.0)
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-9, 1.0, 1e12, 1e308):
        weights = scale * rng.random(1000)
        demand = Demand.weighted(weights)
        assert 2**29 < demand.total <= 2**30 + 1000
        assert np.abs(demand.weights * demand.unit - weights).max() <= 1000 * scale * 2.0**-29
    repeated = Demand.of([4, 1, 4], [1, 2, 3])
    assert (repeated.indices.tolist(), repeated.weights.tolist()) == ([1, 4], [2, 4])


def test_weights_that_only_differ_by_a_factor_have_the_same_centres():
    space, rng = Euclidean(np.random.default_rng(0).random((60, 2))), np.random.default_rng(3)
    weights = rng.random(60)
    searched = [TableSearch(space, Demand.weighted(f * weights), Loss(is_squared=False)).improve([0, 1], np.arange(60), 50)
                for f in (1, 4, 2.0**-40)]  # fmt: skip
    assert len({tuple(found.centers.tolist()) for found in searched}) == 1
