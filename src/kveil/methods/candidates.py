"""Private candidates, local swaps and recovery: the algorithm of a paper, with corrected calibrations."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.methods.base import Facts, Found, shares
from kveil.methods.candidate_search import MOST_SWAPS, CandidateSearch, Projected, whole_frame
from kveil.methods.sparse_recovery import OF_SIZES, by_columns, by_threshold
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task, check_choice, check_count
from kveil.methods.tree.method import Tree
from kveil.partition.cubes import MOST_AXES, MOST_LEVELS
from kveil.progress import step as progress
from kveil.questions.cells import TOP, Residuals
from kveil.questions.frame import Frame, clipped
from kveil.questions.swaps import SetCosts
from kveil.solve.placed import Placed
from kveil.solve.shrink import shrunk, within
from kveil.solve.synopsis import Step, of_steps
from kveil.space.euclidean import Centers, clip, step_length
from kveil.tuning import Candidates as CandidatesTuning

OF_ROWS, OF_CHOICE = 0.02, 0.1  # shares of the number of rows, and of the choice between trials if there are several
OF_CANDIDATES, OF_SWAPS = 0.3, 0.25  # of a trial's budget; the rest, and what these leave over, is for recovery
LEAST_UNITS, WIDEST = 2**10, 2.0**49  # of a ledger's units a draw, or shares are lost in rounding; of a deviation, in steps


class Candidates:
    """Private k-means by candidates from shifted cubes in a projection, private swaps, and one recovery in all columns.

    Private:      the rows and their number.  Public: all parameters, the projection, the shifts, that a fit took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release. The number of rows is noisy (2 %), and all depths,
                  dimensions and loop counts follow from it or from parameters.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), Algorithm 4 and section 6.1, with the corrections of docs/errata.md,
                  and noisy means shrunken towards the mean of all rows as far as their noise explains (a function of released
                  values); sparse rows: `sparse_recovery`.
    """

    takes_sparse: ClassVar[bool] = True
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[CandidatesTuning]] = CandidatesTuning

    def __init__(self, task: Task) -> None:
        check_tuning(task)
        self.task = task
        self.budget = pool_of(task, longest(task), more_draws=4)
        if self.budget.kind == "zcdp" and task.tuning.recovery == "columns":
            raise InvalidValue(
                'recovery="columns" is pure, and this fit has Gaussian noise. Use delta=0 and a ledger that adds epsilon, or '
                'recovery="threshold".'
            )

    @staticmethod
    def bits(facts: Facts) -> int:
        return Tree.bits(facts)

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        task, n_trials = self.task, self.task.tuning.trials
        frame = whole_frame(task, task.tuning)
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
        noise = desk.deviation(OF_SIZES * rest)
        step = Step(best.counts, noise, reached * step_length(task.domain, task.scaling))
        rows = float(np.maximum(best.counts, 0.0).sum()), noise * len(best.counts) ** 0.5
        return Found(
            clip(task.domain, task.domain.center + best.centers * unit), shares(best.counts),
            errors=reached * np.sqrt(np.mean(np.square(unit))), synopsis=of_steps(task.domain.n_columns, (step,), *rows),
        )  # fmt: skip

    def _recovered(self, desk: Curator, found: Projected, share: float) -> Placed:
        """Noisy means, in all columns, of the rows whose projection is nearest to each found centre."""
        frame, k, d, tuning = found.frame, len(found.points), self.task.domain.n_columns, self.task.tuning
        bases, radii = np.zeros((k, d), dtype=np.int64), np.full(k, frame.radius, dtype=np.int64)
        centers, labels = Centers(found.points.astype(np.float64), None), ("cluster sizes", "cluster sums")
        question = Residuals(frame, centers, "projected", "centred", bases, radii, labels)
        if desk.is_sparse:
            is_chosen = tuning.recovery == "columns"
            return by_columns(desk, question, share, tuning.eta) if is_chosen else by_threshold(desk, question, share)
        of_sizes = OF_SIZES * share
        (sizes, deviation), (sums, _) = desk.ask(question, of_sizes, share - of_sizes)  # public, charged
        variance = desk.spread(d, float(frame.radius), share - of_sizes)
        weak = sizes < max(2 * deviation, 0.5)
        errors = np.where(weak, frame.radius, np.sqrt(variance) / np.maximum(sizes, 1.0))
        return Placed(means(sizes, sums, variance, weak, frame.radius), sizes, errors)

    def _best(self, desk: Curator, frame: Frame, trials: list[Placed]) -> int:
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


def pool_of(task: Task, length: float, more_draws: int) -> Pool:
    """One budget for all draws. Judged here, from public parameters, so that no draw in the middle of a fit can be refused.

    length: of the longest vector that gets noise. more_draws: of a trial, beside cubes and swaps.
    """
    tuning = task.tuning
    is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
    pool = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
    widest = pool.spread(1, length, 0.25 / tuning.trials) ** 0.5
    draws = tuning.trials * (tuning.repetitions * (tuning.levels or MOST_LEVELS) + (tuning.swaps or MOST_SWAPS) + more_draws)
    if pool.kind != "none" and (pool.total * UNIT < LEAST_UNITS * draws or widest > WIDEST):
        raise InvalidValue(
            "this budget is too small for candidates, which share it out in many draws. Raise epsilon, or have fewer "
            "repetitions, levels and swaps."
        )
    return pool


def longest(task: Task) -> float:
    """Of what recovery adds noise to, as long as all of a trial's recovery would have to hide."""
    if not task.is_sparse:
        return TOP
    tuning, d = task.tuning, task.domain.n_columns
    s = min(tuning.nonzeros or d, d)
    return TOP * (2 * sqrt(s) + 2 * s / tuning.eta + 1 if tuning.recovery == "columns" else sqrt(s))


def check_tuning(task: Task) -> None:
    tuning: CandidatesTuning = task.tuning
    for name in ("repetitions", "trials", "most"):
        check_count(name, getattr(tuning, name))
    for name, most in (("swaps", None), ("dimension", MOST_AXES), ("levels", MOST_LEVELS), ("nonzeros", None)):
        value = getattr(tuning, name)
        if value is not None and check_count(name, value) > (most or value):
            raise InvalidValue(f"{name} must be at most {most}, got {value}.")
    if not (isinstance(tuning.kappa, float) and 2.0**-60 <= tuning.kappa <= 0.25):
        raise InvalidValue("kappa must be between 2**-60 and 1/4: with 1 or more, active empty cubes would multiply for ever.")
    if not (isinstance(tuning.eta, float) and 2.0**-10 <= tuning.eta < 1):
        raise InvalidValue(f"eta must be a number between 2**-10 and 1, got {tuning.eta!r}.")
    check_choice("recovery", tuning.recovery, ("auto", "threshold", "columns"))
    if not task.is_sparse and (tuning.nonzeros is not None or tuning.recovery != "auto"):
        raise InvalidValue(
            "nonzeros and recovery are about the entries of sparse rows, and these are dense. Leave them out, or pass a SciPy "
            "sparse matrix (guarantee(is_sparse=True) to ask beforehand)."
        )
    if tuning.recovery == "columns" and tuning.nonzeros is None:
        raise InvalidValue('recovery="columns" chooses 2 nonzeros/eta columns: give nonzeros, a public bound on entries per row.')
