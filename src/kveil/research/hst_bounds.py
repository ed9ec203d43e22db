"""Checkable theorems of the HST paper, measured: how good its seeds are, how many swaps they leave to do, what bounds amount to.

"k-Median Clustering via Metric Embedding", without privacy: Theorem 3.7 (`tree_optimum` has its costs), Theorem 3.8 and Theorem
3.10; with it, the additive terms of Theorems 4.2 and 4.3. On the paper's made-up graphs and on islands far apart, where a start
matters more, with all points as the demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import numpy as np

from kveil.arrays import Integers
from kveil.partition.hst import Hst
from kveil.research.median_cases import clustered_graph
from kveil.research.tree_optimum import tree_costs
from kveil.solve.demand import Demand
from kveil.solve.hst import seeds_from_counts
from kveil.solve.local_search import Swaps, best_swaps
from kveil.solve.loss import Loss
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.space.matrix import Precomputed
from kveil.space.universe import Space
from kveil.space.vectors import Euclidean

LEVELS = 20  # the theorems are about trees whose leaves are single points, or nearly so
CONSTANT = 5  # of an optimum: where Algorithm 1 ends at the latest (Arya et al. 2004, quoted in section 2.1)
ISLANDS = 20
UNIVERSES = ("graph-r1", "graph-r100", "islands")
STARTS = ("random", "k-median++", "HST")


class Search(NamedTuple):
    """Algorithm 1 from one start: cost of the seeds over the best cost known, swaps until at most 5 times that, and in all."""

    start: str
    seeds: float
    swaps_to_constant: int
    swaps_to_end: int


class Measured(NamedTuple):
    """One universe, one k, one run. `tree` is the cost of Algorithm 4 over the optimum, both in the metric of the tree."""

    universe: str
    points: int
    k: int
    tree: float
    searches: tuple[Search, ...]


def measure(universe: str, n: int, clusters: tuple[int, ...], runs: int) -> Iterator[Measured]:
    """All starts on `n` points, at every k, run by run. The best cost known is the lowest that any start reached."""
    space = Precomputed(_universe(universe, n).distances(np.arange(n)))
    everyone = np.ones(n, dtype=np.int64)
    swaps = Swaps(space, Demand.of(np.arange(n)), Loss(is_squared=False))
    for number in range(runs):
        rng = np.random.default_rng([number, n])
        tree = Hst.of(space, levels=LEVELS, beta=1.0, random_state=rng)  # the paper's
        for k in clusters:
            in_tree = tree_costs(tree, everyone, k)
            walks = [_walk(swaps, _seeds(start, space, tree, k, rng)) for start in STARTS]
            lowest = min(walk[-1] for walk in walks)
            found = [_search(start, walk, lowest) for start, walk in zip(STARTS, walks, strict=True)]
            yield Measured(universe, n, k, in_tree.seeds / in_tree.optimum, tuple(found))


def seeds_term(n: int, k: int, epsilon: float) -> float:
    """k log n / epsilon of Theorem 4.2, in diameters, without its factor O(log n)."""
    return k * log(n) / epsilon


def search_term(n: int, k: int, epsilon: float, steps: int) -> float:
    """The additive term of Theorem 4.3 in diameters, by its proof (B.5): 24 k log n / eps' + 4 log n / eps'."""
    return (24 * k + 4) * log(n) * 4 * (steps + 1) / epsilon


def proved_steps(n: int, k: int) -> float:
    """T of that proof, 6 C k log log n, for C = 1."""
    return 6 * k * log(log(n))


def _universe(name: str, n: int) -> Space:
    """One of the paper's graphs, or twenty islands of radius about 1 in a square of side 1000."""
    if name != "islands":
        return clustered_graph(n, int(name.removeprefix("graph-r")))[0]
    rng = np.random.default_rng(n)
    island = rng.permutation(np.arange(n) % ISLANDS)
    return Euclidean(1000 * rng.random((ISLANDS, 2))[island] + rng.standard_normal((n, 2)))


def _seeds(start: str, space: Space, tree: Hst, k: int, rng: np.random.Generator) -> Integers:
    if start == "random":
        return np.asarray(rng.choice(space.n_points, k, replace=False))
    if start == "k-median++":
        return kmedian_plusplus(space, k, random_state=rng)
    return seeds_from_counts(tree, tree.sums(np.ones(space.n_points, dtype=np.int64)), k, rng)


def _walk(swaps: Swaps, seeds: Integers) -> list[int]:
    """Costs of Algorithm 1 from its seeds to its end, however many swaps that takes."""
    costs, centers = [swaps.cost(seeds)], seeds
    while True:
        found = best_swaps(swaps, centers, max_steps=1)
        if found.cost >= costs[-1]:
            return costs
        centers = found.centers
        costs.append(found.cost)


def _search(start: str, walk: list[int], lowest: int) -> Search:
    near = next(step for step, cost in enumerate(walk) if cost <= CONSTANT * lowest)
    return Search(start, walk[0] / lowest, near, len(walk) - 1)
