"""Nearest centres of encoded rows, exactly: the label of a row depends on that row and the centres alone.

A float product whose rounding depends on the shape of a block would let one row move another row's label. Here every
number is an integer held in float64, and |x|^2 - 2 x.c + |c|^2 stays below 2**53 (grid.py refuses wider domains), so
the sums are exact for any blocking and thread count, and for any BLAS that passes `kernel.grid.check_products`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.space import _kernels
from kveil.space.column_box import is_level

Domain = Box | Ball
Scaling = Literal["bounds"] | None

MANY, FEW = 32, 32  # centres and columns, with which a guess in float32, nearly always sure, is quicker than products
BLOCK, PRODUCTS = 2048, 2**17  # rows a product, enough for BLAS, and numbers in it, 256 rows at least: few enough for the cache


@dataclass(frozen=True)
class Centers:
    """Public centres as integers on the grid, ready for distances. `ratio` turns codes into steps of equal length.

    In a box whose columns have different widths one step of a code differs by column. Distances in the units of the data
    use codes times ratio, rounded to integers; a column far narrower than the widest then counts for what it is: little.
    """

    codes: Floats
    ratio: Floats | None

    @classmethod
    def of(cls, centers: Floats, domain: Domain, scaling: Scaling = None) -> Centers:
        ratio = ratio_of(domain, scaling)
        return cls(_measured(domain.encode(centers).astype(np.float64), ratio), ratio)

    @cached_property
    def squares(self) -> Floats:
        return np.asarray((self.codes * self.codes).sum(axis=1))

    @cached_property
    def narrow(self) -> tuple[Any, Any, float]:
        """For guesses in float32: twice the centres, their squares, and a bound of how long they are."""
        return (2 * self.codes).astype(np.float32), self.squares.astype(np.float32), float(np.sqrt(self.squares.max())) + 1.0

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.int64], Floats]:
        """For every centre the others (k, k - 1), the nearest first, and their squared distances to it, exactly."""
        between = self.squares[:, None] + self.squares - 2.0 * (self.codes @ self.codes.T)
        np.fill_diagonal(between, -1.0)
        order = np.argsort(between, axis=1)[:, 1:]
        return np.ascontiguousarray(order), np.take_along_axis(between, order, axis=1)


def units(domain: Domain, scaling: Scaling) -> Floats:
    """What 1 of the distance is in every column, in the units of the data: 1 of them, or with scaling half the width of the
    bounds. A column of a level keeps its own: its width is a length."""
    return np.ones(domain.n_columns) if scaling is None else np.where(is_level(domain), 1.0, domain.half)


def step_length(domain: Domain, scaling: Scaling) -> float:
    """The length of a step, in the units that distances have."""
    return float((domain.half / units(domain, scaling)).max() / domain.top)


def ratio_of(domain: Domain, scaling: Scaling) -> Floats | None:
    """How long a step of every column is, as a share of the longest; None if all are alike."""
    lengths = domain.half / units(domain, scaling)
    return None if np.ptp(lengths) == 0 else lengths / lengths.max()


def assign(rows: Any, centers: Centers) -> NDArray[np.int32]:
    """The nearest centre of every encoded row, dense or CSR; ties to the lowest index."""
    owner = np.zeros(rows.shape[0], dtype=np.int32)
    if len(centers.codes) == 1:
        return owner
    if len(centers.codes) >= MANY and rows.shape[1] <= FEW and centers.ratio is None and not hasattr(rows, "indices"):
        is_sure = np.empty(rows.shape[0], dtype=np.bool_)
        _kernels.guess_closest(rows, *centers.narrow, owner, is_sure)
        unsure = np.flatnonzero(~is_sure)
        owner[unsure] = _exactly(rows[unsure], centers)
        return owner
    return _exactly(rows, centers)


def _exactly(rows: Any, centers: Centers) -> NDArray[np.int32]:
    owner = np.zeros(rows.shape[0], dtype=np.int32)
    for part, block in _blocks(rows, centers):
        _kernels.closest(_products(block, centers), centers.squares, owner[part])
    return owner


def nearest(rows: Any, centers: Centers) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """The nearest centre of every encoded row, and the squared distances to it and to the second nearest.

    Distances are integers in squared steps; with one centre the second is the largest int64.
    """
    owner, first, second = np.empty(rows.shape[0], dtype=np.int32), np.empty(rows.shape[0]), np.empty(rows.shape[0])
    for part, block in _blocks(rows, centers):
        _kernels.two_closest(_products(block, centers), centers.squares, owner[part], first[part], second[part])
        own = np.asarray((block.multiply(block) if hasattr(block, "multiply") else block * block).sum(axis=1)).ravel()
        first[part] += own
        second[part] += own
    far = np.isinf(second)
    apart = np.where(far, 0, second).astype(np.int64)
    apart[far] = np.iinfo(np.int64).max
    return owner, first.astype(np.int64), apart


def farthest(domain: Domain, unit: Floats | float = 1.0) -> float:
    """How far a point of the domain may lie from its centre: the error of a centre of which nothing is known.

    unit: what counts as 1 in every column of a box, if not the unit of the data.
    """
    return domain.radius if isinstance(domain, Ball) else float(np.linalg.norm(domain.half / unit))


def clip(domain: Domain, rows: ArrayLike) -> Floats:
    """Rows moved into the domain, unrounded; a row with NaN or infinity to its centre."""
    away = domain.away(rows)
    if isinstance(domain, Box):
        return np.clip(away + domain.center, domain.lower, domain.upper)
    return np.asarray(domain.center + domain.pulled(away))


def check_finite(rows: Any) -> Any:
    """Rows as they are; refused if a value is missing or infinite. For models without privacy: others never look."""
    with np.errstate(all="ignore"):
        if not np.isfinite(rows.sum()) and not np.isfinite(rows).all():  # the sum is quicker, and may overflow
            raise InvalidValue("Input X contains NaN or infinity. Fill or drop such rows beforehand.")
    return rows


def evenly(domain: Domain, n_points: int, rng: np.random.Generator) -> Floats:
    """Points drawn uniformly from a public domain. Public randomness: no data, no privacy."""
    if isinstance(domain, Box):
        return rng.uniform(domain.lower, domain.upper, size=(n_points, domain.n_columns))
    direction = rng.normal(size=(n_points, domain.n_columns))  # public: the direction of a normal vector is uniform
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(domain.center + domain.half * direction * rng.random((n_points, 1)) ** (1 / domain.n_columns))


def _blocks(rows: Any, centers: Centers) -> Iterator[tuple[slice, Any]]:
    size = max(256, min(BLOCK, PRODUCTS // len(centers.codes)))
    for start in range(0, rows.shape[0], size):
        part = slice(start, min(start + size, rows.shape[0]))
        if hasattr(rows, "indices"):
            block = rows[part].astype(np.float64)
            block.data = _measured(block.data, None if centers.ratio is None else centers.ratio[block.indices])
        else:
            block = _measured(rows[part].astype(np.float64, copy=False), centers.ratio)
        yield part, block


def _measured(codes: Floats, ratio: Floats | None) -> Floats:
    return codes if ratio is None else np.rint(codes * ratio)


def _products(block: Any, centers: Centers) -> Floats:
    """x.c for every centre and row, centres first so that the scan runs over contiguous memory."""
    if hasattr(block, "indices"):
        return np.ascontiguousarray((block @ centers.codes.T).T)
    return np.asarray(centers.codes @ block.T)
