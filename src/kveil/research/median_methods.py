"""Who takes part in the HST figures: three starts without privacy, the same with it as printed and as corrected, and ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from kveil.arrays import Integers
from kveil.desk.base import Held
from kveil.methods.universe.search import tree_counts
from kveil.models.private_kmedian import PrivateKMedian
from kveil.partition.hst import Hst
from kveil.questions.demand import LEVELS, PointCounts
from kveil.research.median_cases import SEED, Case
from kveil.research.printed_search import printed_local_search
from kveil.research.printed_seeds import printed_seeds, printed_seeds_cost
from kveil.research.walks import aimless_sets, corrected_walk, pure_pool, steps_to_least
from kveil.solve.demand import Demand
from kveil.solve.hst import seeds_from_counts
from kveil.solve.local_search import Swaps, best_swaps
from kveil.solve.loss import Loss
from kveil.solve.metric_seeding import kmedian_plusplus

Start = Literal["random", "k-median++", "hst"]
Way = Literal["not private", "printed", "corrected", "counts"]

STARTS: tuple[Start, ...] = ("random", "k-median++", "hst")
LEVELS_NOT_PRIVATE = 6  # of the paper's tree without privacy
STEPS = 20  # of the paper's searches


@dataclass(frozen=True)
class Method:
    """A method under the name that figures show. `start` is None where there are no seeds to speak of."""

    name: str
    way: Way
    start: Start | None
    colour: str  # Okabe and Ito: told apart by everyone; one for each start


METHODS = (
    Method("NDP-rand", "not private", "random", "#009E73"),
    Method("NDP-k-median++", "not private", "k-median++", "#0072B2"),
    Method("NDP-HST", "not private", "hst", "#D55E00"),
    Method("DP-rand, as printed", "printed", "random", "#009E73"),
    Method("DP-k-median++, as printed", "printed", "k-median++", "#0072B2"),
    Method("DP-HST, as printed (invalid)", "printed", "hst", "#D55E00"),
    Method("DP-rand, corrected", "corrected", "random", "#009E73"),
    Method("DP-k-median++, corrected", "corrected", "k-median++", "#0072B2"),
    Method("DP-HST, corrected", "corrected", "hst", "#D55E00"),
    Method("kveil's default", "counts", None, "#000000"),
)


class Run(NamedTuple):
    """One run of one method: sums of distances of the demand, in the units of the case. Exact, so not private."""

    final: float
    seeds: float | None = None
    walk: tuple[float, ...] = ()  # after every step of a private search of so many steps as the paper's
    aimless: tuple[float, ...] = ()  # from the same seeds, after swaps that are drawn uniformly
    pull: float | None = None  # of a printed first step: ln(chance of the best swap / chance of one of mean cost)
    paid: float | None = None  # the epsilon it costs for rows added or removed, by sound accounting

    @property
    def iterates(self) -> float | None:
        """The mean over the steps, which the paper shows in place of the final cost."""
        return float(np.mean(self.walk)) if self.walk else None

    @property
    def best(self) -> float | None:
        """Of Figure 6: the lowest cost on the way, which nobody releases."""
        return min(self.walk, default=None)

    @property
    def steps(self) -> int | None:
        """Of Figure 5."""
        return steps_to_least(self.walk)

    @property
    def steps_with_seeds(self) -> int | None:
        """Of Figure 5, if the seeds count as the first set of the sequence."""
        return steps_to_least((self.seeds, *self.walk)) if self.seeds is not None else None

    @property
    def aimless_steps(self) -> int | None:
        return steps_to_least(self.aimless)


class Round:
    """One demand on one universe, and everybody's run at it. Trees see the universe alone, and serve every k."""

    def __init__(self, case: Case, rows: Integers, epsilon: float, number: int, n_steps: int = STEPS) -> None:
        self.case, self.rows, self.epsilon, self.number, self.n_steps = case, rows, epsilon, number, n_steps
        self.space, self.raw_counts = case.space, np.bincount(rows, minlength=case.space.n_points)
        self.swaps = Swaps(case.space, Demand.of(rows), Loss(is_squared=False))

    def run(self, method: Method, k: int) -> Run:
        """Noise of corrected methods and of ours is fresh; everything else is steered by the round's number."""
        rng = np.random.default_rng([SEED, self.number, k])
        if method.start is None:
            model = PrivateKMedian(k, universe=self.space, epsilon=self.epsilon, random_state=rng)
            return Run(self._cost(model.fit(self.rows).center_indices_), paid=self.epsilon)
        seeds, is_tree = self._seeds(method, k, rng), method.start == "hst"
        if method.way == "not private":
            return Run(self._cost(best_swaps(self.swaps, seeds).centers), self._cost(seeds))
        if method.way == "printed":
            return self._printed(seeds, printed_seeds_cost(self._printed_tree, self.epsilon / 2) if is_tree else 0.0, rng)
        left = self.epsilon / 2 if is_tree else self.epsilon  # public seeds leave all of it to the search
        model = PrivateKMedian(k, universe=self.space, method="local-search", init=seeds, epsilon=left, random_state=rng)
        walk = corrected_walk(self.space, self.raw_counts, seeds, rng, epsilon=left, n_steps=self.n_steps)
        costs = tuple(cost * self.case.unit for cost in walk)
        return Run(self._cost(model.fit(self.rows).center_indices_), self._cost(seeds), costs, paid=self.epsilon)

    def _printed(self, seeds: Integers, paid: float, rng: np.random.Generator) -> Run:
        """The printed search claims half of epsilon. It costs a quarter for rows added or removed: all costs move one way."""
        walk = printed_local_search(self.space, self.raw_counts, seeds, rng, epsilon=self.epsilon, n_steps=self.n_steps)
        costs = tuple(self._cost(centers) for centers in walk.sets[1:])
        aimless = tuple(map(self._cost, aimless_sets(self.space.n_points, seeds, rng, self.n_steps)))
        free = np.setdiff1d(np.arange(self.space.n_points), seeds)
        offered = self.swaps.costs(seeds)[:, free]
        pull = self.epsilon / (4 * self.space.diameter * (self.n_steps + 1)) * float(offered.mean() - offered.min())
        return Run(self._cost(walk.sets[walk.chosen]), self._cost(seeds), costs, aimless, pull, paid + self.epsilon / 4)

    def _seeds(self, method: Method, k: int, rng: np.random.Generator) -> Integers:
        is_private = method.way != "not private"
        if method.start == "random":
            return np.sort(rng.choice(self.space.n_points, k, replace=False))
        if method.start == "k-median++":
            return kmedian_plusplus(self.space, k, weights=None if is_private else self.raw_counts, random_state=rng)
        if method.way == "printed":
            return printed_seeds(self._printed_tree, self.raw_counts, k, self.epsilon / 2, rng)
        if is_private:
            return corrected_seeds(self._tree, self.raw_counts, k, self.epsilon / 2, rng)
        return seeds_from_counts(self._shallow_tree, self._shallow_tree.sums(self.raw_counts), k, rng)

    def _cost(self, centers: Integers) -> float:
        return self.swaps.cost(centers) * self.case.unit

    @cached_property
    def _shallow_tree(self) -> Hst:
        return Hst.of(self.space, levels=LEVELS_NOT_PRIVATE, beta=1.0, random_state=self.number)

    @cached_property
    def _printed_tree(self) -> Hst:
        return Hst.of(self.space, levels=LEVELS, beta=1.0, random_state=self.number)

    @cached_property
    def _tree(self) -> Hst:
        return Hst.of(self.space, levels=LEVELS, random_state=self.number)


def corrected_seeds(tree: Hst, raw_counts: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """Private seeds from noisy counts of a public tree, for `epsilon` in all, add-remove: the start of "local-search" alone."""
    pool, ledger = pure_pool(epsilon)
    plan = pool.plan()
    assert plan is not None
    with ledger.reserve(plan) as ticket:
        pool.begin(ticket)
        noisy = tree_counts(Held(PointCounts(len(raw_counts)), (raw_counts,), pool), tree, 1.0)  # (nodes,)  public, charged
    return seeds_from_counts(tree, noisy, k, rng)
