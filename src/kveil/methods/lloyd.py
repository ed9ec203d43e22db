"""DP-Lloyd (SuLQ k-means): a fixed number of Lloyd steps on noisy counts and sums."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from kveil.arrays import Floats
from kveil.desk.fixed import Fixed, FixedDesk
from kveil.desk.law import Law
from kveil.errors import InvalidValue
from kveil.kernel.loss import floor_rho, zcdp_rho
from kveil.methods.base import Facts, Found, shares
from kveil.methods.private_starts import Budget, PrivateStart, private_start
from kveil.methods.starts import resolved, start
from kveil.methods.task import Task, check_choice
from kveil.progress import step as progress
from kveil.questions.base import Part
from kveil.questions.cluster_sums import ClusterSums, sums_in
from kveil.solve.synopsis import Step, of_steps
from kveil.space.euclidean import Domain, clip, farthest, units
from kveil.tuning import Lloyd as LloydTuning

DEFAULT_STEPS = 5
FEWEST, MOST = 2, 7
# A centre lies about this far from the middle of the domain, as a share of its half-diagonal squared (0.225 of the
# half-width in every column, the figure that the improved DPLloyd split is built on).
OFFSET = 0.225**2


class Lloyd:
    """Private k-means by Lloyd steps. Each step spends the same part of the budget; there is no early stop, because
    stopping would depend on rows.

    Private:      the rows and their number.  Public: k, the domain, the number of steps, the start, the budget.
    Sensitivity, neighbours and cost: those of `ClusterSums` and `Law`, once per step; with a private start also those of
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
        self.start, law, self.budgets = _funded(task, self.n_steps)
        self.budget, self.sum_deviation = Fixed(None, ()), 0.0
        if law is not None:
            d, parts = task.domain.n_columns, _parts(task)
            charges = (*(() if self.start is None else self.start.charges), *law.charges(parts, d, self.budgets, self.n_steps))
            self.budget = Fixed(law, charges, self.n_steps, task.delta)
            self.sum_deviation = float(np.sqrt(law.variance(parts[1], d, self.budgets[1])))

    @staticmethod
    def bits(facts: Facts) -> int:
        """16 bits are finer than the noise while rows times epsilon stays below 2**16; then 20, if distances stay exact."""
        is_fine = facts.expected_rows is not None and facts.expected_rows * facts.epsilon >= 2**16
        return 20 if is_fine and facts.n_features <= 2**13 else 16

    def run(self, desk: FixedDesk, rng: np.random.Generator) -> Found:
        task = self.task
        centers = start(task, rng) if self.start is None else self.start.find(desk, rng)  # (k, d)  public
        unknown = farthest(task.domain)  # the error of a centre that no row has moved
        counts, errors = np.zeros(task.n_clusters), np.full(task.n_clusters, unknown)
        deviation, unit, steps = 0.0, units(task.domain, task.scaling), list[Step]()
        apart = np.full(task.n_clusters, farthest(task.domain, unit))  # the same errors in the distance of the model
        for step in range(1, self.n_steps + 1):  # fixed before the data is seen
            progress("Lloyd step", step, self.n_steps)
            question = ClusterSums.of(centers, task.domain, task.scaling, by_coordinates=task.tuning.noise == "coordinates")
            (counts, deviation), (sums, _) = desk.ask(question, *self.budgets)  # (k,), (k, d)  public, charged
            weak = counts < max(1.0, 2 * deviation)  # it stays where it is: its mean would be noise over noise
            before, centers = centers, np.where(weak[:, None], centers, means(counts, sums, task.domain))
            noise = (centers, counts, deviation, self.sum_deviation, task.domain)
            errors, apart = (np.where(weak, own, mean_errors(*noise, of)) for own, of in ((errors, 1.0), (apart, unit)))
            steps.append(Step(counts, deviation, np.minimum(apart, farthest(task.domain, unit)), before, centers - before))
            if step < self.n_steps and task.tuning.reseed:
                centers = reseeded(centers, np.where(weak, 0.0, counts), task.domain, rng)
                errors, apart = np.where(weak, unknown, errors), np.where(weak, farthest(task.domain, unit), apart)
        rows = float(np.maximum(counts, 0.0).sum()), deviation * sqrt(len(counts))
        synopsis = of_steps(task.domain.n_columns, tuple(steps), *rows)
        return Found(centers, shares(counts), errors=np.minimum(errors, unknown), synopsis=synopsis)


def _parts(task: Task) -> tuple[Part, Part]:
    return sums_in(task.domain, by_coordinates=task.tuning.noise == "coordinates")


def _funded(task: Task, n_steps: int) -> tuple[PrivateStart | None, Law | None, tuple[Fraction, ...]]:
    """A private start, if one is asked for, and the noise of every step, from public parameters; no noise for epsilon = infinity.

    Of pure and Gaussian noise the one that is smaller on a sum; pure when delta is 0.
    """
    by_coordinates = check_choice("tuning.noise", task.tuning.noise, ("vector", "coordinates")) == "coordinates"
    if by_coordinates and task.delta:
        raise InvalidValue('noise="coordinates" is Laplace noise, which is pure. Pass delta=0, or use noise="vector".')
    if task.epsilon is None:
        return private_start(task, None), None, ()
    budgets = [] if task.is_zcdp else [Budget(task.epsilon, True)]
    budgets += [Budget(zcdp_rho(task.epsilon, task.delta), False)] if task.delta else []
    d, (_, sums), found = task.domain.n_columns, _parts(task), []
    for budget in budgets:
        start = private_start(task, budget)
        left = budget.total if start is None else budget.left(start.charges)
        law = Law("pure" if budget.is_pure else "zcdp", task.relation, task.unit, says_one=True)
        of_step = step_budgets(d, left, n_steps, is_pure=budget.is_pure, by_coordinates=by_coordinates)
        found.append((start, law, of_step))
    return min(found, key=lambda one: one[1].variance(sums, d, one[2][1]))


def means(counts: Floats, sums: Floats, domain: Domain) -> Floats:
    """Noisy means, kept inside the domain."""
    return clip(domain, domain.decode(sums / np.maximum(counts, 1.0)[:, None]))


def mean_errors(
    centers: Floats, counts: Floats, count_deviation: float, sum_deviation: float, domain: Domain, unit: Floats | float = 1.0
) -> Floats:
    """Standard errors of noisy means, to first order: noise in the sum, and in the count, which moves a mean along itself.

    unit: what counts as 1 in every column; the half-widths of the bounds where columns are scaled.
    """
    along = count_deviation * np.linalg.norm((centers - domain.center) / unit, axis=1)
    across = sum_deviation * np.linalg.norm(domain.step / unit)
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
    c = (4 * d * OFFSET) ** (1 / 3)
    least = np.sqrt(500 * task.n_clusters**3 * (d + c) ** 3) / task.expected_rows
    return int(np.clip(float(task.epsilon or 1) / least, FEWEST, MOST))


def counts_share(d: int, *, is_pure: bool) -> Fraction:
    """The share of a step that counts get, so that the error of sum/count is least for a centre at `OFFSET`."""
    return _share((2 * OFFSET / (d * (d + 1))) ** (1 / 3) if is_pure else sqrt(OFFSET / d))


def _share(ratio: float) -> Fraction:
    """The counts' share of a step, when `ratio` of what the sums get is best; a multiple of 2**-20."""
    return Fraction(round(2**20 * ratio / (1 + ratio)), 2**20)


def step_budgets(d: int, budget: Fraction, n_steps: int, *, is_pure: bool, by_coordinates: bool) -> tuple[Fraction, Fraction]:
    """What counts and sums of one of `n_steps` equal steps may spend."""
    if by_coordinates:
        of_counts = budget * _share((4 * d * OFFSET) ** (1 / 3) / d) / n_steps
    elif is_pure:
        of_counts = budget * counts_share(d, is_pure=True) / n_steps
    else:
        of_counts = floor_rho(budget * counts_share(d, is_pure=False) / n_steps)
    return of_counts, budget / n_steps - of_counts
