"""Fixed-point grids: rows of numbers become integers, so that sums are exact and sensitivities are too.

A row's code is a function of that row alone: every step below is elementwise or runs over one row in a fixed
order. A float row norm taken by a library routine may change with memory layout, and then one person could
move the codes of others; hence the column-by-column sum in `_grid_kernels.shrinkages`.

What rows hold never raises: a row with NaN or infinity becomes the centre, anything outside is clipped.
"""

from functools import cache
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.errors import GridOverflow, InexactProducts, InvalidValue

Codes = NDArray[np.signedinteger[Any]]

LARGEST = 1e300  # coordinates are cut here first, so that no later float operation overflows
SHAPES = ((1, 2, 2048), (16, 3, 2048), (64, 64, 64), (4, 1024, 256))  # of products that are tried: few and many of each


class Domain:
    """A public region and its grid: code 0 is `center`, code `top` lies `half` away from it, in every column.

    `top` is one less than half the range of the integers, because 2**(bits-1) would wrap to its negative.
    """

    l1_sensitivity: int  # of one row, in grid steps; each kind of domain proves its own
    l2_sensitivity: int
    _write: Any  # (rows, codes): the codes of finite rows, and 0 for the others
    _sparse_codes: Any  # (values, owner of each, rows) -> codes

    def __init__(self, center: Floats, half: Floats, bits: int) -> None:
        if not 2 <= bits <= 32:
            raise InvalidValue("bits, the width of the grid, must be between 2 and 32.")
        self.center, self.half, self.bits, self.n_columns = center, half, int(bits), int(center.size)
        self.top, self.dtype = 2 ** (self.bits - 1) - 1, np.int16 if bits <= 16 else np.int32
        # Distances are taken as |x|^2 - 2 x.c + |c|^2 in float64: exact while every partial sum is an integer below 2**53.
        if 4 * self.n_columns * 4 ** (bits - 1) > 2**53:
            raise GridOverflow(
                f"{bits} bits and {self.n_columns} features make distances pass 2**53: use fewer bits or features."
            )
        if (np.abs(center) + half).max() > LARGEST or half.min() < 2.0**bits / LARGEST:
            raise InvalidValue("the domain is too wide or too narrow for float64: rescale the data to ordinary units.")
        self.step = self.half / self.top
        for array in (self.center, self.half, self.step):
            array.setflags(write=False)

    def encode(self, rows: ArrayLike) -> Codes:
        with np.errstate(all="ignore"):  # what rows hold never warns, whatever this process has set
            values = self.cells(rows)
            codes = np.empty(values.shape, dtype=self.dtype)
            self._write(values, codes)
        return codes

    def encode_sparse(self, rows: Any) -> Any:
        """The same codes for a CSR matrix with sorted indices."""
        with np.errstate(all="ignore"):
            codes = self._sparse_codes(*self._sparse_away(rows), rows)
        return type(rows)((codes.astype(self.dtype), rows.indices, rows.indptr), shape=rows.shape)

    def decode(self, codes: ArrayLike) -> Floats:
        return np.asarray(self.center + np.asarray(codes, dtype=np.float64) * self.step)

    def cells(self, rows: ArrayLike) -> Floats:
        """Rows as float64, each by itself, before they are clipped."""
        return np.ascontiguousarray(rows, dtype=np.float64)

    def away(self, rows: ArrayLike) -> Floats:
        """Rows as a float64 copy relative to the centre; a row with NaN or infinity is 0."""
        away = np.array(self.cells(rows))
        away[~np.isfinite(away).all(axis=1)] = self.center
        np.clip(away, -LARGEST, LARGEST, out=away)
        away -= self.center
        return away

    def _sparse_away(self, rows: Any) -> tuple[Floats, NDArray[np.int64]]:
        """Stored values of a CSR matrix and the row of each; one bad value makes its whole row 0, as in a dense table."""
        if np.any(self.center != 0):
            raise InvalidValue(
                "sparse rows need a domain centred at 0, bounds=(-b, b) or a ball, so that zeros stay zeros on the grid."
            )
        values, owner = np.array(rows.data, dtype=np.float64), np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        broken = np.zeros(rows.shape[0], dtype=bool)
        broken[owner[~np.isfinite(values)]] = True
        values[broken[owner]] = 0.0
        return np.clip(values, -LARGEST, LARGEST, out=values), owner


class Box(Domain):
    """Codes in [-M, M] a column, M = top: `lower` maps to -M, `upper` to M, the middle to 0.

    Sensitivity of one row in grid steps: L1 <= d M and L2 <= ceil(sqrt(d) M), because every |code| <= M after clipping.
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, bits: int = 16) -> None:
        low, high = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
        if low.ndim != 1 or low.shape != high.shape or not low.size:
            raise InvalidValue("bounds must be two scalars or two sequences of equal length, one entry a feature.")
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise InvalidValue(
                "bounds are (lows, highs), not one pair per feature, finite and low < high in each; from public knowledge."
            )
        super().__init__(low / 2 + high / 2, high / 2 - low / 2, bits)
        self.lower, self.upper = low, high
        self.l1_sensitivity, self.l2_sensitivity = low.size * self.top, isqrt(low.size * self.top**2 - 1) + 1

    def _write(self, rows: Floats, codes: Codes) -> None:
        _kernels().box_codes(rows, self.center, self.top / self.half, self.top, codes)

    def _sparse_codes(self, values: Floats, owner: NDArray[np.int64], rows: Any) -> NDArray[Any]:
        return np.asarray(np.rint(np.clip(values * (self.top / self.half)[rows.indices], -self.top, self.top)))


class Ball(Domain):
    """Codes with Euclidean norm at most M = top, one step for all columns.

    Sensitivity of one row in grid steps: L2 <= M, made true in integers by `ball_codes` and `_inside` (truncation after a float
    shrink keeps the ball only up to rounding); L1 <= floor(sqrt(d) M) by Cauchy-Schwarz, since L1 is an integer.
    """

    def __init__(self, center: ArrayLike, radius: float, bits: int = 16) -> None:
        middle = np.array(center, dtype=np.float64)
        if middle.ndim != 1 or not middle.size or not np.isfinite(middle).all():
            raise InvalidValue("center must be one finite number, or one finite number a feature.")
        if not (np.isfinite(radius) and radius > 0):
            raise InvalidValue("radius must be a finite number above 0: rows farther out are moved to the sphere.")
        self.radius = float(radius)
        super().__init__(middle, np.full(middle.size, self.radius), bits)
        self.l1_sensitivity, self.l2_sensitivity = isqrt(middle.size * self.top**2), self.top

    def _write(self, rows: Floats, codes: Codes) -> None:
        shares = np.empty(len(rows))
        _kernels().shrinkages(rows, self.center, self.radius, LARGEST, shares)
        _kernels().ball_codes(rows, self.center, shares * (self.top / self.radius), LARGEST, self.top, codes)

    def pulled(self, away: Floats) -> Floats:
        """Rows, relative to the centre, moved into the ball, unrounded."""
        return np.asarray(away * self.shrinkage(away)[:, None])

    def _write_scaled(self, scaled: Floats, codes: Codes) -> None:
        """Whole codes of rows whose norm is at most 1, up to rounding."""
        origin = np.zeros(self.n_columns)
        origin.setflags(write=False)  # as a centre is: another type would be compiled anew
        _kernels().ball_codes(np.ascontiguousarray(scaled), origin, np.full(len(scaled), float(self.top)), 1.0, self.top, codes)

    def _sparse_codes(self, values: Floats, owner: NDArray[np.int64], rows: Any) -> NDArray[Any]:
        largest, sums = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
        np.maximum.at(largest, owner, np.abs(values))
        largest[largest == 0] = 1.0
        np.add.at(sums, owner, (values / largest[owner]) ** 2)  # in column order; adding 0 for the others changes nothing
        shrinkage = self.radius / np.maximum(largest * np.sqrt(sums), self.radius) * (self.top / self.radius)
        return self._sparse_whole(values * shrinkage[owner], owner, rows.shape[0])

    def _sparse_whole(self, scaled: Floats, owner: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
        codes = np.trunc(scaled).astype(np.int64)
        squares = np.zeros(n_rows, dtype=np.int64)
        np.add.at(squares, owner, codes * codes)
        return np.where(squares[owner] > self.top**2, self._inside(codes, squares[owner]), codes)

    def shrinkage(self, away: Floats) -> Floats:
        """radius / max(norm, radius) of every row."""
        shares, origin = np.empty(len(away)), np.zeros(self.n_columns)
        origin.setflags(write=False)  # as a centre is: another type would be compiled anew
        _kernels().shrinkages(np.ascontiguousarray(away), origin, self.radius, np.inf, shares)
        return shares

    def _inside(self, codes: NDArray[np.int64], squares: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of norm at most M: the divisor exceeds the norm by at least 1, and |q| M // divisor only rounds towards 0."""
        divisor = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 2
        return np.asarray(np.sign(codes) * (np.abs(codes) * self.top // divisor))


def _kernels() -> Any:
    from kveil.kernel import _grid_kernels  # a ledger needs no compiler

    return _grid_kernels


def check_sums(domain: Any, max_rows: int) -> None:
    """Rule out overflow of int64 sums from public parameters; the number of rows is private and never looked at."""
    if max_rows < 1 or domain.bits + (int(max_rows) - 1).bit_length() > 63:
        raise GridOverflow(f"with max_rows={max_rows} and {domain.bits} bits a sum can overflow: use fewer bits or max_rows.")


@cache
def check_products() -> None:
    """Refuse a machine whose products of whole numbers are not exact: one row's distances would then round with another's.

    Entries of both signs are as large as sums below 2**53 allow, with low bits of every kind; integers tell what is right. A
    BLAS that adds up in less than float64, or adds matrices before it multiplies them, fails here. Once in a process: what
    passed is not tried again.
    """
    for rows, inner, columns in SHAPES:
        top = isqrt((2**53 - 1) // inner)
        left, right = (top - np.arange(n * inner) * odd % 61 for n, odd in ((rows, 7), (columns, 11)))
        left[1::3] *= -1
        right[1::4] *= -1
        left[-inner:] = right[:inner] = top  # the largest sum there can be, in one corner
        a, b = left.reshape(rows, inner), right.reshape(columns, inner).T
        if not np.array_equal(np.matmul(a.astype(np.float64), b.astype(np.float64)), np.matmul(a, b)):
            raise InexactProducts(
                "matrix products of whole numbers are not exact on this machine (numpy's BLAS rounds below 2**53), so "
                "one row could move another's label. Nothing was charged. Use numpy with OpenBLAS, and full float64."
            )


def per_person(row_sensitivity: int, max_rows_per_person: int, relation: Literal["add-remove", "replace-one"]) -> int:
    """Sensitivity of a sum over rows to one person: m rows add by the triangle inequality; replacing is removing and adding."""
    return row_sensitivity * max_rows_per_person * (2 if relation == "replace-one" else 1)
