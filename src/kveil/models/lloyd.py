"""DP-Lloyd (SuLQ k-means): a fixed number of Lloyd steps on noisy counts and sums."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Plan, zcdp_rho
from kveil.models._method import Facts, Found, shares
from kveil.models._private_start import Budget, PrivateStart, private_start
from kveil.models._start import resolved, start
from kveil.models._task import Task, check_choice
from kveil.privatise.cluster_sums import NoisyClusterSums
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers, Domain, clip, farthest
from kveil.summary.cluster_sums import cluster_sums
from kveil.tuning import Lloyd as LloydTuning

Floats = NDArray[np.float64]

DEFAULT_STEPS = 5
FEWEST, MOST = 2, 7


class Lloyd:
    """Private k-means by Lloyd steps. Each step spends the same part of the budget; there is no early stop, because
    stopping would depend on rows.

    Private:      the rows and their number.  Public: k, the domain, the number of steps, the start, the budget.
    Sensitivity, neighbours and cost: those of `NoisyClusterSums`, once a step; with a private start also those of
                  `NoisySample`, `BoundedShare` or `LaplaceSeeds`, before the steps, for a quarter of the budget
                  (`tuning.start_share`). Everything after the noise is post-processing.
    Reference:    Blum, Dwork, McSherry, Nissim (2005); Su, Cao, Li, Bertino, Jin (2016) for the split and the steps.
    """

    takes_sparse: ClassVar[bool] = True
    options: ClassVar[frozenset[str]] = frozenset({"n_steps", "init", "private init"})
    tuning: ClassVar[type[LloydTuning]] = LloydTuning

    def __init__(self, task: Task) -> None:
        self.n_steps = default_steps(task) if task.n_steps is None else task.n_steps
        self.task = task = replace(resolved(task), n_steps=self.n_steps)
        self.start, self.noise = _funded(task, self.n_steps)

    @staticmethod
    def bits(facts: Facts) -> int:
        """16 bits are finer than the noise while rows times epsilon stays below 2**16; then 20, if distances stay exact."""
        is_fine = facts.expected_rows is not None and facts.expected_rows * facts.epsilon >= 2**16
        return 20 if is_fine and facts.n_features <= 2**13 else 16

    def plan(self) -> Plan | None:
        """Every charge of the fit; None without noise."""
        if self.noise is None:
            return None
        charges = (*(() if self.start is None else self.start.charges), *self.noise.charges)
        is_gaussian = any(charge.rho is not None for charge in charges)
        return Plan(charges, self.task.relation, self.task.unit, self.task.delta if is_gaussian else Fraction(0))

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        task = self.task
        centers = start(task, rng) if self.start is None else self.start.find(source, ticket, rng)  # (k, d)  public
        unknown = farthest(task.domain)  # the error of a centre that no row has moved
        counts, errors = np.zeros(task.n_clusters), np.full(task.n_clusters, unknown)
        for step in range(1, self.n_steps + 1):  # fixed before the data is seen
            progress("Lloyd step", step, self.n_steps)
            state = Centers.of(centers, task.domain, task.scaling)
            raw_counts, raw_sums = source.map_reduce(cluster_sums, state, grid=task.domain)  # (k,), (k, d)  secret
            counts, sums = self._release(raw_counts, raw_sums, ticket)  # (k,), (k, d)  public, charged
            weak = counts < self._least_count
            centers = np.where(weak[:, None], centers, means(counts, sums, task.domain))  # (k, d)  public from here on
            errors = np.where(weak, errors, self._errors(centers, counts))
            if step < self.n_steps and task.tuning.reseed:
                centers = reseeded(centers, np.where(weak, 0.0, counts), task.domain, rng)
                errors = np.where(weak, unknown, errors)
        return Found(centers, shares(counts), errors=np.minimum(errors, unknown))

    def _release(self, raw_counts: Any, raw_sums: Any, ticket: Ticket | None) -> tuple[Floats, Floats]:
        if self.noise is None or ticket is None:
            if self.noise is not None or ticket is not None:
                raise AssertionError("a noise-free run has no ticket, and a private one has")
            return raw_counts.astype(np.float64), raw_sums.astype(np.float64)  # epsilon = infinity promises nothing
        noisy_counts, noisy_sums = self.noise.release(raw_counts, raw_sums, ticket)
        return noisy_counts.astype(np.float64), noisy_sums.astype(np.float64)

    def _errors(self, centers: Floats, counts: Floats) -> Floats:
        noise = self.noise
        if noise is None:
            return np.zeros(len(centers))
        return mean_errors(centers, counts, noise.count_deviation, np.sqrt(noise.sum_variance), self.task.domain)

    @property
    def _least_count(self) -> float:
        """A cluster with a smaller noisy count stays where it is: its mean would be noise over noise."""
        return 1.0 if self.noise is None else max(1.0, 2 * self.noise.count_deviation)


def _funded(task: Task, n_steps: int) -> tuple[PrivateStart | None, NoisyClusterSums | None]:
    """A private start, if one is asked for, and the noise of every step, from public parameters; no noise for epsilon = infinity.

    Of pure and Gaussian noise the one that is smaller on a sum; pure when delta is 0.
    """
    by_coordinates = check_choice("tuning.noise", task.tuning.noise, ("vector", "coordinates")) == "coordinates"
    if by_coordinates and task.delta:
        raise InvalidValue('noise="coordinates" is Laplace noise, which is pure. Pass delta=0, or use noise="vector".')
    if task.epsilon is None:
        return private_start(task, None), None
    budgets = [] if task.is_zcdp else [Budget(task.epsilon, True)]
    budgets += [Budget(zcdp_rho(task.epsilon, task.delta), False)] if task.delta else []
    found = []
    for budget in budgets:
        start = private_start(task, budget)
        left = budget.total if start is None else budget.left(start.charges)
        make = NoisyClusterSums.pure if budget.is_pure else NoisyClusterSums.gaussian
        noise = (NoisyClusterSums.coordinates if by_coordinates else make)(task.domain, left, n_steps, task.relation, task.unit)
        found.append((start, noise))
    return min(found, key=lambda pair: pair[1].sum_variance)


def means(counts: Floats, sums: Floats, domain: Domain) -> Floats:
    """Noisy means, kept inside the domain."""
    return clip(domain, domain.decode(sums / np.maximum(counts, 1.0)[:, None]))


def mean_errors(centers: Floats, counts: Floats, count_deviation: float, sum_deviation: float, domain: Domain) -> Floats:
    """Standard errors of noisy means, to first order: noise in the sum, and in the count, which moves a mean along itself."""
    along = count_deviation * np.linalg.norm(centers - domain.center, axis=1)
    across = sum_deviation * np.linalg.norm(domain.step)
    return np.asarray(np.hypot(across, along) / np.maximum(counts, 1.0))


def reseeded(centers: Floats, counts: Floats, domain: Domain, rng: np.random.Generator) -> Floats:
    """Centres without rows (count 0) moved beside the largest clusters, to split them in the next step.

    A function of released values and public randomness: a start that is blind to the data leaves some centres in empty
    places, and without this they would stay there.
    """
    centers, counts = centers.copy(), counts.copy()
    for j in np.flatnonzero(counts == 0).tolist():
        big = int(np.argmax(counts))
        if counts[big] == 0:
            break
        others = np.linalg.norm((centers - centers[big]) / domain.half, axis=1)[counts > 0]
        reach = np.min(others[others > 0], initial=1.0)
        centers[j] = centers[big] + reach / 4 * domain.half * rng.uniform(-1.0, 1.0, size=domain.n_columns)
        counts[j] = counts[big] = counts[big] / 2
    return clip(domain, centers)


def default_steps(task: Task) -> int:
    """How many steps pay off: about epsilon over the least epsilon that a step can use, between 2 and 7.

    Su et al. put that least epsilon at sqrt(500 k^3 (d + c)^3) / N, c = cbrt(4 d 0.225^2), N a public number of rows.
    """
    if task.expected_rows is None:
        return DEFAULT_STEPS
    d = task.domain.n_columns
    c = (4 * d * 0.225**2) ** (1 / 3)
    least = np.sqrt(500 * task.n_clusters**3 * (d + c) ** 3) / task.expected_rows
    return int(np.clip(float(task.epsilon or 1) / least, FEWEST, MOST))
