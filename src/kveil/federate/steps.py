"""Lloyd steps on residuals about released centres: what every protocol ends with. All of it is post-processing of replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from math import sqrt

import numpy as np

from kveil.arrays import Floats
from kveil.desk.law import COUNT, Law
from kveil.federate.coordinator import Coordinator
from kveil.federate.desk import Federation
from kveil.federate.layout import Layout
from kveil.federate.plan import Round, RunPlan
from kveil.federate.promise import law_of
from kveil.federate.questions import Message, split
from kveil.methods.steps import N_PLAIN, balanced_radius, binned, step
from kveil.questions.cells import Lengths
from kveil.questions.frame import whole_steps
from kveil.solve.placed import Placed
from kveil.solve.radius import MIDMOST, kept_part, quantile
from kveil.solve.shrink import within
from kveil.space.euclidean import Centers

STANDS_OUT, IS_SURE = 3.0, 2.0  # deviations of noise, for a count to be acted upon and to be used at all
OF_SPREAD = Fraction(1, 10)  # of a step's budget, for the distances that fix its radius


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
        self.law, self.k, self.reach = law_of(plan, layout), plan.n_clusters, layout.frame.radius
        self.desk = Federation(coordinator, layout, self.law)

    @abstractmethod
    def run(self) -> Placed:
        """All rounds of the plan."""

    def parts(self, kind: str) -> list[Round]:
        return [part for part in self.plan.rounds if part.kind == kind]

    def start(self, centers: Floats) -> Placed:
        """Centres of which nothing is known yet but where they are."""
        return Placed(within(centers, float(self.reach)), np.ones(self.k), np.full(self.k, float(self.reach)))

    def stepped(self, outcome: Placed) -> Placed:
        """After all steps of the plan."""
        rounds = list(zip(self.parts("spread"), self.parts("stats"), strict=True))
        for number, (of_spread, of_stats) in enumerate(rounds):
            outcome = self._step(outcome, of_spread, of_stats, is_plain=self.is_low or number >= len(rounds) - N_PLAIN)
        return outcome

    def asked(self, kind: str, question: Message) -> tuple[list[Floats], int]:
        """The replies of all parties that answered, added up, and how many they were."""
        replies = self.coordinator.ask(kind, question, self.layout)
        totals = [np.zeros(shape) for shape in question.shapes(self.layout)]
        for reply in replies.values():
            totals = [total + part for total, part in zip(totals, reply, strict=True)]
        return totals, len(replies)

    def answered(self, kind: str, question: Message) -> dict[str, int]:
        """The one number that every party answers with."""
        return {name: int(reply[0][0]) for name, reply in self.coordinator.ask(kind, question, self.layout).items()}

    def deviation(self, budget: Fraction, n: int) -> float:
        """Standard deviation of a count that `n` parties have added noise to."""
        return 0.0 if self.law is None else sqrt(n) * self.law.deviation(COUNT, budget)

    @property
    def is_low(self) -> bool:
        return self.layout.frame.middle.size <= 3

    def _step(self, before: Placed, of_spread: Round, of_stats: Round, *, is_plain: bool) -> Placed:
        """A relative step, as a curator takes it; the radius is all of the domain without noise."""
        frame, radius, kept = self.layout.frame, 2.0 * self.reach, 1.0
        if self.law is not None:
            radius, kept = self._radius(self.law, before, of_spread.budget, split(of_stats)[1])
        return step(self.desk, frame, before, radius, *split(of_stats), least=STANDS_OUT, is_plain=is_plain, kept=kept)[0]

    def _radius(self, law: Law, before: Placed, of_spread: Fraction, of_sums: Fraction) -> tuple[float, float]:
        """The clip radius of a step, in steps of the grid, from the distances that its first round asks for; and what it leaves
        of the length of rows, with more than 3 columns."""
        codes = Centers(whole_steps(before.centers, self.reach).astype(np.float64), None)
        (shown,) = self.desk.ask(Lengths.binned(self.layout.frame, self.reach, codes), of_spread)
        bins = binned(shown, self.reach, is_pure=law.kind == "pure")
        if self.is_low:
            return min(float(self.reach), max(1.0, quantile(bins, MIDMOST) or self.reach)), 1.0
        several = shown.noise / law.deviation(COUNT, of_spread)  # parties, each of which adds noise: the square root of how many
        noise = several * sqrt(law.spread(codes.codes.shape[1], 1, of_sums))
        radius = float(balanced_radius(bins, noise, self.k, self.reach, self.reach))
        return radius, kept_part(bins, radius)
