"""One fit's budget, split over its draws while released values come in, and never passed."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, inf, isqrt, log, sqrt
from typing import Any, Literal

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.desk.base import Curator, by_cell, columns_of
from kveil.desk.law import COUNT, NOISED, Law
from kveil.errors import InvalidValue
from kveil.kernel import gate
from kveil.kernel.choice import active_cells, peeled, selection, selections
from kveil.kernel.grid import per_person
from kveil.kernel.ledger import UNIT, Ledger, Ticket
from kveil.kernel.loss import Charge, Measurement, Plan, PrivacyUnit, Relation, zcdp_rho
from kveil.questions.base import Part
from kveil.source.base import Encoding, Source

LEAST_UNITS = 2**10  # of a ledger: with fewer, shares would be lost in rounding, and a late draw could be refused


class Pool:
    """A budget that one reservation pays for, and that is split over answers while they come in.

    Private:      the raw values.  Public: the parts of questions and the shares, which are public or follow from released values.
    Neighbours:   those of the plan; a person has at most m rows.
    Sensitivity:  of counts and sums: `Law`. What a row adds to two costs differs by at most `length`, so the range of what a
                  person adds is m length (replace-one: twice); over cells, of which a row is in one, these ranges add up to
                  the same, and so do the bounds of costs of which several are chosen. Cells that many rows share are a noisy
                  threshold on counts.
    Cost:         what each answer is given, in epsilon or rho. The reservation refuses a draw that would pass its total,
                  which makes adaptive shares sound (a privacy filter), for pure and for zCDP sums. Where rho is counted,
                  coins get epsilon = sqrt(2 rho) and choices sqrt(8 rho), rounded down.
    """

    def __init__(
        self, epsilon: Fraction | None, delta: Fraction, relation: Relation, unit: PrivacyUnit, *, is_pure: bool
    ) -> None:
        self.kind: Literal["pure", "zcdp", "none"] = "none" if epsilon is None else "pure" if is_pure else "zcdp"
        self.epsilon, self.delta = epsilon or Fraction(1), Fraction(0) if is_pure else delta
        self.total = zcdp_rho(self.epsilon, self.delta) if self.kind == "zcdp" else self.epsilon
        if self.total * UNIT < LEAST_UNITS:
            raise InvalidValue("this budget is too small to be shared out. Raise epsilon, or use method='mean' or 'lloyd'.")
        self.relation, self.unit, self.spent = relation, unit, Fraction(0)
        self._law = Law("zcdp" if self.kind == "zcdp" else "pure", relation, unit)
        self._ticket: Ticket | None = None
        self._filter: Ledger | None = None

    def plan(self) -> Plan | None:
        """One charge for the whole pool; None without noise."""
        if self.kind == "none":
            return None
        loss: dict[str, Any] = {"epsilon" if self.kind == "pure" else "rho": self.total}
        charge = Charge("given", "whole budget", 1, "range", **loss)
        return Plan((charge,), self.relation, self.unit, self.delta)

    def open(self, source: Source, domain: Encoding, ticket: Ticket | None) -> Curator:
        """The desk before a table, paying with what `ticket` has reserved: the plan above, once."""
        self.begin(ticket)
        return Curator(source, domain, self)

    def begin(self, ticket: Ticket | None) -> None:
        """Start paying. An open ledger of the reserved total is a privacy filter."""
        plan = self.plan()
        if (ticket is None) != (plan is None) or self._filter is not None:
            raise AssertionError("a pool draws once, on the reservation of its own plan")
        if ticket is not None and plan is not None:
            ticket.take(plan.charges[0])  # refuses another plan, a second pool, a closed ticket, another process or source
            self._ticket = ticket
            self._filter = Ledger.memory("this fit", self.epsilon, self.delta, relation=self.relation, unit=self.unit)

    def rest(self) -> Pool:
        """What is left, as a pool of its own: shares and forecasts are parts of it, and the same reservation pays. Nothing is
        left here."""
        if self.kind != "none" and self._filter is None:
            raise AssertionError("a pool has a rest once it draws: before, nothing is spent")
        rest = copy(self)
        if self.kind != "none":
            rest.total, rest.spent, self.spent = self.total - self.spent, Fraction(0), self.total
        return rest

    @property
    def left(self) -> float:
        """Share of the budget that is not spent yet."""
        return 1.0 if self.kind == "none" else float(1 - self.spent / self.total)

    def deviation(self, share: float) -> float:
        """Standard deviation of a noisy count that is given `share` of the budget."""
        return 0.0 if self.kind == "none" else self._law.deviation(COUNT, float(self.total) * share)

    def spread(self, columns: int, length: float, share: float) -> float:
        """Expected squared norm of the noise on a vector sum."""
        return 0.0 if self.kind == "none" else float(self._law.spread(columns, length, float(self.total) * share))

    def noise(self, part: Part, columns: int, share: float) -> float:
        """`Noisy.noise` of a part that is given `share` of the budget."""
        budget = float(self.total) * share
        if self.kind == "none":
            return 0.0
        if part.kind in ("counts", "total"):
            return self._law.deviation(part, budget)
        if part.kind == "vectors" and part.is_signed:
            return sqrt(self._law.spread(columns, 1.0, budget))
        return sqrt(columns * self._law.variance(part, columns, budget)) / part.length

    def sharpness(self, spread: int, share: float) -> float:
        """By how much, in the logarithm, a choice is less likely for a cost higher by 1."""
        if self.kind == "none":
            return inf
        budget = float(self.total) * share
        epsilon = budget if self.kind == "pure" else sqrt(8 * budget)
        return epsilon / per_person(spread, self.unit.max_rows_per_person, self.relation)

    def release(self, part: Part, raw: Integers, share: float) -> Floats:
        """Counts or sums of all cells, empty ones too, with noise; sums as (cells, columns)."""
        secret = by_cell(part, raw)
        if self.kind == "none":
            return secret.astype(np.float64)
        if part.kind not in NOISED or (part.kind, self.kind) == ("coordinates", "zcdp"):
            raise AssertionError("noise is for counts and sums, and noise on every coordinate is pure")
        unexplained = replace(part, reason="")  # charges of a pool have never named one, and they are in files
        noise = self._law.measure(unexplained, columns_of(secret), self._budget(share))
        return np.asarray(self._draw(noise, secret), dtype=np.float64)

    def choose(self, part: Part, raw: Integers, share: float) -> int:
        """The index of a low cost, of all numbers in `raw`."""
        if self.kind == "none":
            return int(np.argmin(raw))
        epsilon = self._epsilon(self._budget(share), 8)
        return int(self._draw(selection(part.label, self._range(part), epsilon, reason=part.reason), raw))

    def choose_each(self, part: Part, raw: Integers, share: float) -> Integers:
        """For every cell, a row of `raw`, the index of a low cost."""
        if self.kind == "none":
            return np.asarray(np.argmin(raw, axis=1), dtype=np.int64)
        epsilon = self._epsilon(self._budget(share), 8)
        return np.asarray(self._draw(selections(part.label, self._range(part), epsilon), raw))

    def choose_several(self, part: Part, raw: Integers, rounds: int, share: float) -> Integers:
        """For every cell, a row of `raw`, `rounds` different indices of low costs, in the order drawn.

        A person's rows move the costs of cells by m `largest` and, in L1, m `length`, summed over cells (replace-one: twice).
        """
        if self.kind == "none":
            return np.asarray(np.argsort(raw, axis=1, kind="stable")[:, :rounds], dtype=np.int64)
        if self.kind == "zcdp":
            raise AssertionError("several choices of a cell at one cost are pure")
        m, budget = self.unit.max_rows_per_person, self._budget(share)
        largest, together = (per_person(bound, m, self.relation) for bound in (part.largest, part.length))
        return np.asarray(self._draw(peeled(part.label, rounds, largest, together, budget), raw))

    def activate(self, part: Part, raw: Integers, n_cells: int, chance: float, share: float) -> Integers:
        """Cells with many rows, ascending. `raw` has a row of codes below `n_cells` and a row of counts, for occupied cells.

        `chance` bounds the probability that an empty cell passes; it decides how many rows a cell needs.
        """
        if self.kind == "none":
            return np.sort(raw[0])
        epsilon, moved = self._epsilon(self._budget(share), 2), self._range(part)
        least = max(1, ceil(log(1 / chance) * moved / float(epsilon)))
        histogram = dict(zip(raw[0].tolist(), raw[1].tolist(), strict=True))
        return np.array(self._draw(active_cells(part.label, n_cells, least, moved, epsilon), histogram), dtype=np.int64)

    def secret_words(self, n: int) -> Words:
        """Uniform words for choices that nobody should foresee; free, and from the source that the noise will come from."""
        if self._ticket is not None:
            self._ticket.check()
        return gate.secret_words(n)

    def _range(self, part: Part) -> int:
        return per_person(part.length, self.unit.max_rows_per_person, self.relation)

    def _budget(self, share: float) -> Fraction:
        """Take a share, in whole units of a ledger, and at most what is left."""
        budget = Fraction(max(1, min(floor(share * self.total * UNIT), int((self.total - self.spent) * UNIT))), UNIT)
        self.spent += budget
        return budget

    def _epsilon(self, budget: Fraction, per_rho: int) -> Fraction:
        """The largest epsilon, in units, that `budget` pays: all of it, or epsilon**2 / per_rho <= rho."""
        return budget if self.kind == "pure" else Fraction(isqrt(floor(per_rho * budget * UNIT**2)), UNIT)

    def _draw(self, measurement: Measurement[Any, Any], raw: Any) -> Any:
        assert self._filter is not None
        assert self._ticket is not None
        self._ticket.check()
        noisy, receipt = gate.run(measurement, raw, self._filter)
        self._ticket.receipts.append(receipt)
        return noisy
