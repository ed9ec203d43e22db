"""What may be asked about a party's rows: each kind with its checks, its cost, its exact answer, and the shape of a reply.

Coordinator and party share these classes, so that what is asked, what is drawn and what is read back cannot drift apart.
Every check here carries a guarantee or rules out an overflow, looks at public values alone, and comes before the charge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.desk.fixed import FixedDesk
from kveil.desk.law import Law
from kveil.federate.layout import Layout
from kveil.federate.plan import Round, units
from kveil.federate.policy import Policy
from kveil.federate.wire import MOST_NUMBERS, WireError, fields, many, one_of, whole
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Charge
from kveil.partition.midpoints import Level, is_antichain
from kveil.questions.base import Question
from kveil.questions.midpoint_cells import CellCounts, CellSums
from kveil.questions.party_cells import PartyLengths, PartyResiduals
from kveil.source import Source
from kveil.space.euclidean import Centers

N_LENGTHS = 40  # bins of a distance, four per octave
_NUMBER = whole(-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Terms:
    """What a question is read and answered against: the shared ground, the part of the plan that it uses up, what the party
    allows, and how its answers are made noisy (None: they are not)."""

    layout: Layout
    round: Round
    n_clusters: int
    policy: Policy
    law: Law | None
    run: str = ""
    party: str = ""
    secret: bytes | None = None  # that parties share and the coordinator does not know


class Message(ABC):
    """A request's body, checked. `names` and `shapes` are those of the arrays in a reply."""

    names: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def read(cls, body: Any, terms: Terms) -> Message: ...

    @classmethod
    @abstractmethod
    def blank(cls, terms: Terms) -> Message:
        """A question about nothing in particular: what any other of this round costs, it costs too."""

    @abstractmethod
    def body(self) -> dict[str, Any]: ...

    @abstractmethod
    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]: ...

    @abstractmethod
    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        """What an answer costs; nothing without noise."""

    @abstractmethod
    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        """The arrays of a reply: drawn on a reservation of the charges, or exact without one."""


class CellMessage(Message):
    """A message that carries a question about disjoint cells, which a desk of the party answers."""

    @abstractmethod
    def question(self, layout: Layout) -> Question:
        """What is asked of the rows."""

    def budgets(self, part: Round) -> tuple[Fraction, ...]:
        """What each part of the answer may spend."""
        return (part.budget,)

    def charges(self, terms: Terms) -> tuple[Charge, ...]:
        if terms.law is None:
            return ()
        columns = terms.layout.domain.n_columns
        noise = terms.law.asked(self.question(terms.layout), columns, self.budgets(terms.round))
        return tuple(measurement.charge for measurement in noise)

    def answer(self, source: Source, terms: Terms, ticket: Ticket | None) -> Sequence[Integers]:
        """Nothing leaves without noise but by a plan that says so: such a plan has no law, and its desk refuses a ticket."""
        desk = FixedDesk(source, terms.layout.domain, terms.law, ticket)
        return desk.draw(self.question(terms.layout), *self.budgets(terms.round))


@dataclass(frozen=True, eq=False)
class CellsMessage(CellMessage):
    """Counts of all cells of a level, or of listed ones: strictly ascending, so none twice, and a row is in at most one.

    A coordinator that could list one cell a thousand times would average the noise away while the party charges once.
    """

    level: int
    nodes: Integers | None = None
    names: ClassVar[tuple[str, ...]] = ("count",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> CellsMessage:
        level, most = terms.round.level, terms.policy.max_cells
        depth = min(terms.layout.cells.depth, terms.policy.max_level)
        if isinstance(body, dict) and body.get("nodes") == "all":
            fields(body, {"level": whole(level, min(level, depth)), "nodes": str})
            if 2**level > most:
                raise WireError("all cells of this level are more than a message may ask for.")
            return cls(level)
        code = whole(0, 2**level - 1)
        found = fields(body, {"level": whole(level, min(level, depth)), "nodes": many(code, 1, most)})
        nodes = np.array(found["nodes"], dtype=np.int64)
        if not (nodes[:-1] < nodes[1:]).all():
            raise WireError("cells must be listed in ascending order, and none twice.")
        return cls(level, nodes)

    @classmethod
    def blank(cls, terms: Terms) -> CellsMessage:
        return cls(terms.round.level)

    def body(self) -> dict[str, Any]:
        return {"level": self.level, "nodes": "all" if self.nodes is None else self.nodes.tolist()}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((2**self.level if self.nodes is None else len(self.nodes),),)

    def question(self, layout: Layout) -> Question:
        return CellCounts(layout.frame, layout.cells, self.level, self.nodes)


@dataclass(frozen=True, eq=False)
class SumsMessage(CellMessage):
    """Counts and deviations of cells of several levels, none inside another: a row is in at most one."""

    levels: tuple[Level, ...]
    names: ClassVar[tuple[str, ...]] = ("count", "dev")

    @classmethod
    def read(cls, body: Any, terms: Terms) -> SumsMessage:
        deepest = min(terms.layout.cells.depth, terms.policy.max_level)
        cell = many(whole(0, 2**62 - 1), 2, 2)
        cells = fields(body, {"cells": many(cell, 1, terms.policy.max_cells)})["cells"]
        if cells != sorted(cells) or any(level > deepest or code >= 2**level for level, code in cells):
            raise WireError("cells must be sorted pairs of a level and a code of that level.")
        by_level: dict[int, list[int]] = {}
        for level, code in cells:
            by_level.setdefault(level, []).append(code)
        levels = tuple((level, np.array(codes, dtype=np.int64)) for level, codes in by_level.items())
        if not is_antichain(levels):
            raise WireError("no cell may be listed twice or lie in another one: a row must be in at most one.")
        return cls(levels)

    @classmethod
    def blank(cls, terms: Terms) -> SumsMessage:
        return cls(())

    def body(self) -> dict[str, Any]:
        return {"cells": [[level, code] for level, codes in self.levels for code in codes.tolist()]}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        n = sum(len(codes) for _, codes in self.levels)
        return (n,), (n, layout.domain.n_columns)

    def question(self, layout: Layout) -> Question:
        return CellSums.in_levels(layout.frame, layout.cells, self.levels, "l2")

    def budgets(self, part: Round) -> tuple[Fraction, ...]:
        return split(part)


@dataclass(frozen=True, eq=False)
class SpreadMessage(CellMessage):
    """How many rows lie how far from their nearest centre, in bins; a row is in one."""

    centers: Integers
    names: ClassVar[tuple[str, ...]] = ("count",)

    @classmethod
    def read(cls, body: Any, terms: Terms) -> SpreadMessage:
        return cls(_centers(fields(body, {"centers": _table(terms)})["centers"], terms))

    @classmethod
    def blank(cls, terms: Terms) -> SpreadMessage:
        return cls(np.zeros((0, terms.layout.domain.n_columns), dtype=np.int64))

    def body(self) -> dict[str, Any]:
        return {"centers": self.centers.tolist()}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return ((N_LENGTHS,),)

    def question(self, layout: Layout) -> Question:
        edges = (bin_edges(layout) ** 2)[1:].astype(np.int64)
        return PartyLengths(layout.frame, edges, Centers(self.centers.astype(np.float64), None))


@dataclass(frozen=True, eq=False)
class StatsMessage(CellMessage):
    """Counts and summed residuals of the rows nearest to each centre, ties to the lowest index.

    A residual is the row relative to its centre, shortened to the centre's radius and scaled so that the radius is TOP, all in
    integers: whatever radii a coordinator asks for, a row adds a vector no longer than TOP.
    """

    centers: Integers
    radii: Integers
    names: ClassVar[tuple[str, ...]] = ("count", "sum")

    @classmethod
    def read(cls, body: Any, terms: Terms) -> StatsMessage:
        radius = whole(1, 2 * terms.layout.frame.radius)
        k = terms.n_clusters
        found = fields(body, {"centers": _table(terms), "radii": many(radius, k, k)})
        return cls(_centers(found["centers"], terms), np.array(found["radii"], dtype=np.int64))

    @classmethod
    def blank(cls, terms: Terms) -> StatsMessage:
        return cls(np.zeros((0, terms.layout.domain.n_columns), dtype=np.int64), np.zeros(0, dtype=np.int64))

    def body(self) -> dict[str, Any]:
        return {"centers": self.centers.tolist(), "radii": self.radii.tolist()}

    def shapes(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        return (len(self.centers),), self.centers.shape

    def question(self, layout: Layout) -> Question:
        return PartyResiduals.about(layout.frame, self.centers, self.radii)

    def budgets(self, part: Round) -> tuple[Fraction, ...]:
        return split(part)


def split(part: Round) -> tuple[Fraction, Fraction]:
    """Budgets of counts and of sums, in whole units of a ledger."""
    of_counts = units(part.budget * part.counts)
    return of_counts, part.budget - of_counts


def bin_edges(layout: Layout) -> NDArray[np.float64]:
    """Upper ends of the bins of a distance, descending by four per octave, in steps; the last bin ends at 0."""
    return np.asarray(2.0 * layout.frame.radius * 2.0 ** (-np.arange(N_LENGTHS) / 4))


def check_size(question: Message, layout: Layout) -> None:
    """Refuse a question whose reply would not fit into a message, before it is paid for and takes all the memory there is."""
    if sum(prod(shape) for shape in question.shapes(layout)) > MOST_NUMBERS:
        raise WireError("the answer would be longer than a message may be: ask for fewer cells, rows or centres.")


def read_reply(body: Any, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> tuple[list[Integers], str]:
    """The arrays of a reply, of exactly these shapes, and where its noise came from."""
    readers = {name: _array(shape) for name, shape in zip(names, shapes, strict=True)}
    found = fields(body, {**readers, "noise": one_of("system", "scripted", "none")})
    return [found[name] for name in names], found["noise"]


def _array(shape: tuple[int, ...]) -> Any:
    read: Any = _NUMBER
    for size in reversed(shape):
        read = many(read, size, size)
    return lambda value: np.array(read(value), dtype=np.int64).reshape(shape)


def _table(terms: Terms) -> Any:
    reach, k, d = terms.layout.frame.radius, terms.n_clusters, terms.layout.domain.n_columns
    return many(many(whole(-reach, reach), d, d), k, k)


def _centers(table: list[list[int]], terms: Terms) -> Integers:
    """Centres within the ball that holds all rows: distances then stay below 2**53 and are exact."""
    centers = np.array(table, dtype=np.int64)
    if (centers.astype(object) ** 2).sum(axis=1).max() > terms.layout.frame.radius**2:
        raise WireError("centres must lie in the ball around the domain.")
    return centers
