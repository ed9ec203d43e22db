"""Sums of sparse rows, column by column: which columns hold most, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.questions.base import Part, Question
from kveil.questions.cells import TOP, Residuals, l1_length
from kveil.questions.frame import Frame


@dataclass(frozen=True, eq=False)
class ColumnCosts(Question):
    """Costs (cells, d) of columns, minus the sizes of a cell's sum in each: low where a column holds much.

    A row is in one cell, and adds a vector v to its sum. |S + v| differs from |S| by at most |v| in every column, and v has L2
    norm TOP at most, so every entry has, and L1 norm `l1_length` at most, since no more than `nonzeros` entries are not 0.
    """

    frame: Frame
    n_columns: int
    over: ClassVar = Residuals

    @property
    def parts(self) -> tuple[Part]:
        return (Part("columns", "peeled costs", l1_length(self.frame, self.n_columns), largest=TOP),)

    def is_about(self, held: Question) -> bool:
        return is_sparse_sum(held, self.frame)

    def raw(self, held: tuple[Integers, ...]) -> tuple[Integers]:
        return (-np.abs(held[1]),)


@dataclass(frozen=True, eq=False)
class ColumnSums(Question):
    """Sums (cells, picked) of every cell in its own columns, which are released or public, and different for each cell.

    A row is in one cell, and adds a part of its vector, of L1 norm `l1_length` at most.
    """

    frame: Frame
    n_columns: int
    columns: Integers  # (cells, picked)
    over: ClassVar = Residuals

    def __post_init__(self) -> None:
        if any(len(np.unique(own % self.n_columns)) < len(own) for own in self.columns):
            raise AssertionError("a column that is released twice would be moved twice")

    @property
    def parts(self) -> tuple[Part]:
        return (Part("sums of columns", "coordinates", l1_length(self.frame, self.n_columns)),)

    def is_about(self, held: Question) -> bool:
        return is_sparse_sum(held, self.frame)

    def raw(self, held: tuple[Integers, ...]) -> tuple[Integers]:
        return (np.take_along_axis(held[1], self.columns, axis=1),)


def is_sparse_sum(held: Question, frame: Frame) -> bool:
    """Whether the bounds above are true of what is held: sums about 0 of rows whose entries this very frame has bounded."""
    return type(held) is Residuals and held.by_coordinates and held.frame is frame
