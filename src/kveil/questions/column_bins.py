"""Where the values of every column lie, one column at a time: what a private search for scales or bounds looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.questions.base import Part, Question

OCTAVES = 12  # bins on either side of a point: up to 2**-11 of the width, then one bin per octave


@dataclass(frozen=True, eq=False)
class Cells:
    """Codes of single cells on the grid of a box; a missing or infinite cell is `missing`, a code that no number has.

    clips: whether values outside the box count as its ends; otherwise they are missing. A cell's code depends on that cell alone.
    """

    box: Box
    clips: bool = True

    @property
    def n_columns(self) -> int:
        return self.box.n_columns

    @property
    def bits(self) -> int:
        return self.box.bits

    @property
    def missing(self) -> int:
        return int(-self.box.top - 1)

    @property
    def fills(self) -> bool:
        """A missing cell is told from the others, so whoever fills it later may."""
        return True

    def encode(self, rows: Any) -> NDArray[Any]:
        cells = np.array(rows, dtype=np.float64, order="C")
        is_number = np.isfinite(cells)
        if not self.clips:
            with np.errstate(all="ignore"):
                is_number &= (cells >= self.box.lower) & (cells <= self.box.upper)
        codes = self.box.encode(np.where(is_number, cells, self.box.center))
        codes[~is_number] = self.missing
        return codes

    def encode_sparse(self, rows: Any) -> Any:
        raise InvalidValue("columns are looked at one by one, and sparse rows are not: pass a dense table.")


@dataclass(frozen=True, eq=False)
class ColumnBins(Question):
    """Counts of the bins of several columns: a row adds 1 to at most one bin of each column, and nothing where it is missing.

    columns: which ones, as `Cells` encodes them.  edges: (columns, bins - 1) whole codes, ascending, public or released: bin i
        holds the codes above edge i - 1, up to edge i.
    lowest: the least code of a number; what is below is missing.
    is_joint: one array (columns, bins), of which a row moves one count per column; otherwise one array (bins,) per column.
    """

    label: str
    columns: tuple[int, ...]
    edges: Integers
    lowest: int
    is_joint: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        if self.is_joint:
            return (Part(self.label, "counts", len(self.columns), reason="a row is in at most one bin of each column"),)
        return (Part(self.label, "counts", reason="a row is in at most one bin"),) * len(self.columns)

    def raw(self, codes: Any) -> tuple[Integers, ...]:
        n_bins = self.edges.shape[1] + 1
        raw_counts = np.zeros((len(self.columns), n_bins), dtype=np.int64)
        for counts, column, edges in zip(raw_counts, self.columns, self.edges, strict=True):
            cells = codes[:, column]
            places = np.searchsorted(edges, cells[cells >= self.lowest], side="left")  # by comparison of whole numbers
            counts += np.bincount(places, minlength=n_bins)
        return (raw_counts,) if self.is_joint else tuple(raw_counts)


def even_edges(top: int, n_bins: int) -> Integers:
    """Edges that cut the codes -top .. top evenly."""
    return np.array([2 * top * i // n_bins - top for i in range(1, n_bins)], dtype=np.int64)


def octave_edges(top: int, middle: int) -> Integers:
    """Edges of 24 bins by the distance from a code, as shares of the whole width: (2**-i, 2**-(i-1)] for i = 1 .. 11, and up to
    2**-11, on either side; the code itself is on the upper side."""
    away = np.array([(2 * top) >> i for i in range(1, OCTAVES)], dtype=np.int64)
    return middle + np.concatenate([-away - 1, [-1], away[::-1]])
