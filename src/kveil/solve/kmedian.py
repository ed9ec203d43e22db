"""k centres among the points of a universe with a low cost for a weighted demand: seeds, eager search, perturbations.

Small universes are searched whole, to a local optimum: among a few hundred points first, then among all. In large ones
candidates stand in for the rest: first many k-median++ draws, which are where the demand is, then points around the centres
found. That is about 0.1 % worse and several times quicker.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kveil.arrays import Integers
from kveil.solve.demand import Demand
from kveil.solve.eager import Search, fits, search_for
from kveil.solve.hst import hst_seeds
from kveil.solve.local_search import Found
from kveil.solve.loss import Loss, Objective
from kveil.solve.metric_seeding import spread
from kveil.solve.perturbed import perturbed_search
from kveil.space.graph import Graph
from kveil.space.universe import Space

Rng = np.random.Generator
Init = Literal["hst", "k-median++", "random"]
INITS = ("hst", "k-median++", "random")

RESTARTS, SHAKES, FEW_PAIRS = 3, 50, 2**24
TWICE = 50  # centres, of which the better of two searches is kept: local optima lie further above the best ones
FIRST, FOR_EACH = 400, 20  # points, or so many for a centre if that is more, that are candidates before all are, for coarse swaps
DRAWN, AROUND = 600, 300  # candidates by k-median++, and around all centres together; 10 for every centre if that is more
PARTS = (4, 16, 64)  # of its cluster around a centre, nearer and nearer


def solve_kmedian(
    space: Space,
    demand: Demand,
    n_clusters: int,
    rng: Rng,
    *,
    objective: Objective = "k-median",
    init: Init = "k-median++",
    n_restarts: int = 1,
    n_perturbations: int = 0,
    max_rounds: int = 100,
) -> Found:
    """The cheapest of `n_restarts` searches from fresh seeds. `n_clusters` distinct points, at most as many as there are.

    The cost counts in units of `Loss.within(space.diameter, objective, demand.total)`.
    """
    loss = Loss.within(space.diameter, objective, demand.total)
    search = search_for(space, demand, loss, n_clusters, n_restarts * (1 + n_perturbations))
    runs = []
    for _ in range(n_restarts):
        seeds = _seeds(space, demand, n_clusters, loss, objective, init, rng)
        found, candidates = _searched(space, demand, loss, search, seeds, max_rounds, rng)
        runs.append(perturbed_search(search, found, candidates, n_perturbations, max_rounds, rng))
    return min(runs, key=lambda run: run.cost)


def default_effort(space: Space, demand: Demand, n_clusters: int) -> tuple[int, int]:
    """Searches from fresh seeds, and perturbations of each, where nobody says how many: more on graphs, whose local optima differ
    most, and where a search takes a fraction of a second anyway."""
    if not isinstance(space, Graph) and space.n_points * len(demand.indices) > FEW_PAIRS:
        return (2 if n_clusters >= TWICE and fits(space, demand) else 1), 0
    return (1, SHAKES) if fits(space, demand) else (RESTARTS, 0)


def _seeds(space: Space, demand: Demand, k: int, loss: Loss, objective: Objective, init: Init, rng: Rng) -> Integers:
    if init == "random":
        return np.asarray(rng.choice(space.n_points, k, replace=False))
    if init == "k-median++":
        return spread(space, demand, loss, k, rng)
    weights = np.zeros(space.n_points, dtype=np.int64)
    weights[demand.indices] = demand.weights
    return hst_seeds(space, k, weights, rng, objective=objective)


def _searched(
    space: Space, demand: Demand, loss: Loss, search: Search, seeds: Integers, max_rounds: int, rng: Rng
) -> tuple[Found, Integers]:
    """A local optimum and the candidates it was found among."""
    if fits(space, demand):
        everywhere = rng.permutation(space.n_points)
        found = search.improve(seeds, everywhere[: max(FIRST, FOR_EACH * len(seeds))], max_rounds)
        return search.settle(found.centers, everywhere, max_rounds), everywhere
    k = len(seeds)
    pool = spread(space, demand, loss, min(max(DRAWN, 10 * k), space.n_points), rng)
    found = search.improve(seeds, pool, max_rounds)
    for part in PARTS:
        near = around(space, found.centers, max(AROUND, 10 * k) // k, part, rng)
        found = search.improve(found.centers, rng.permutation(near), max_rounds)
        pool = np.union1d(pool, near)
    return found, pool


def around(space: Space, centers: Integers, n_each: int, part: int, rng: Rng) -> Integers:
    """For every centre `n_each` random ones of the nearest points of its cluster: the nearest `part`-th, and at least 20."""
    owner, first = space.nearest(centers)[:2]
    order = np.lexsort((first, owner))
    clusters = np.split(order, np.searchsorted(owner[order], np.arange(1, len(centers))))
    nearest = [cluster[: max(20, len(cluster) // part)] for cluster in clusters]
    return np.concatenate([rng.permutation(points)[:n_each] for points in nearest]).astype(np.int64)
