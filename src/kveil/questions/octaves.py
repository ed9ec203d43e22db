"""How large the values are, as a histogram over powers of two: what a private search for bounds looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidValue
from kveil.kernel.grid import LARGEST
from kveil.questions.base import Part, Question

Shape = Literal["box", "cube", "ball"]


@dataclass(frozen=True, eq=False)
class Octaves:
    """Codes of rows as bins: 0 for |x| <= 2**low, then one bin per octave, (2**(e-1), 2**e], with the sign of x.

    Values beyond 2**high count in the last bin, NaN and infinity in bin 0. "box" bins every column; "cube" bins the largest
    |x_j| of a row and "ball" its norm, in one column and without a sign. Binning is by frexp, which is exact; a row's bins
    are a function of that row alone.
    """

    center: Floats
    low: int
    high: int
    shape: Shape
    bits: int = 16

    @property
    def n_columns(self) -> int:
        return int(self.center.size)

    @property
    def n_bins(self) -> int:
        return (2 if self.shape == "box" else 1) * (self.high - self.low) + 1

    @property
    def n_histograms(self) -> int:
        return self.n_columns if self.shape == "box" else 1

    def encode(self, rows: Any) -> NDArray[np.int16]:
        away = np.array(rows, dtype=np.float64)
        away[~np.isfinite(away).all(axis=1)] = self.center
        away = np.clip(away, -LARGEST, LARGEST) - self.center
        if self.shape == "box":
            return self._bins(away)
        largest, squares = np.abs(away).max(axis=1, initial=0.0), np.zeros(len(away))
        for column in away.T:  # column by column, so that no other row can change the rounding
            squares += (column / np.where(largest > 0, largest, 1.0)) ** 2
        return self._bins((largest if self.shape == "cube" else largest * np.sqrt(squares))[:, None])

    def encode_sparse(self, rows: Any) -> NDArray[np.int16]:
        """The same bins for a CSR matrix, without filling in its zeros."""
        if self.shape == "box" or np.any(self.center != 0):
            raise InvalidValue('of sparse rows only the sizes can be found: use shape="cube" or "ball", with center=0.')
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        values = np.clip(np.array(rows.data, dtype=np.float64), -LARGEST, LARGEST)
        broken = np.zeros(rows.shape[0], dtype=bool)
        broken[owner[~np.isfinite(rows.data)]] = True
        values[broken[owner]] = 0.0
        largest, squares = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
        np.maximum.at(largest, owner, np.abs(values))
        np.add.at(squares, owner, (values / np.where(largest > 0, largest, 1.0)[owner]) ** 2)
        return self._bins((largest if self.shape == "cube" else largest * np.sqrt(squares))[:, None])

    def _bins(self, away: Floats) -> NDArray[np.int16]:
        fraction, exponent = np.frexp(np.abs(away))
        octave = np.clip(exponent - (fraction == 0.5) - self.low, 0, self.high - self.low)
        return np.asarray(np.sign(away) * octave, dtype=np.int16)  # the sign of 0 is 0

    def edges(self, code: int) -> tuple[float, float]:
        """The interval of bin `code`."""
        if code == 0:
            return -(2.0**self.low), 2.0**self.low
        inner, outer = 2.0 ** (self.low + abs(code) - 1), 2.0 ** (self.low + abs(code))
        return (inner, outer) if code > 0 else (-outer, -inner)

    @property
    def first_code(self) -> int:
        return self.low - self.high if self.shape == "box" else 0


@dataclass(frozen=True, eq=False)
class OctaveCounts(Question):
    """Counts (histograms, bins): a row adds 1 to one bin of each histogram."""

    octaves: Octaves

    @property
    def parts(self) -> tuple[Part]:
        return (Part("bounds", "counts", self.octaves.n_histograms, reason="a row is in one bin of each histogram"),)

    def raw(self, codes: Any) -> tuple[Integers]:
        raw_counts = np.zeros((self.octaves.n_histograms, self.octaves.n_bins), dtype=np.int64)
        for counts, column in zip(raw_counts, codes.T, strict=True):
            counts += np.bincount(column.astype(np.int64) - self.octaves.first_code, minlength=self.octaves.n_bins)
        return (raw_counts,)
