"""Lloyd steps on residuals about released centres: what every protocol ends with. All of it is post-processing of replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.federate.coordinator import Coordinator
from kveil.federate.layout import Layout
from kveil.federate.plan import Round, RunPlan
from kveil.federate.promise import noise_of
from kveil.federate.questions import Question, SpreadQuestion, StatsQuestion, bin_edges, split
from kveil.solve.shrink import shrunk, within
from kveil.summary.cells import TOP
from kveil.summary.frame import whole_steps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STANDS_OUT, IS_SURE = 3.0, 2.0  # deviations of noise, for a count to be acted upon and to be used at all
QUANTILE = 0.85  # of distances to the nearest centre: how far residuals reach
OF_SPREAD = Fraction(1, 10)  # of a step's budget, for the distances that fix its radius


class Outcome(NamedTuple):
    """Released centres in steps from the middle of the domain, noisy counts, and the root mean squared noise in each centre."""

    centers: Floats
    counts: Floats
    errors: Floats


def step_weights(share: Fraction, n_steps: int) -> list[tuple[Fraction, int]]:
    """Shares of the rounds of `n_steps` steps that have `share` together."""
    return [(share / n_steps * OF_SPREAD, 1), (share / n_steps * (1 - OF_SPREAD), 1)] * n_steps if n_steps else []


def step_rounds(budgets: list[Fraction], n_columns: int) -> list[Round]:
    """The rounds of steps; sums of few columns carry little noise, so that counts get more there."""
    of_counts = Fraction(1, 4) if n_columns <= 3 else Fraction(1, 10)
    pairs = zip(budgets[::2], budgets[1::2], strict=True)
    return [part for spread, stats in pairs for part in (Round("spread", spread), Round("stats", stats, counts=of_counts))]


class Steps(ABC):
    """A coordinator's run: questions to all parties, answers added up, and steps towards better centres."""

    def __init__(self, coordinator: Coordinator, layout: Layout, plan: RunPlan, rng: np.random.Generator) -> None:
        self.coordinator, self.layout, self.plan, self.rng = coordinator, layout, plan, rng
        self.noise, self.k, self.reach = noise_of(plan, layout), plan.n_clusters, layout.frame.radius

    @abstractmethod
    def run(self) -> Outcome:
        """All rounds of the plan."""

    def parts(self, kind: str) -> list[Round]:
        return [part for part in self.plan.rounds if part.kind == kind]

    def start(self, centers: Floats) -> Outcome:
        """Centres of which nothing is known yet but where they are."""
        return Outcome(within(centers, float(self.reach)), np.ones(self.k), np.full(self.k, float(self.reach)))

    def stepped(self, outcome: Outcome) -> Outcome:
        """After all steps of the plan."""
        for of_spread, of_stats in zip(self.parts("spread"), self.parts("stats"), strict=True):
            outcome = self._step(outcome, of_spread, of_stats)
        return outcome

    def asked(self, kind: str, question: Question) -> tuple[list[Floats], int]:
        """The replies of all parties that answered, added up, and how many they were."""
        replies = self.coordinator.ask(kind, question, self.layout)
        totals = [np.zeros(shape) for shape in question.shapes(self.layout)]
        for reply in replies.values():
            totals = [total + part for total, part in zip(totals, reply, strict=True)]
        return totals, len(replies)

    def told(self, kind: str, question: Question) -> dict[str, int]:
        """The one number that every party answers with."""
        return {name: int(reply[0][0]) for name, reply in self.coordinator.ask(kind, question, self.layout).items()}

    def deviation(self, budget: Fraction, n: int) -> float:
        """Standard deviation of a count that `n` parties have added noise to."""
        return 0.0 if self.noise is None else sqrt(n) * self.noise.count_deviation(budget)

    def _step(self, before: Outcome, of_spread: Round, of_stats: Round) -> Outcome:
        """A Lloyd step on residuals, which are short where centres are good, so that their noise is small; shrunken by it."""
        codes = whole_steps(before.centers, self.reach)
        radius = self._radius(codes, of_spread)
        radii = np.full(self.k, radius, dtype=np.int64)
        (counts, sums), n = self.asked("stats", StatsQuestion(codes, radii))
        of_counts, of_sums = split(of_stats)
        rows = np.maximum(counts, 1.0)
        errors = sqrt(n * self._spread(of_sums)) * radius / TOP / rows
        moves = within(shrunk(sums * (radius / TOP) / rows[:, None], errors**2), float(radius))
        is_weak = counts < max(STANDS_OUT * self.deviation(of_counts, n), 0.5)
        centers = within(codes.astype(np.float64) + np.where(is_weak[:, None], 0.0, moves), float(self.reach))
        return Outcome(centers, counts, np.where(is_weak, before.errors, errors))

    def _radius(self, codes: Integers, part: Round) -> int:
        """A noisy quantile of the distance to the nearest centre; all of the domain if no bin stands out, or without noise."""
        if self.noise is None:
            return 2 * self.reach
        (counts,), n = self.asked("spread", SpreadQuestion(codes))
        counts = np.where(counts < IS_SURE * self.deviation(part.budget, n), 0.0, counts)
        if not counts.sum() > 0:
            return self.reach
        place = int(np.argmax(np.cumsum(counts) > (1 - QUANTILE) * counts.sum()))
        return int(min(self.reach, max(1.0, np.ceil(bin_edges(self.layout)[place]))))

    def _spread(self, budget: Fraction) -> float:
        return 0.0 if self.noise is None else float(self.noise.sum_spread(self.layout.domain.n_columns, TOP, budget))
