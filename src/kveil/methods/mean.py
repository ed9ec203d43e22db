"""One private mean: the floor that every private clustering should beat."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from kveil.desk.fixed import FixedDesk
from kveil.methods.base import Facts, Found
from kveil.methods.lloyd import Lloyd
from kveil.methods.task import Task
from kveil.tuning import Lloyd as LloydTuning
from kveil.tuning import Mean as MeanTuning


class Mean:
    """The mean of all rows, as every one of the k centres: one DP-Lloyd step of one cluster, with the whole budget.

    Private, public, neighbours, sensitivity and cost: those of `ClusterSums` and `Law`, once.
    """

    takes_sparse: ClassVar[bool] = True
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[MeanTuning]] = MeanTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        return Lloyd.bits(facts)

    def __init__(self, task: Task) -> None:
        self.task = task
        start = task.domain.center[None, :]
        self._step = Lloyd(replace(task, n_clusters=1, n_steps=1, init=start, tuning=LloydTuning()))
        self.budget = self._step.budget

    def run(self, desk: FixedDesk, rng: np.random.Generator) -> Found:
        found = self._step.run(desk, rng)
        k = self.task.n_clusters
        errors = None if found.errors is None else np.tile(found.errors, k)
        return Found(np.tile(found.centers, (k, 1)), np.full(k, 1 / k), errors=errors, synopsis=found.synopsis)
