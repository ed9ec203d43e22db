"""A box that knows more of its columns: which of them stand for levels of a category, and what a missing cell counts as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Bools, Floats
from kveil.kernel.grid import Box


class ColumnBox(Box):
    """A box whose rows are clipped and encoded as those of any other: a row's code depends on that row alone.

    is_level: (d,) columns that stand for one level of a category each. Their width is a length, which no scaling changes.
    fill: (d,) what a missing or infinite cell counts as, public or released; None: a row with such a cell is the middle.
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, bits: int, is_level: Bools | None = None, fill: ArrayLike | None = None
    ) -> None:
        super().__init__(lower, upper, bits)
        self.is_level = np.zeros(self.n_columns, dtype=np.bool_) if is_level is None else np.array(is_level, dtype=np.bool_)
        self.fill = None if fill is None else np.clip(np.array(fill, dtype=np.float64), self.lower, self.upper)

    @property
    def fills(self) -> bool:
        return self.fill is not None

    def cells(self, rows: ArrayLike) -> Floats:
        cells = super().cells(rows)
        return cells if self.fill is None else np.where(np.isfinite(cells), cells, self.fill)


def box_like(domain: Box, lower: Floats, upper: Floats, fill: Floats | None = None) -> Box:
    """Another box for the same columns."""
    if not isinstance(domain, ColumnBox):
        return Box(lower, upper, domain.bits)
    return ColumnBox(lower, upper, domain.bits, domain.is_level, fill)


def is_level(domain: Any) -> Bools:
    """(d,) which columns stand for levels."""
    return domain.is_level if isinstance(domain, ColumnBox) else np.zeros(domain.n_columns, dtype=np.bool_)


def fills(domain: Any) -> bool:
    """Whether missing cells have a value of their own."""
    return isinstance(domain, ColumnBox) and domain.fills
