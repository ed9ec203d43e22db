"""All parties of a run as one desk: a question goes to each, their noisy answers are added up, and so is their noise."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np

from kveil.desk.law import Law
from kveil.federate.coordinator import Coordinator
from kveil.federate.layout import Layout
from kveil.federate.questions import CellMessage, SpreadMessage, StatsMessage
from kveil.questions.base import Noisy, Part, Question
from kveil.questions.cells import Lengths, Residuals


class Federation:
    """Shares are the budgets that the agreed plan has for each part of the question."""

    def __init__(self, coordinator: Coordinator, layout: Layout, law: Law | None) -> None:
        self._coordinator, self._layout, self._law = coordinator, layout, law

    def ask(self, question: Question, *budgets: Fraction) -> tuple[Noisy, ...]:
        """One noisy array for every part of the question: a message to each party, and their replies added up."""
        kind, message = _message(question)
        replies = self._coordinator.ask(kind, message, self._layout)
        answers = []
        for number, (part, shape, budget) in enumerate(zip(question.parts, message.shapes(self._layout), budgets, strict=True)):
            total = np.zeros(shape)
            for reply in replies.values():
                total = total + reply[number]
            answers.append(Noisy(total * part.unit, self._noise(part, shape, budget, len(replies))))
        return tuple(answers)

    def _noise(self, part: Part, shape: tuple[int, ...], budget: Fraction, n_parties: int) -> float:
        """Every party adds noise of its own: variances add up."""
        if self._law is None:
            return 0.0
        if part.kind == "counts":
            return sqrt(n_parties) * self._law.deviation(part, budget)
        return sqrt(n_parties * float(self._law.spread(shape[1], 1, budget)))


def _message(question: Question) -> tuple[str, CellMessage]:
    """How a question is written in a message."""
    if isinstance(question, Lengths) and question.centers is not None:
        return "spread", SpreadMessage(question.centers.codes.astype(np.int64))
    if isinstance(question, Residuals):
        return "stats", StatsMessage(question.bases, question.radii)
    raise AssertionError("a federation has no message for this question")
