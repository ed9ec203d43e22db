"""Private local search among the points of a universe: a start, a few swaps by the exponential mechanism, and a last choice."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT, Ticket
from kveil.kernel.loss import Plan, zcdp_rho
from kveil.models._method import Found
from kveil.models._task import check_count
from kveil.models._universe import OnUniverse, UniverseTask, found_among
from kveil.partition.hst import Hst
from kveil.partition.voronoi import spread
from kveil.privatise.pool import LEAST_UNITS, Pool
from kveil.privatise.tree_counts import LEVELS, noisy_tree_counts
from kveil.solve.hst import seeds_from_counts
from kveil.solve.loss import Loss
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.space.universe import Space
from kveil.summary.demand import point_counts
from kveil.summary.place_swaps import PlaceCosts
from kveil.tuning import LocalSearch as LocalSearchTuning

Integers = NDArray[np.int64]
Choose = Callable[[str, Integers, int], int]  # label, raw costs, how much what a row adds to them may differ; the index chosen

STEPS = 5  # more steps share the same budget, and each of them then sees less
ALL = 20_000  # points that may all be candidates


class LocalSearch(OnUniverse):
    """Private k-median or k-means by swaps, each drawn by the exponential mechanism from all of them.

    Private:      the demand and its size.  Public: the universe, the tree, the candidates, the number of steps, all parameters.
    Neighbours:   those of the plan; a person has at most q rows.
    Sensitivity:  given centres F that are public by now, a row at p adds between 0 and loss(d2(p)) to the cost of any swap, d2
                  being the distance to the second nearest of F: one of the two nearest stays. So q rows move all costs one way,
                  by at most q R, R the largest loss(d2) over the whole universe (replace-one: 2 q R). In the last choice a row
                  adds loss(d(p, F_j)), which over j differs by at most the largest such difference over the universe. The counts
                  of the start: `noisy_tree_counts`.
    Cost:         the whole budget as one charge: a share for the start, if it looks at the demand, and equal shares for the steps
                  and the last choice. R follows from released centres: adaptive composition. With delta > 0 bounded ranges add
                  up as zCDP where that is less.
    Not covered:  running time; a universe that was made from the demand.
    Reference:    "k-Median Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy",
                  Algorithms 6 and 7, with the corrections of docs/errata.md.
    """

    options: ClassVar[frozenset[str]] = frozenset({"n_steps", "init"})
    tuning: ClassVar[type[LocalSearchTuning]] = LocalSearchTuning

    def __init__(self, task: UniverseTask) -> None:
        self.task = task
        self.n_steps = task.n_steps or STEPS
        self.init = "hst" if isinstance(task.init, str) and task.init == "auto" else task.init
        self.of_seeds = _share(task.tuning.seeds) if isinstance(self.init, str) and self.init == "hst" else 0.0
        if task.tuning.candidates is not None:
            check_count("tuning.candidates", task.tuning.candidates)
        self.pool = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=self._is_pure())
        least = min(self._share, self.of_seeds or 1.0)
        if self.pool.kind != "none" and self.pool.total * UNIT * least < LEAST_UNITS:
            raise InvalidValue("this budget is too small for so many private steps. Raise epsilon, or lower n_steps.")
        # Public: how many rows there are decides nothing here, only how many there may be.
        self.loss = Loss.within(task.universe.diameter, task.objective, task.max_rows)

    def plan(self) -> Plan | None:
        return self.pool.plan()

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        task, space = self.task, self.task.universe
        self.pool.open(ticket)
        progress("reading the demand", 1, self.n_steps + 2)
        (raw_counts,) = source.map_reduce(point_counts, space.n_points, grid=task.domain)  # (n,)  secret
        start = self._start(raw_counts, rng)  # (k,)  public, charged
        costs = PlaceCosts(space, raw_counts, self._candidates(rng), self.loss)  # secret
        centers = walk(space, costs, start, self.n_steps, self._choose, rng)  # (k,)  public, charged
        return found_among(task.universe, centers, None)

    def _start(self, raw_counts: Integers, rng: np.random.Generator) -> Integers:
        """Points to start from: public ones, or drawn from noisy counts of a tree."""
        space, k, objective = self.task.universe, self.task.n_clusters, self.task.objective
        if not isinstance(self.init, str):
            return self.init
        if self.init == "random":
            return np.sort(rng.choice(space.n_points, k, replace=False))
        if self.init == "k-median++":
            return kmedian_plusplus(space, k, objective=objective, random_state=rng)
        tree = Hst.of(space, levels=LEVELS, random_state=rng)  # public
        return seeds_from_counts(tree, noisy_tree_counts(self.pool, tree, raw_counts, self.of_seeds), k, rng, objective=objective)

    def _candidates(self, rng: np.random.Generator) -> Integers:
        """Points that may become centres, in ascending order."""
        space, most = self.task.universe, self.task.tuning.candidates or ALL
        if space.n_points <= most:
            return np.arange(space.n_points)
        pool = np.unique(space.locations())
        return np.sort(spread(space, pool, most, rng)) if len(pool) > most else pool

    def _choose(self, label: str, raw_costs: Integers, differ: int) -> int:
        return self.pool.choose(label, raw_costs, differ, self._share, "a row moves costs one way, within a public range")

    @property
    def _share(self) -> float:
        """Of the budget, for one step or the last choice."""
        return (1 - self.of_seeds) / (self.n_steps + 1)

    def _is_pure(self) -> bool:
        """Whether choices are sharper if epsilons are added up than if zCDP is."""
        task = self.task
        if task.epsilon is None or not task.delta:
            return True
        rho = float(zcdp_rho(task.epsilon, task.delta))
        return not task.is_zcdp and float(task.epsilon) * self._share >= sqrt(8 * rho * self._share)


def walk(space: Space, costs: PlaceCosts, start: Integers, n_steps: int, choose: Choose, rng: np.random.Generator) -> Integers:
    """`n_steps` private swaps from public centres, then a private choice among all sets on the way, the start too.

    Only the set chosen last is to be released. Where nobody in the universe could tell the choices apart, any will do and nothing
    is drawn; where no other point is left, the walk ends. Both show in public facts alone.
    """
    sets = [start]
    for step in range(n_steps):  # fixed before the data is seen
        progress("private swap", step + 2, n_steps + 2)
        centers = sets[-1]
        free = np.flatnonzero(~np.isin(costs.candidates, centers))
        if not len(free):
            break
        differ = int(costs.loss.of(space.nearest(centers)[2]).max())  # over the universe, never over the demand
        raw = costs.swaps(centers)[:, free].ravel()
        chosen = choose("swap", raw, differ) if differ else int(rng.integers(raw.size))
        x, y = divmod(chosen, len(free))
        sets.append(np.concatenate([np.delete(centers, x), costs.candidates[free[y : y + 1]]]))
    progress("last choice", n_steps + 2, n_steps + 2)
    losses = np.array([costs.loss.of(space.nearest(centers)[1]) for centers in sets])  # (sets, n)
    differ = int((losses.max(axis=0) - losses.min(axis=0)).max())
    last = choose("which centres", costs.sets(sets), differ) if differ else len(sets) - 1
    return sets[last]


def _share(seeds: object) -> float:
    if isinstance(seeds, bool) or not isinstance(seeds, Real) or not 0 < float(seeds) < 1:
        raise InvalidValue(f"tuning.seeds must be a share of the budget between 0 and 1, got {seeds!r}.")
    return float(seeds)
