"""One fit's budget, shared out step by step as released values suggest, and never passed."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isqrt, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel import gate
from kveil.kernel.choice import active_cells, selection, selections
from kveil.kernel.grid import per_person
from kveil.kernel.ledger import UNIT, Ledger, Ticket
from kveil.kernel.loss import Charge, Measurement, Plan, PrivacyUnit, Relation, zcdp_rho
from kveil.kernel.noise import gaussian_noise, k_norm_noise, laplace_noise

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Kind = Literal["pure", "zcdp", "none"]

LEAST_UNITS = 2**10  # of a ledger: with fewer, shares would be lost in rounding, and a late draw could be refused


class Pool:
    """Noisy counts and vector sums of disjoint cells, cells that many rows share, and low costs, paid from one reservation.

    Private:      the raw values.  Public: cells, radii, labels and shares, which are public or follow from released values.
    Neighbours:   those of the plan; a person has at most m rows.
    Sensitivity:  a row lies in at most one cell of each release, adds 1 to its count and a vector of norm at most `length` to
                  its sum: m in L1 and L2 for counts (replace-one: 2 m and ceil(sqrt(2) m)), m length summed over cells
                  for vectors (replace-one: twice). Costs only rise when a row is added, each by at most `highest`: their
                  range is m highest (replace-one: twice).
    Cost:         what each release is given, in epsilon or rho. The reservation refuses a draw that would pass its total,
                  which makes adaptive shares sound (a privacy filter), for pure and for zCDP sums. Where rho is counted,
                  coins get epsilon = sqrt(2 rho) and choices sqrt(8 rho), rounded down.
    """

    def __init__(
        self, epsilon: Fraction | None, delta: Fraction, relation: Relation, unit: PrivacyUnit, *, is_pure: bool
    ) -> None:
        self.kind: Kind = "none" if epsilon is None else "pure" if is_pure else "zcdp"
        self.epsilon, self.delta = epsilon or Fraction(1), Fraction(0) if is_pure else delta
        self.total = zcdp_rho(self.epsilon, self.delta) if self.kind == "zcdp" else self.epsilon
        if self.total * UNIT < LEAST_UNITS:
            raise InvalidValue("this budget is too small to be shared out. Raise epsilon, or use method='mean' or 'lloyd'.")
        self.relation, self.unit, self.spent = relation, unit, Fraction(0)
        self._ticket: Ticket | None = None
        self._filter: Ledger | None = None

    def plan(self) -> Plan | None:
        """One charge for the whole pool; None without noise."""
        if self.kind == "none":
            return None
        loss: dict[str, Any] = {"epsilon" if self.kind == "pure" else "rho": self.total}
        charge = Charge("given", "whole budget", 1, "range", **loss)
        return Plan((charge,), self.relation, self.unit, self.delta)

    def open(self, ticket: Ticket | None) -> None:
        """Start drawing on what `ticket` has reserved: the plan above, once. An open ledger of that total is a privacy filter."""
        plan = self.plan()
        if (ticket is None) != (plan is None) or self._filter is not None:
            raise AssertionError("a pool draws once, on the reservation of its own plan")
        if ticket is not None and plan is not None:
            ticket.take(plan.charges[0])  # refuses another plan, a second pool, a closed ticket, another process or source
            self._ticket = ticket
            self._filter = Ledger.memory("this fit", self.epsilon, self.delta, relation=self.relation, unit=self.unit)

    @property
    def left(self) -> float:
        """Share of the budget that is not spent yet."""
        return 1.0 if self.kind == "none" else float(1 - self.spent / self.total)

    def deviation(self, share: float) -> float:
        """Standard deviation of a noisy count that is given `share` of the budget."""
        if self.kind == "none":
            return 0.0
        budget = float(self.total) * share
        return self._moved("l1") * sqrt(2) / budget if self.kind == "pure" else self._moved("l2") / sqrt(2 * budget)

    def spread(self, columns: int, length: float, share: float) -> float:
        """Expected squared norm of the noise on a vector sum."""
        if self.kind == "none":
            return 0.0
        budget, reach = float(self.total) * share, length * per_person(1, self.unit.max_rows_per_person, self.relation)
        return columns * (columns + 1) * (reach / budget) ** 2 if self.kind == "pure" else columns * reach**2 / (2 * budget)

    def counts(self, label: str, raw: Integers, share: float) -> Floats:
        """Noisy counts of all cells, empty ones too."""
        return self._release(label, raw, share, self._moved("l1" if self.kind == "pure" else "l2"), is_vector=False)

    def vectors(self, label: str, raw: Integers, length: int, share: float) -> Floats:
        """Noisy sums (cells, columns) of vectors no longer than `length`."""
        reach = per_person(length, self.unit.max_rows_per_person, self.relation)
        return self._release(label, np.atleast_2d(raw), share, reach, is_vector=True)

    def coordinates(self, label: str, raw: Integers, l1_length: int, share: float) -> Floats:
        """Noisy sums (cells, columns) of vectors whose L1 norm is at most `l1_length`, each number with Laplace noise of its own.

        m rows move the sums by at most m l1_length in L1 (replace-one: twice). Pure budgets only.
        """
        assert self.kind != "zcdp"
        reach = per_person(l1_length, self.unit.max_rows_per_person, self.relation)
        return self._release(label, np.atleast_2d(raw), share, reach, is_vector=False)

    def activate(self, label: str, raw: Integers, n_cells: int, chance: float, share: float) -> Integers:
        """Cells with many rows, ascending. `raw` has a row of codes below `n_cells` and a row of counts, for occupied cells.

        `chance` bounds the probability that an empty cell passes; it decides how many rows a cell needs.
        """
        if self.kind == "none":
            return np.sort(raw[0])
        epsilon, moved = self._epsilon(self._budget(share), 2), self._moved("l1")
        least = max(1, ceil(log(1 / chance) * moved / float(epsilon)))
        histogram = dict(zip(raw[0].tolist(), raw[1].tolist(), strict=True))
        return np.array(self._draw(active_cells(label, n_cells, least, moved, epsilon), histogram), dtype=np.int64)

    def choose(self, label: str, raw: Integers, highest: int, share: float, reason: str = "") -> int:
        """The index of a low cost; what a row adds to the costs differs by at most `highest`, as if between 0 and that."""
        if self.kind == "none":
            return int(np.argmin(raw))
        cost_range = per_person(highest, self.unit.max_rows_per_person, self.relation)
        return int(self._draw(selection(label, cost_range, self._epsilon(self._budget(share), 8), reason=reason), raw))

    def sharpness(self, spread: int, share: float) -> float:
        """By how much, in the logarithm, a choice is less likely for a cost higher by 1."""
        if self.kind == "none":
            return inf
        budget = float(self.total) * share
        epsilon = budget if self.kind == "pure" else sqrt(8 * budget)
        return epsilon / per_person(spread, self.unit.max_rows_per_person, self.relation)

    def choose_each(self, label: str, raw: Integers, spread: int, share: float) -> Integers:
        """For every cell (a row of `raw`) the index of a low cost; a row lies in one cell, and what it adds to the costs there
        differs by at most `spread`. Over cells these ranges add up to m spread (replace-one: twice)."""
        if self.kind == "none":
            return np.asarray(np.argmin(raw, axis=1), dtype=np.int64)
        cost_range = per_person(spread, self.unit.max_rows_per_person, self.relation)
        return np.asarray(self._draw(selections(label, cost_range, self._epsilon(self._budget(share), 8)), raw))

    def secret_words(self, n: int) -> NDArray[np.uint64]:
        """Uniform words for choices that nobody should foresee; free, and from the source that the noise will come from."""
        if self._ticket is not None:
            self._ticket.check()
        return gate.secret_words(n)

    def _release(self, label: str, raw: Integers, share: float, sensitivity: int, *, is_vector: bool) -> Floats:
        if self.kind == "none":
            return raw.astype(np.float64)
        budget = self._budget(share)
        measurement: Any
        if self.kind == "zcdp":
            measurement = gaussian_noise(label, sensitivity, budget)
        elif is_vector and raw.shape[1] > 1:
            measurement = k_norm_noise(label, sensitivity, budget)
        else:
            measurement = laplace_noise(label, sensitivity, budget)
        return np.asarray(self._draw(measurement, raw), dtype=np.float64)

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

    def _moved(self, norm: Literal["l1", "l2"]) -> int:
        m = self.unit.max_rows_per_person
        if norm == "l1" or self.relation == "add-remove":
            return per_person(1, m, self.relation)
        return isqrt(2 * m * m - 1) + 1
