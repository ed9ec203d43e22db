"""Desks: whoever stands before one gets noisy answers, and pays for them. What is behind it stays there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kveil.arrays import Integers
from kveil.questions.base import Noisy, Part, Question, raw
from kveil.source.base import Encoding, Source

if TYPE_CHECKING:
    from kveil.desk.pool import Pool


class Desk(Protocol):
    """What an algorithm sees of rows. A share is whatever this desk counts budgets in; the algorithm only hands it on."""

    def ask(self, question: Question, *shares: Any) -> tuple[Noisy, ...]:
        """One noisy array for every part of the question, each for its share. Public, charged."""


class Mechanism(ABC):
    """Something that looks at rows several times before it releases anything. Its classes live in this room alone."""

    @abstractmethod
    def release(self, behind: Any, account: Any) -> Any:
        """What it releases of what is behind a desk (a source, or raw arrays), paid from the desk's pool or ticket."""


class PoolDesk(ABC):
    """A desk that pays from one pool; shares are parts of it. `kind`, `total`, `left` and the forecasts are public."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.kind, self.total, self.unit, self.relation = pool.kind, pool.total, pool.unit, pool.relation
        self.deviation, self.spread, self.noise, self.sharpness = pool.deviation, pool.spread, pool.noise, pool.sharpness

    @property
    def left(self) -> float:
        """Share of the budget that is not spent yet."""
        return self._pool.left

    @abstractmethod
    def _secret(self, question: Question) -> tuple[Integers, ...]:
        """The raw answer: it goes no further than the methods below."""

    def ask(self, question: Question, *shares: float) -> tuple[Noisy, ...]:
        """One noisy array for every part of the question, each for its share. Public, charged."""
        held = self.hold(question)
        if len(shares) != len(question.parts):
            raise AssertionError("every part of an answer has a share of its own")
        return tuple(held.show(number, share) for number, share in enumerate(shares))

    def hold(self, question: Question) -> Held:
        """One look at what is behind the desk. The raw answer lies behind another desk, which pays from the same pool."""
        return Held(question, self._secret(question), self._pool)

    def choose(self, question: Question, share: float) -> int:
        """The index of a low cost, by the exponential mechanism. Public, charged."""
        (part,), (secret,) = self._only(question, "costs"), self._secret(question)
        return self._pool.choose(part, secret.ravel(), share)

    def choose_each(self, question: Question, share: float) -> Integers:
        """For every cell the index of a low cost. Public, charged."""
        (part,), (secret,) = self._only(question, "cell costs"), self._secret(question)
        return self._pool.choose_each(part, secret, share)

    def choose_several(self, question: Question, rounds: int, share: float) -> Integers:
        """For every cell the indices (cells, rounds) of different low costs. Public, charged."""
        (part,), (secret,) = self._only(question, "peeled costs"), self._secret(question)
        return self._pool.choose_several(part, secret, rounds, share)

    def active(self, question: Question, n_cells: int, chance: float, share: float) -> Integers:
        """Cells that many rows share, of more than anyone can list. Public, charged."""
        (part,), (secret,) = self._only(question, "active"), self._secret(question)
        return self._pool.activate(part, secret, n_cells, chance, share)

    def perform(self, mechanism: Mechanism) -> Any:
        """What a mechanism releases that looks several times before it does. Public, charged."""
        return check_mechanism(mechanism).release(self._behind, self._pool)

    @property
    @abstractmethod
    def _behind(self) -> Any:
        """What a mechanism is handed."""

    @staticmethod
    def _only(question: Question, kind: str) -> tuple[Part, ...]:
        if [part.kind for part in question.parts] != [kind]:
            raise AssertionError(f"this is for questions about {kind}")
        return question.parts


class Curator(PoolDesk):
    """Behind it: a table. `max_rows`, `is_sparse` and `n_columns` are public facts of its schema."""

    def __init__(self, source: Source, domain: Encoding, pool: Pool) -> None:
        super().__init__(pool)
        self._source, self._domain = source, domain
        self.max_rows, self.is_sparse, self.n_columns = source.max_rows, source.is_sparse, source.n_columns

    def on(self, domain: Encoding) -> Curator:
        """The same rows, encoded in another way that is public or was released, and the same budget."""
        return Curator(self._source, domain, self._pool)

    def rest(self) -> Curator:
        """The same rows, with what is left of the budget as a whole of its own: forecasts and shares are of that."""
        return Curator(self._source, self._domain, self._pool.rest())

    def _secret(self, question: Question) -> tuple[Integers, ...]:
        return read_rows(self._source, self._domain, question)

    @property
    def _behind(self) -> Source:
        return self._source


class Held(PoolDesk):
    """Behind it: the raw answer to a question, such as one look at a table, or a stream's table of leaves."""

    def __init__(self, question: Question, secret: tuple[Integers, ...], pool: Pool) -> None:
        super().__init__(pool)
        self._question, self._arrays = question, secret

    def show(self, number: int, share: float) -> Noisy:
        """One of the arrays itself, with noise: a later share may depend on an earlier answer. Public, charged."""
        part, secret = self._question.parts[number], self._arrays[number]
        values = self._pool.release(part, secret, share) * part.unit
        return Noisy(values, self._pool.noise(part, columns_of(values), share))

    def _secret(self, question: Question) -> tuple[Integers, ...]:
        check_question(question)
        if not question.is_about(self._question):
            raise AssertionError("this desk holds the answer to another question")
        return question.raw(self._arrays)

    @property
    def _behind(self) -> tuple[Integers, ...]:
        return self._arrays


def read_rows(source: Source, domain: Encoding, question: Question) -> tuple[Integers, ...]:
    """The exact answer, by one pass over the rows. Secret: for desks alone."""
    check_question(question)
    if question.over is not None:
        raise AssertionError("this question is about the answer to another one: hold that, and ask there")
    if getattr(question, "domain", domain) is not domain:
        raise AssertionError("this question is about another domain")
    return source.map_reduce(raw, question, grid=domain, combine=question.combine)


def check_question(question: Question) -> None:
    """An object that only looks like a question could keep its rows."""
    if not isinstance(question, Question):
        raise TypeError("desks answer questions, which are written in kveil.questions")


def check_mechanism(mechanism: Mechanism) -> Mechanism:
    """An object that only looks like a mechanism could hand its rows out."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError("desks perform mechanisms, which are written in kveil.desk")
    return mechanism


def by_cell(part: Part, secret: Integers) -> Integers:
    """Counts as they are, sums as (cells, columns): one vector is one cell, and its noise is that of all its columns."""
    return secret if part.kind in ("counts", "total") else np.atleast_2d(secret)


def columns_of(array: np.ndarray[Any, Any]) -> int:
    return int(array.shape[1]) if array.ndim > 1 else 1
