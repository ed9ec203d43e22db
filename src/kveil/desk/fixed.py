"""A budget whose every charge is listed before a row is read, and the desk that pays by it."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.desk.base import Mechanism, by_cell, check_mechanism, columns_of, read_rows
from kveil.desk.law import Law
from kveil.kernel import gate
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge, Plan
from kveil.questions.base import Noisy, Part, Question
from kveil.source.base import Encoding, Source


class Fixed:
    """Charges that are known beforehand; each answer uses up one of `times` equal ones. Without a law nothing is promised."""

    def __init__(self, law: Law | None, charges: tuple[Charge, ...], times: int = 1, delta: Fraction = Fraction(0)) -> None:
        self.law, self.charges, self.times, self.delta = law, charges, times, delta

    def plan(self) -> Plan | None:
        """Every charge of the fit; None without noise."""
        if self.law is None:
            return None
        is_gaussian = any(charge.rho is not None for charge in self.charges)
        return Plan(self.charges, self.law.relation, self.law.unit, self.delta if is_gaussian else Fraction(0))

    def open(self, source: Source, domain: Encoding, ticket: Ticket | None) -> FixedDesk:
        return FixedDesk(source, domain, self.law, ticket, self.times)


class FixedDesk:
    """Shares are exact budgets, which the charges on the ticket list. Without a law answers are exact, and promise nothing."""

    def __init__(self, source: Source, domain: Encoding, law: Law | None, ticket: Ticket | None, times: int = 1) -> None:
        if (law is None) != (ticket is None):
            raise AssertionError("a noise-free run has no ticket, and a private one has")
        self._source, self._domain, self._law, self._ticket, self._times = source, domain, law, ticket, times

    def ask(self, question: Question, *budgets: Fraction) -> tuple[Noisy, ...]:
        """One noisy array for every part of the question, in its unit. Public, charged."""
        drawn = zip(question.parts, self.draw(question, *budgets), strict=True)
        shown = [whole.astype(np.float64) * part.unit for part, whole in drawn]
        if self._law is None:
            return tuple(Noisy(values, 0.0) for values in shown)
        noise = [self._noise(self._law, *terms) for terms in zip(question.parts, shown, budgets, strict=True)]
        return tuple(map(Noisy, shown, noise))

    def draw(self, question: Question, *budgets: Fraction) -> tuple[Integers, ...]:
        """The answer in whole numbers, as parties send it. Public, charged.

        Every cell gets noise: skipping an empty one would publish its emptiness.
        """
        secret = tuple(map(by_cell, question.parts, read_rows(self._source, self._domain, question)))
        if self._law is None or self._ticket is None:
            return secret
        columns = max(map(columns_of, secret))
        noise = self._law.asked(question, columns, budgets, self._times)
        return tuple(gate.run(one, array, self._ticket)[0] for one, array in zip(noise, secret, strict=True))

    def perform(self, mechanism: Mechanism) -> Any:
        """What a mechanism releases that looks several times before it does. Public, charged."""
        return check_mechanism(mechanism).release(self._source, self._ticket)

    @staticmethod
    def _noise(law: Law, part: Part, values: Floats, budget: Fraction) -> float:
        if part.kind in ("counts", "total"):
            return law.deviation(part, budget)
        return sqrt(columns_of(values) * law.variance(part, columns_of(values), budget)) / part.length
