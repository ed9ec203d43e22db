"""Methods of private k-median without a universe: where to start, then medians by noisy steps or draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite
from numbers import Real
from typing import ClassVar

import numpy as np

from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT, Ticket
from kveil.kernel.loss import Plan
from kveil.models._medians import MOST_COLUMNS_DRAWN, medians
from kveil.models._method import Facts, Found
from kveil.models._seeds import Seeds, candidate_seeds, tree_seeds
from kveil.models._start import resolved, start
from kveil.models._task import Task, check_choice
from kveil.models._view import View
from kveil.models.tree import WIDEST, Tree
from kveil.privatise.pool import Pool
from kveil.source import Source
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
        self.pool = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        steps = max(4, task.n_steps or 0) / 4
        widest = self.pool.spread(1, max(task.domain.n_columns**0.5 * task.domain.top + 2, 2**20), OF_LAST / steps) ** 0.5
        if self.pool.kind != "none" and (self.pool.total * UNIT < LEAST_UNITS * steps or widest > WIDEST):
            raise InvalidValue(
                "this budget is too small for private medians, which share it out in many draws. Raise epsilon, or lower n_steps."
            )

    def plan(self) -> Plan | None:
        return self.pool.plan()

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        self.pool.open(ticket)
        view = View(self.task, self.pool, source)
        return medians(view, self.seeds(view, rng))

    @abstractmethod
    def seeds(self, view: View, rng: np.random.Generator) -> Seeds:
        """Where the medians start, for a part of the budget."""


class TreeMedians(_Medians):
    """Private k-median: a tree of noisy counts, an ordinary k-median of its leaves, then private medians.

    Private:      the rows and their number.  Public: all parameters, the random frame, and that a fit took place.
    Neighbours, sensitivity and cost: those of `Pool`, for every release; shares of the budget follow from released values.
    """

    def seeds(self, view: View, rng: np.random.Generator) -> Seeds:
        return tree_seeds(view, rng)


class CandidateMedians(_Medians):
    """Private k-median: candidates from shifted cubes in a projection, private swaps by distance, then private medians.

    Private, public, neighbours, sensitivity and cost: as for `TreeMedians`, and `CandidateSearch` for the search.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), with the corrections of docs/errata.md.
    """

    def seeds(self, view: View, rng: np.random.Generator) -> Seeds:
        return candidate_seeds(view, rng)


class PublicStart(_Medians):
    """Private k-median from a public start: centres given, or spread over the domain; the whole budget is for the medians.

    Private, public, neighbours, sensitivity and cost: as for `TreeMedians`.
    """

    options: ClassVar[frozenset[str]] = frozenset({"n_steps", "init"})

    def seeds(self, view: View, rng: np.random.Generator) -> Seeds:
        domain, k = self.task.domain, self.task.n_clusters
        first = start(resolved(self.task), rng)
        n = self.task.expected_rows or view.rows(0.02)[0]
        return Seeds((first - domain.center) / view.whole.unit(domain), np.full(k, n / k), float(view.reach))


def check_tuning(task: Task) -> None:
    tuning: KMedian = task.tuning
    check_choice("recovery", tuning.recovery, ("auto", "weiszfeld", "grid"))
    h = tuning.smoothing
    if h is not None and not (isinstance(h, Real) and not isinstance(h, bool) and isfinite(h) and h > 0):
        raise InvalidValue(f"smoothing must be a number above 0, in the units of the data, got {h!r}.")
    if tuning.recovery == "grid" and task.domain.n_columns > MOST_COLUMNS_DRAWN:
        raise InvalidValue(f'recovery="grid" takes at most {MOST_COLUMNS_DRAWN} features: its places multiply. Use "weiszfeld".')
    if tuning.recovery == "grid" and task.n_steps is not None:
        raise InvalidValue('n_steps counts Weiszfeld steps, and recovery="grid" has none. Leave one of them out.')
