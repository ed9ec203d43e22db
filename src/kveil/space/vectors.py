"""Points with coordinates: Euclidean and Manhattan distances on an integer grid over the public range of the points.

Coordinates are rounded to multiples of `step`, a power of two that fits the widest column into `bits` bits; whole numbers
of a range that fits are kept as they are. Squared distances of codes are then integers: |a|^2 - 2 a.b + |b|^2 by a matrix
product in float64 is exact below 2**53, whatever the blocking. The Euclidean distance is its root rounded *up*: ceilings
keep the triangle inequality, floors break it.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from math import ceil, floor, isqrt, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.errors import GridOverflow, InvalidType, InvalidValue
from kveil.space import _universe_kernels as kernels
from kveil.space.dense import Dense
from kveil.space.finder import Finder
from kveil.space.universe import MOST_STEPS, Distances, seal
from kveil.space.untyped import are_places, is_typed
from kveil.space.untyped import table as untyped_table

LARGEST = 1e300  # coordinates beyond it would overflow in differences
ROWS = 1024  # rows of a demand located together
TILE = 2048  # sources and targets a product: enough for BLAS, small enough for the cache


class Vectors(Dense):
    """Points (n, d) on a grid: `codes` (n, d) int32, one `step` for all columns."""

    norm: int
    points: Floats

    def __init__(self, points: ArrayLike, *, bits: int = 16) -> None:
        self.points = _table(points)
        self.n_points, self.n_columns = self.points.shape
        self.bits = _bits(bits)
        self._check_width()
        self._low, self._high = self.points.min(axis=0), self.points.max(axis=0)
        self.step = _step(float((self._high - self._low).max()), self.bits)
        self._origin = np.rint(self._low / self.step / 2 + self._high / self.step / 2)  # code 0: the middle of every column
        self.codes = self._encode(self.points)
        seal(self.points, self.codes, self._low, self._high, self._origin)
        self.diameter = self._bound()

    def locate(self, rows: Any) -> NDArray[np.int64]:
        """Rows (m, d) are coordinates and stand for the nearest point, ties to the smallest; (m,) are point numbers. In
        a list each element is the one or the other by itself.

        Coordinates are first moved into the box of the points and rounded to the grid; a row with NaN or infinity is its middle.
        """
        is_place = are_places(rows, self.n_columns)
        if is_place is not None:  # a list has no type: were one row to say what it holds, it would move all others
            numbers = super().locate([None if one else row for row, one in zip(rows, is_place, strict=True)])
            return np.where(is_place, self._closest(untyped_table(rows, self.n_columns)), numbers).astype(np.int64)
        if getattr(rows, "ndim", 1) == 1:
            return super().locate(rows)
        table = rows if is_typed(rows) else untyped_table(rows, self.n_columns)
        if table.ndim != 2 or table.shape[1] != self.n_columns or np.shape(rows[:1])[1:] != (self.n_columns,):
            raise InvalidValue(f"demand must be rows of {self.n_columns} numbers, as the points are, or flat point numbers.")
        return self._closest(table)

    def _closest(self, table: NDArray[Any]) -> NDArray[np.int64]:
        """The nearest point of every row (m, d)."""
        found = np.empty(len(table), dtype=np.int64)
        with np.errstate(all="ignore"):  # what rows hold never warns
            for start in range(0, len(table), ROWS):
                block = table[start : start + ROWS].astype(np.float64)
                block[~np.isfinite(block).all(axis=1)] = self._low / 2 + self._high / 2
                inside = np.clip(block, self._low, self._high)
                found[start : start + ROWS] = self._finder.closest(self._encode(inside))
        return found

    def locations(self) -> NDArray[np.int64]:
        """For every point the smallest point with the same codes."""
        rows = self.codes.view(np.dtype((np.void, self.codes.itemsize * self.n_columns)))[:, 0]
        _, first, group = np.unique(rows, return_index=True, return_inverse=True)
        return np.asarray(first[group], dtype=np.int64)

    @cached_property
    def _finder(self) -> Finder:
        distinct = np.unique(self.locations())
        return Finder(self.codes[distinct], distinct, self.norm, self.bits)

    def _encode(self, rows: Floats) -> NDArray[np.int32]:
        codes = rows / self.step  # a power of two: exact
        np.rint(codes, out=codes)
        codes -= self._origin
        return codes.astype(np.int32)

    def _bound(self) -> int:
        """The diagonal of the box of codes, or twice the radius around the point nearest to the mean, if that is less."""
        mean = np.rint(self.codes.mean(axis=0, dtype=np.float64))
        middle = int(np.abs(self.codes - mean).sum(axis=1).argmin())
        radius = int(self._between(np.array([middle]), None).max())
        return min(self._diagonal([int(width) for width in np.ptp(self.codes, axis=0)]), 2 * radius)

    @abstractmethod
    def _diagonal(self, widths: list[int]) -> int:
        """The distance across a box of these sides, in steps."""

    @abstractmethod
    def _check_width(self) -> None:
        """Refuse more columns than distances stay exact in."""

    def _contents(self) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        return (self.codes,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_points={self.n_points}, n_columns={self.n_columns}, step={self.step:g})"


class Euclidean(Vectors):
    """A public universe of points (n, d) with straight-line distances.

    Parameters
    ----------
    points : array-like (n, d)
        Public coordinates, fixed without looking at the demand; finite, one unit for all columns.
    bits : int, default 16
        Width of the grid over the widest column; d * 4**bits must stay within 2**53.

    Examples
    --------
    >>> shops = Euclidean([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> (shops.distances([0]) * shops.step).tolist()
    [[0.0, 5.0, 10.0]]
    """

    kind, norm = "euclidean", 2

    @cached_property
    def _squares(self) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", self.codes, self.codes, dtype=np.float64))

    def _between(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        members = np.arange(self.n_points) if targets is None else targets
        out = np.empty((len(sources), len(members)), dtype=np.int32)
        if len(sources) < 4:  # a product would spend its time on turning codes into floats
            for i, site in enumerate(sources):
                kernels.ceil_row(self.codes, self.codes[site], members, out[i])
            return out
        for left in range(0, len(members), TILE):
            chosen = members[left : left + TILE]
            block = self.codes[chosen].astype(np.float64).T
            for top in range(0, len(sources), TILE):
                sites = sources[top : top + TILE]
                products = self.codes[sites].astype(np.float64) @ block
                kernels.ceil_roots(products, self._squares[sites], self._squares[chosen], out, top, left)
        return out

    def _diagonal(self, widths: list[int]) -> int:
        square = sum(width * width for width in widths)
        return isqrt(square - 1) + 1 if square else 0

    def _check_width(self) -> None:
        if self.n_columns * 4**self.bits > 2**53:
            most = floor((53 - log2(self.n_columns)) / 2)
            raise GridOverflow(
                f"{self.bits} bits and {self.n_columns} columns make squared distances pass 2**53, where they are inexact. "
                f"Use bits={most} or fewer."
            )


class Manhattan(Vectors):
    """A public universe of points (n, d) with L1 distances: the sum of absolute differences.

    Parameters
    ----------
    points : array-like (n, d)
        Public coordinates, fixed without looking at the demand; finite, one unit for all columns.
    bits : int, default 16
        Width of the grid over the widest column; d * 2**bits must stay within 2**30.

    Examples
    --------
    >>> shops = Manhattan([[0.0, 0.0], [3.0, 4.0]])
    >>> (shops.distances([0]) * shops.step).tolist()
    [[0.0, 7.0]]
    """

    kind, norm = "manhattan", 1

    def _between(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        members = np.arange(self.n_points) if targets is None else targets
        out = np.empty((len(sources), len(members)), dtype=np.int32)
        kernels.city_rows(self.codes, sources, members, out)
        return out

    def _diagonal(self, widths: list[int]) -> int:
        return sum(widths)

    def _check_width(self) -> None:
        if self.n_columns * 2**self.bits > MOST_STEPS:
            most = floor(30 - log2(self.n_columns))
            raise GridOverflow(
                f"{self.bits} bits and {self.n_columns} columns make distances pass 2**30 steps. Use bits={most} or fewer."
            )


def _table(points: ArrayLike) -> Floats:
    found = np.asarray(points)
    if found.dtype.kind not in "iufb":
        raise InvalidType("points must be a table of numbers, one row a point.")
    if found.ndim != 2 or not found.shape[0] or not found.shape[1]:
        raise InvalidValue("points must be a table with at least one row and one column: (n_points, n_columns).")
    table = np.array(found, dtype=np.float64, order="C")
    if not (np.abs(table) <= LARGEST).all():  # also false for NaN
        raise InvalidValue("points must be finite and of ordinary size: drop or mend rows with NaN or infinity, or rescale.")
    return table


def _bits(bits: Any) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer):
        raise InvalidType("bits, the width of the grid, must be a whole number.")
    if not 2 <= bits <= 26:
        raise InvalidValue("bits, the width of the grid, must be between 2 and 26.")
    return int(bits)


def _step(width: float, bits: int) -> float:
    """The smallest power of two of which `width` holds at most 2**bits - 2, so that rounding stays within 2**bits - 1."""
    if width == 0:
        return 1.0
    step = 2.0 ** max(ceil(log2(width)) - bits - 1, -1020)
    while width > step * (2**bits - 2):
        step *= 2
    return step
