"""Private candidates, local swaps and recovery: the algorithm of a paper, with corrected calibrations."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.methods.base import Facts, Found, shares
from kveil.methods.candidate_search import MOST_SWAPS, CandidateSearch, Projected
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task, check_count
from kveil.methods.tree.method import Tree
from kveil.partition.cubes import MOST_AXES, MOST_LEVELS
from kveil.progress import step as progress
from kveil.questions.cells import TOP, Residuals
from kveil.questions.frame import Frame, clipped
from kveil.questions.swaps import SetCosts
from kveil.solve.shrink import shrunk, within
from kveil.solve.synopsis import Step, of_steps
from kveil.space.euclidean import Centers, clip
from kveil.tuning import Candidates as CandidatesTuning

OF_ROWS, OF_CHOICE = 0.02, 0.1  # shares of the number of rows, and of the choice between trials if there are several
OF_CANDIDATES, OF_SWAPS = 0.3, 0.25  # of a trial's budget; the rest, and what these leave over, is for recovery
OF_SIZES = 0.05  # of recovery
LEAST_UNITS, WIDEST = 2**10, 2.0**49  # of a ledger's units a draw, or shares are lost in rounding; of a deviation, in steps


class Trial(NamedTuple):
    """Centres (k, d) in steps from the centre of the domain, noisy sizes, the standard error of each centre, and the deviation of
    a size. Public."""

    centers: Floats
    sizes: Floats
    errors: Floats
    deviation: float


class Candidates:
    """Private k-means by candidates from shifted cubes in a projection, private swaps, and one recovery in all columns.

    Private:      the rows and their number.  Public: all parameters, the projection, the shifts, that a fit took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release. The number of rows is noisy (2 %), and all depths,
                  dimensions and loop counts follow from it or from parameters.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), Algorithm 4, with the corrections of docs/errata.md, and noisy means
                  shrunken towards the mean of all rows as far as their noise explains (a function of released values).
    """

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[CandidatesTuning]] = CandidatesTuning

    def __init__(self, task: Task) -> None:
        check_tuning(task.tuning)
        self.task, tuning = task, task.tuning
        is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        widest = self.budget.spread(1, TOP, 0.25 / tuning.trials) ** 0.5
        draws = tuning.trials * (tuning.repetitions * (tuning.levels or MOST_LEVELS) + (tuning.swaps or MOST_SWAPS) + 4)
        if self.budget.kind != "none" and (self.budget.total * UNIT < LEAST_UNITS * draws or widest > WIDEST):
            raise InvalidValue(
                'this budget is too small for method="candidates", which shares it out in many draws. Raise epsilon, or try '
                '"mean".'
            )

    @staticmethod
    def bits(facts: Facts) -> int:
        return Tree.bits(facts)

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        task, n_trials = self.task, self.task.tuning.trials
        frame = Frame.of(task.domain, task.scaling)
        n_rows = task.expected_rows or number_of_rows(desk, OF_ROWS)
        search = CandidateSearch(desk, task, task.tuning, "k-means", rng)
        kept = OF_CHOICE if n_trials > 1 else 0.0
        trials = []
        for number in range(n_trials):
            progress("looking for candidates", number + 1, n_trials)
            rest = (desk.left - kept) / (n_trials - number)
            projected = search.found_in_projection(n_rows, OF_CANDIDATES * rest, OF_SWAPS * rest)
            rest = (desk.left - kept) / (n_trials - number) if number < n_trials - 1 else desk.left - kept
            trials.append(self._recovered(desk, projected, rest))
        best = trials[0] if n_trials == 1 else trials[self._best(desk, frame, trials)]
        unit = frame.unit(task.domain)
        reached = np.minimum(best.errors, frame.radius)
        length = 1 / task.domain.top if task.scaling == "bounds" else float(task.domain.step.max())
        step = Step(best.sizes, best.deviation, reached * length)
        rows = float(np.maximum(best.sizes, 0.0).sum()), best.deviation * len(best.sizes) ** 0.5
        return Found(
            clip(task.domain, task.domain.center + best.centers * unit), shares(best.sizes),
            errors=reached * np.sqrt(np.mean(np.square(unit))), synopsis=of_steps(task.domain.n_columns, (step,), *rows),
        )  # fmt: skip

    def _recovered(self, desk: Curator, found: Projected, share: float) -> Trial:
        """Noisy means, in all columns, of the rows whose projection is nearest to each found centre."""
        frame, k, d = found.frame, len(found.centers), self.task.domain.n_columns
        bases, radii = np.zeros((k, d), dtype=np.int64), np.full(k, frame.radius, dtype=np.int64)
        centers, labels = Centers(found.centers.astype(np.float64), None), ("cluster sizes", "cluster sums")
        question = Residuals(frame, centers, "projected", "centred", bases, radii, labels)
        of_sizes = OF_SIZES * share
        (sizes, deviation), (sums, _) = desk.ask(question, of_sizes, share - of_sizes)  # public, charged
        variance = desk.spread(d, float(frame.radius), share - of_sizes)
        weak = sizes < max(2 * deviation, 0.5)
        errors = np.where(weak, frame.radius, np.sqrt(variance) / np.maximum(sizes, 1.0))
        return Trial(means(sizes, sums, variance, weak, frame.radius), sizes, errors, deviation)

    def _best(self, desk: Curator, frame: Frame, trials: list[Trial]) -> int:
        """Which trial has a low cost, in all columns; its centres lie in the ball, so a row adds at most `Loss.highest`."""
        sets = np.stack([clipped(np.rint(trial.centers).astype(np.int64), frame.radius) for trial in trials])
        return desk.choose(SetCosts(frame, "k-means", desk.max_rows, sets), desk.left)  # public, charged


def means(sizes: Floats, sums: Floats, variance: float, weak: NDArray[np.bool_], radius: float) -> Floats:
    """Released sums over released sizes, inside the ball; each shrunken towards the mean of all, and that towards 0, as far
    as noise of this expected squared length on a sum explains."""
    n, counts = max(1.0, float(sizes.sum())), np.maximum(sizes, 1.0)
    middle = within(shrunk(sums.sum(axis=0, keepdims=True) / n, np.array([len(sizes) * variance / n**2])), radius)
    moves = shrunk(sums / counts[:, None] - middle, variance / counts**2)
    return within(middle + np.where(weak[:, None], 0.0, moves), radius)


def check_tuning(tuning: CandidatesTuning) -> None:
    for name in ("repetitions", "trials", "most"):
        check_count(name, getattr(tuning, name))
    for name, most in (("swaps", None), ("dimension", MOST_AXES), ("levels", MOST_LEVELS)):
        value = getattr(tuning, name)
        if value is not None and check_count(name, value) > (most or value):
            raise InvalidValue(f"{name} must be at most {most}, got {value}.")
    if not (isinstance(tuning.kappa, float) and 2.0**-60 <= tuning.kappa <= 0.25):
        raise InvalidValue("kappa must be between 2**-60 and 1/4: with 1 or more, active empty cubes would multiply for ever.")
