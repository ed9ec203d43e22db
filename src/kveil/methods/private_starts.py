"""Starts that look at the rows and pay for it: a noisy sample, clustered; or private k-variates++."""

from __future__ import annotations

from fractions import Fraction
from math import floor, isqrt
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.desk.bounded_share import BoundedShare
from kveil.desk.fixed import FixedDesk
from kveil.desk.noisy_sample import NoisySample
from kveil.desk.seeds import LaplaceSeeds, projected, widest
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.kernel.loss import Charge
from kveil.methods.task import PRIVATE_INITS, Task, check_choice, check_count
from kveil.solve.kmeans import weighted_kmeans
from kveil.space.euclidean import units

Mechanism = NoisySample | BoundedShare | LaplaceSeeds

OF_COUNTS = Fraction(1, 10)  # of a private start's budget: the number of rows and the totals of distances
LEAST = Fraction(1, 2**30)  # epsilon of a single draw; below it noise drowns everything


class Budget(NamedTuple):
    """A loss in epsilon, or in rho if it is not pure."""

    total: Fraction
    is_pure: bool

    def epsilon(self, share: Fraction) -> Fraction:
        """What a draw that gets `share` of it may spend, in whole units of a ledger: a pure draw of epsilon costs epsilon^2/2
        in rho."""
        part = share * self.total
        found = Fraction(floor(part * UNIT) if self.is_pure else isqrt(floor(2 * part * UNIT**2)), UNIT)
        if found < LEAST:
            raise InvalidValue("this budget is too small for a private start. Raise epsilon, or use a start without data.")
        return found

    def left(self, charges: tuple[Charge, ...]) -> Fraction:
        return self.total - sum((charge.pure() if self.is_pure else charge.zcdp()) or 0 for charge in charges)


class PrivateStart:
    """k starting centres from the rows. Cost, sensitivity and neighbours are those of the mechanism it holds.

    Without a budget (epsilon = infinity) rows are drawn by distance and released as they are, which promises nothing.
    """

    def __init__(self, task: Task, budget: Budget | None) -> None:
        if task.is_sparse:
            raise InvalidValue(f'init="{task.init}" takes dense rows. Use another start, or a dense table.')
        self.task, self.mechanism = task, _mechanism(task, budget)

    @property
    def charges(self) -> tuple[Charge, ...]:
        return self.mechanism.charges

    def find(self, desk: FixedDesk, rng: np.random.Generator) -> Floats:
        """(k, d) centres inside the domain: public, charged."""
        task = self.task
        points = projected(desk.perform(self.mechanism), task.domain)
        if len(points) == task.n_clusters:
            return points
        unit = units(task.domain, task.scaling)
        return np.asarray(weighted_kmeans(points / unit, np.ones(len(points)), task.n_clusters, rng) * unit)


def private_start(task: Task, budget: Budget | None) -> PrivateStart | None:
    """The private start that the task asks for, if it does."""
    return PrivateStart(task, budget) if isinstance(task.init, str) and task.init in PRIVATE_INITS else None


def _mechanism(task: Task, budget: Budget | None) -> Mechanism:
    tuning, k, domain = task.tuning, task.n_clusters, task.domain
    sample = check_count("tuning.sample", tuning.sample) * k
    seeds = check_choice("tuning.seeds", tuning.seeds, ("bounded-share", "laplace"))
    cap = 1 / max(4, k) if tuning.cap is None else _check_share("tuning.cap", tuning.cap)
    share = Fraction(_check_share("tuning.start_share", tuning.start_share))
    if share == 1:
        raise InvalidValue("tuning.start_share must leave something for the steps: use a number below 1.")
    is_vector = tuning.noise == "vector"
    if budget is None:
        return LaplaceSeeds.of(domain, k, task.scaling, None, is_vector=is_vector)
    if task.init == "noisy-sample":
        of_size = Fraction(0) if task.expected_rows is not None else budget.epsilon(share * OF_COUNTS)
        of_sample = budget.epsilon(share * (1 - OF_COUNTS if of_size else 1))
        return NoisySample(domain, sample, of_size, of_sample, task.expected_rows, task.unit, is_vector)
    if seeds == "laplace":
        return LaplaceSeeds.of(domain, k, task.scaling, k * budget.epsilon(share / k), is_vector=is_vector)
    of_total, of_center = budget.epsilon(share * OF_COUNTS / k), budget.epsilon(share * (1 - OF_COUNTS) / k)
    steps = max(1, int(cap * widest(domain, task.scaling)))
    return BoundedShare(
        domain, k, task.scaling, steps, task.max_rows, of_total, of_total, of_center, task.expected_rows, task.unit, is_vector
    )


def _check_share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidValue(f"{name} must be a number above 0 and at most 1, got {value!r}.")
    return float(value)
