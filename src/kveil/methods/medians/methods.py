"""Methods of private k-median without a universe: where to start, then medians by noisy steps or draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite
from numbers import Real
from typing import ClassVar

import numpy as np

from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.methods.base import Facts, Found
from kveil.methods.ground import Ground
from kveil.methods.medians.seeds import Seeds, candidate_seeds, tree_seeds
from kveil.methods.medians.steps import MOST_COLUMNS_DRAWN, medians
from kveil.methods.starts import resolved, start
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task, check_choice
from kveil.methods.tree.method import WIDEST, Tree
from kveil.tuning import KMedian

OF_LAST = 0.003  # a share that the least draw of a fit with few steps is sure to get
LEAST_UNITS = 2**14  # of a ledger's units, so that shares are not lost in rounding


class _Medians(ABC):
    """What the methods share: one pool of budget, seeds, then medians."""

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"n_steps"})
    tuning: ClassVar[type[KMedian]] = KMedian

    @staticmethod
    def bits(facts: Facts) -> int:
        return Tree.bits(facts)

    def __init__(self, task: Task) -> None:
        check_tuning(task)
        self.task = task
        is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        steps = max(4, task.n_steps or 0) / 4
        widest = self.budget.spread(1, max(task.domain.n_columns**0.5 * task.domain.top + 2, 2**20), OF_LAST / steps) ** 0.5
        if self.budget.kind != "none" and (self.budget.total * UNIT < LEAST_UNITS * steps or widest > WIDEST):
            raise InvalidValue(
                "this budget is too small for private medians, which share it out in many draws. Raise epsilon, or lower n_steps."
            )

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        ground = Ground(self.task, desk)
        return medians(ground, self.seeds(ground, rng))

    @abstractmethod
    def seeds(self, ground: Ground, rng: np.random.Generator) -> Seeds:
        """Where the medians start, for a part of the budget."""


class TreeMedians(_Medians):
    """Private k-median: a tree of noisy counts, an ordinary k-median of its leaves, then private medians.

    Private:      the rows and their number.  Public: all parameters, the random frame, and that a fit took place.
    Neighbours, sensitivity and cost: those of `Pool`, for every release; shares of the budget follow from released values.
    """

    def seeds(self, ground: Ground, rng: np.random.Generator) -> Seeds:
        return tree_seeds(ground, rng)


class CandidateMedians(_Medians):
    """Private k-median: candidates from shifted cubes in a projection, private swaps by distance, then private medians.

    Private, public, neighbours, sensitivity and cost: as for `TreeMedians`, and `CandidateSearch` for the search.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), with the corrections of docs/errata.md.
    """

    def seeds(self, ground: Ground, rng: np.random.Generator) -> Seeds:
        return candidate_seeds(ground, rng)


class PublicStart(_Medians):
    """Private k-median from a public start: centres given, or spread over the domain; the whole budget is for the medians.

    Private, public, neighbours, sensitivity and cost: as for `TreeMedians`.
    """

    options: ClassVar[frozenset[str]] = frozenset({"n_steps", "init"})

    def seeds(self, ground: Ground, rng: np.random.Generator) -> Seeds:
        domain, k = self.task.domain, self.task.n_clusters
        first = start(resolved(self.task), rng)
        n = self.task.expected_rows or number_of_rows(ground.desk, 0.02)
        return Seeds((first - domain.center) / ground.whole.unit(domain), np.full(k, n / k), float(ground.reach))


def check_tuning(task: Task) -> None:
    tuning: KMedian = task.tuning
    check_choice("recovery", tuning.recovery, ("auto", "weiszfeld", "grid", "all"))
    h = tuning.smoothing
    if h is not None and not (isinstance(h, Real) and not isinstance(h, bool) and isfinite(h) and h > 0):
        raise InvalidValue(f"smoothing must be a number above 0, in the units of the data, got {h!r}.")
    is_drawn, said = tuning.recovery in ("grid", "all"), f'recovery="{tuning.recovery}"'
    if is_drawn and task.domain.n_columns > MOST_COLUMNS_DRAWN:
        raise InvalidValue(f'{said} takes at most {MOST_COLUMNS_DRAWN} features: its places multiply. Use "weiszfeld".')
    if is_drawn and task.n_steps is not None:
        raise InvalidValue(f"n_steps counts Weiszfeld steps, and {said} has none. Leave one of them out.")
