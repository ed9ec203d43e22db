"""A fit rehearsed without rows: which shares of its budget it would pay for what, if the table were as public numbers say."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from kveil.desk.base import check_question, columns_of
from kveil.desk.pool import Pool
from kveil.kernel.grid import Ball, Box
from kveil.questions.base import Noisy, Question

CLEAR = 50.0  # deviations: what a rehearsed cell with rows holds at least, so that no stage of a fit is cut short


class Draw(NamedTuple):
    """What a fit would ask for: the question, its part, the shape of the answer, and the share of the budget for it."""

    question: Question
    part: int
    shape: tuple[int, ...]
    share: float


class Rehearsal:
    """A desk with nothing behind it. It answers as a table of `n_rows` rows in equal, clear clusters would, without noise, and
    keeps a list of what was asked. Public through and through: no row, no ledger, no entropy.

    How a method splits its budget may follow from answers: the number of rows is what `n_rows` says, and every stage finds rows.
    Where rows lie is made up, so nothing but shares and shapes may be read off a rehearsal.
    """

    is_sparse = False

    def __init__(self, pool: Pool, domain: Box | Ball, n_rows: float, n_clusters: int) -> None:
        self.kind, self.total, self.unit, self.relation = pool.kind, pool.total, pool.unit, pool.relation
        self.deviation, self.spread, self.noise, self.sharpness = pool.deviation, pool.spread, pool.noise, pool.sharpness
        self.n_columns, self.max_rows = domain.n_columns, 2**40
        self.draws: list[Draw] = []
        self._no_rows = domain.encode(np.empty((0, domain.n_columns)))
        self._n_rows, self._n_clusters = n_rows, n_clusters

    @property
    def left(self) -> float:
        return 1.0 - sum(draw.share for draw in self.draws)

    def ask(self, question: Question, *shares: float) -> tuple[Noisy, ...]:
        held = self.hold(question)
        return tuple(held.show(number, share) for number, share in enumerate(shares))

    def hold(self, question: Question) -> Rehearsed:
        check_question(question)
        return Rehearsed(self, question, question.raw(self._no_rows))

    def counts(self, shape: tuple[int, ...], share: float) -> Any:
        """All rows in one cell, or the same number in as many of them as there are clusters."""
        found = np.zeros(shape)
        if found.size == 1:
            found[:] = self._n_rows
        else:
            places = np.linspace(0, found.size - 1, min(self._n_clusters, found.size)).astype(np.int64)
            found.flat[places] = max(self._n_rows / self._n_clusters, CLEAR * self.deviation(share))
        return found


class Rehearsed:
    """One look at nothing."""

    def __init__(self, desk: Rehearsal, question: Question, empty: tuple[Any, ...]) -> None:
        self._desk, self._question, self._empty = desk, question, empty

    def show(self, number: int, share: float) -> Noisy:
        part, desk = self._question.parts[number], self._desk
        is_count = part.kind in ("counts", "total")
        shape = self._empty[number].shape if is_count else np.atleast_2d(self._empty[number]).shape
        desk.draws.append(Draw(self._question, number, shape, share))
        if is_count:
            return Noisy(desk.counts(shape, share), desk.deviation(share))
        return Noisy(np.zeros(shape), sqrt(desk.spread(columns_of(np.empty(shape)), 1.0, share)))
