"""Questions that are answered with noisy rows: a sample of them, and one picked by its distance to released centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.desk.base import Mechanism
from kveil.desk.bounded_share import BoundedShare, SharePick, ShareTotal
from kveil.desk.fixed import FixedDesk
from kveil.desk.noisy_sample import NoisySample
from kveil.desk.seeds import widest
from kveil.federate.layout import Layout
from kveil.federate.questions import Message, Terms
from kveil.federate.wire import fields, many, whole
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge
from kveil.source import Source

MOST_ROWS = 2**40  # at a party; public, and the same for all, so that scores are shifted alike and totals compare
LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class SampleMessage(Message):
    """`rows` rows with noise. `size` is a public number of rows, best the noisy one: the promise holds whatever it is."""

    rows: int
    size: int
    names: ClassVar[tuple[str, ...]] = ("row",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> SampleMessage:
        found = fields(body, {"rows": whole(1, terms.policy.max_rows), "size": whole(1, LARGEST)})
        return cls(found["rows"], max(found["rows"], found["size"]))

    @classmethod
    def blank(cls, terms: Terms) -> SampleMessage:
        return cls(1, 1)

    def body(self) -> dict[str, Any]:
        return {"rows": self.rows, "size": self.size}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((self.rows, layout.domain.n_columns),)

    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        return self._mechanism(terms).charges

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        return (_performed(self._mechanism(terms), source, terms, ticket),)

    def _mechanism(self, terms: Terms) -> NoisySample:
        domain, unit = terms.layout.domain, terms.layout.unit
        return NoisySample(domain, self.rows, Fraction(0), terms.round.budget, float(self.size), unit)


@dataclass(frozen=True, eq=False)
class TotalMessage(Message):
    """The noisy total of squared distances to the centres, each cut at a public cap: how much a party has to be picked from.

    Centres are codes of the domain. Those sent by a liar are queries like any other and change nothing in the promise.
    """

    centers: Integers
    names: ClassVar[tuple[str, ...]] = ("total",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> TotalMessage:
        return cls(_centers(fields(body, {"centers": _table(terms, 1)})["centers"], terms))

    @classmethod
    def blank(cls, terms: Terms) -> TotalMessage:
        return cls(_centers([], terms))

    def body(self) -> dict[str, Any]:
        return {"centers": self.centers.tolist()}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((1,),)

    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        return _share(terms, 2).charges[:1]

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        return (_performed(ShareTotal(_share(terms, 2), self.centers), source, terms, ticket),)


@dataclass(frozen=True, eq=False)
class PickMessage(Message):
    """One noisy row, picked by its squared distance to the centres; by nothing where there are none yet.

    total: any public number, best the party's own noisy total (of rows, before there is a centre).
    """

    centers: Integers
    total: int
    names: ClassVar[tuple[str, ...]] = ("center",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> PickMessage:
        found = fields(body, {"centers": _table(terms, 0), "total": whole(1, LARGEST)})
        return cls(_centers(found["centers"], terms), found["total"])

    @classmethod
    def blank(cls, terms: Terms) -> PickMessage:
        return cls(_centers([], terms), 1)

    def body(self) -> dict[str, Any]:
        return {"centers": self.centers.tolist(), "total": self.total}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((layout.domain.n_columns,),)

    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        return _share(terms, 1).charges

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        return (_performed(SharePick(_share(terms, 1), self.centers, self.total), source, terms, ticket),)


def _performed(mechanism: Mechanism, source: Source, terms: Terms, ticket: Ticket | None) -> Integers:
    """What the party's desk releases: public, charged."""
    return np.asarray(FixedDesk(source, terms.layout.domain, terms.law, ticket).perform(mechanism))


def _share(terms: Terms, n_clusters: int) -> BoundedShare:
    """The mechanism for one total (of two centres) or one centre, each drawn once, for the budget of this part of the plan."""
    domain, budget = terms.layout.domain, terms.round.budget
    cap = max(1, widest(domain, None) // max(4, terms.n_clusters))
    return BoundedShare(domain, n_clusters, None, cap, MOST_ROWS, budget, budget, budget, 1.0, terms.layout.unit)


def _table(terms: Terms, least: int) -> Any:
    top, d = terms.layout.domain.top, terms.layout.domain.n_columns
    return many(many(whole(-top, top), d, d), least, terms.n_clusters)


def _centers(table: list[list[int]], terms: Terms) -> Integers:
    return np.array(table, dtype=np.int64).reshape(-1, terms.layout.domain.n_columns)
