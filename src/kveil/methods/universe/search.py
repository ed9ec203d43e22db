"""Private local search among the points of a universe: a start, a few swaps by the exponential mechanism, and a last choice."""

from __future__ import annotations

from math import sqrt
from numbers import Real
from typing import ClassVar

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.desk.base import Curator, Held
from kveil.desk.pool import LEAST_UNITS, Pool
from kveil.desk.walk import Walk
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.kernel.loss import zcdp_rho
from kveil.methods.base import Found
from kveil.methods.task import check_count
from kveil.methods.universe.task import OnUniverse, UniverseTask, found_among
from kveil.partition.hst import Hst
from kveil.partition.voronoi import spread
from kveil.progress import step as progress
from kveil.questions.demand import LEVELS, DemandTree, PointCounts
from kveil.solve.hst import seeds_from_counts
from kveil.solve.loss import Loss
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.tuning import LocalSearch as LocalSearchTuning

STEPS = 5  # more steps share the same budget, and each of them then sees less
ALL = 20_000  # points that may all be candidates


class LocalSearch(OnUniverse):
    """Private k-median or k-means by swaps, each drawn by the exponential mechanism from all of them.

    Private:      the demand and its size.  Public: the universe, the tree, the candidates, the number of steps, all parameters.
    Neighbours:   those of the plan; a person has at most q rows.
    Sensitivity:  of the choices: `Walk`; of the counts of the start: `DemandTree`.
    Cost:         the whole budget as one charge: a share for the start, if it looks at the demand, and equal shares for the steps
                  and the last choice. With delta > 0 bounded ranges add up as zCDP where that is less.
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
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=self._is_pure())
        least = min(self._share, self.of_seeds or 1.0)
        if self.budget.kind != "none" and self.budget.total * UNIT * least < LEAST_UNITS:
            raise InvalidValue("this budget is too small for so many private steps. Raise epsilon, or lower n_steps.")
        # Public: how many rows there are decides nothing here, only how many there may be.
        self.loss = Loss.within(task.universe.diameter, task.objective, task.max_rows)

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        task, space = self.task, self.task.universe
        progress("reading the demand", 1, self.n_steps + 2)
        demand = desk.hold(PointCounts(space.n_points))  # one pass; behind the desk
        start = self._start(demand, rng)  # (k,)  public, charged
        walk = Walk(space, self._candidates(rng), self.loss, start, self.n_steps, self._share, rng)
        return found_among(task.universe, demand.perform(walk), None)  # (k,)  public, charged

    def _start(self, demand: Held, rng: np.random.Generator) -> Integers:
        """Points to start from: public ones, or drawn from noisy counts of a tree."""
        space, k, objective = self.task.universe, self.task.n_clusters, self.task.objective
        if not isinstance(self.init, str):
            return self.init
        if self.init == "random":
            return np.sort(rng.choice(space.n_points, k, replace=False))
        if self.init == "k-median++":
            return kmedian_plusplus(space, k, objective=objective, random_state=rng)
        tree = Hst.of(space, levels=LEVELS, random_state=rng)  # public
        return seeds_from_counts(tree, tree_counts(demand, tree, self.of_seeds), k, rng, objective=objective)

    def _candidates(self, rng: np.random.Generator) -> Integers:
        """Points that may become centres, in ascending order."""
        space, most = self.task.universe, self.task.tuning.candidates or ALL
        if space.n_points <= most:
            return np.arange(space.n_points)
        pool = np.unique(space.locations())
        return np.sort(spread(space, pool, most, rng)) if len(pool) > most else pool

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


def tree_counts(demand: Held, tree: Hst, share: float) -> Floats:
    """Noisy counts (nodes,) of all nodes of a public tree, the root's being 0, from a demand that was counted by points."""
    if tree.n_nodes == 1:
        return np.zeros(1)
    question = DemandTree(tree, is_squared=demand.kind == "zcdp")
    ((noisy, _),) = demand.ask(question, share)  # (1, nodes - 1)  public, charged
    return np.concatenate([[0.0], noisy[0] / question.weights[1:]])


def _share(seeds: object) -> float:
    if isinstance(seeds, bool) or not isinstance(seeds, Real) or not 0 < float(seeds) < 1:
        raise InvalidValue(f"tuning.seeds must be a share of the budget between 0 and 1, got {seeds!r}.")
    return float(seeds)
