"""Rows as directions: the domain of cosine clustering, and which of some released directions is nearest to a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.kernel.grid import Ball

BLOCK = 2048


class UnitBall(Ball):
    """The ball of radius 1 about 0, in which every row has length 1: longer rows are cut and shorter ones are stretched.

    A row is divided by its largest entry and then by its norm, so neither overflows; a row of zeros, or with a missing or
    infinite value, is 0. A row's code is a function of that row alone: the norm is summed column by column. The sensitivity is
    that of `Ball`: whole codes of norm at most M = top.
    """

    def __init__(self, n_columns: int, bits: int = 16) -> None:
        super().__init__(np.zeros(n_columns), 1.0, bits)

    def pulled(self, away: Floats) -> Floats:
        largest = np.abs(away).max(axis=1, initial=0.0)
        found, squares = away / np.where(largest > 0, largest, 1.0)[:, None], np.zeros(len(away))
        for column in found.T:
            squares += column**2
        found /= np.sqrt(np.maximum(squares, 1.0))[:, None]  # at least 1, the largest entry, unless the row is 0
        return found

    def unit_values(self, rows: Any) -> Floats:
        """Stored values of a CSR matrix whose rows are made unit."""
        return self._unit(*self._sparse_away(rows), rows.shape[0])

    def _write(self, rows: Floats, codes: Any) -> None:
        self._write_scaled(self.pulled(self.away(rows)), codes)

    def _sparse_codes(self, values: Floats, owner: NDArray[np.int64], rows: Any) -> NDArray[Any]:
        return self._sparse_whole(self._unit(values, owner, rows.shape[0]) * self.top, owner, rows.shape[0])

    @staticmethod
    def _unit(values: Floats, owner: NDArray[np.int64], n_rows: int) -> Floats:
        largest, squares = np.zeros(n_rows), np.zeros(n_rows)
        np.maximum.at(largest, owner, np.abs(values))
        found = values / np.where(largest > 0, largest, 1.0)[owner]
        np.add.at(squares, owner, found**2)  # in column order; adding 0 for the others changes nothing
        return np.asarray(found / np.sqrt(np.maximum(squares, 1.0))[owner])


def is_cosine(domain: Any) -> bool:
    """Whether rows are directions."""
    return isinstance(domain, UnitBall)


def unit(points: Floats) -> Floats:
    """Points (n, d) made unit, each by itself; 0 stays 0."""
    return UnitBall(points.shape[1]).pulled(points)


def nearest_directions(rows: Any, centers: Floats, domain: UnitBall) -> NDArray[np.int32]:
    """The centre with the largest cosine to every row, dense or canonical CSR; ties, and rows of zeros, to the lowest index.

    Codes are whole numbers and their products are exact, so a row's label depends on that row and the centres alone.
    """
    codes = domain.encode_sparse(rows) if hasattr(rows, "indptr") else domain.encode(rows)
    places, found = domain.encode(centers).astype(np.float64), np.empty(rows.shape[0], dtype=np.int32)
    for start in range(0, len(found), BLOCK):
        products = codes[start : start + BLOCK].astype(np.float64) @ places.T
        found[start : start + BLOCK] = np.argmax(products, axis=1)
    return found


def cosine_distances(rows: Any, centers: Floats, domain: UnitBall) -> Floats:
    """1 minus the cosine of every row with every centre: between 0 and 2, and 1 for a row of zeros."""
    found = np.empty((rows.shape[0], len(centers)))
    for start in range(0, len(found), BLOCK):
        block = rows[start : start + BLOCK]
        if hasattr(block, "indptr"):
            block = type(block)((domain.unit_values(block), block.indices, block.indptr), shape=block.shape)
        else:
            block = domain.pulled(domain.away(block))
        found[start : start + BLOCK] = 1.0 - block @ centers.T
    return np.clip(found, 0.0, 2.0)
