"""The domain of Theorem 12 of the k-variates++ paper: a ball by the sum of absolute values. Models know none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball


class L1Ball(Ball):
    """Codes whose absolute values add up to at most M = top, one step for all columns.

    Sensitivity of one row in grid steps: L1 <= M, made true in integers by `_inside`; L2 <= L1. Laplace noise for two points
    of it has scale 2 M over epsilon; in the L2 ball of the same radius it is sqrt(d) times as wide.
    """

    def __init__(self, center: Any, radius: float, bits: int = 16) -> None:
        super().__init__(center, radius, bits)
        self.l1_sensitivity = self.l2_sensitivity = self.top

    def _write(self, rows: Floats, codes: Any) -> None:
        away = self.away(rows)
        cut = np.trunc(away * (self.shrinkage(away)[:, None] * (self.top / self.radius))).astype(np.int64)
        codes[:] = self._inside(cut, np.abs(cut).sum(axis=1, keepdims=True))

    def _sparse_codes(self, values: Floats, owner: NDArray[np.int64], rows: Any) -> NDArray[Any]:
        raise InvalidValue("an L1 ball takes dense rows: it is for a reproduction. Pass rows.toarray().")

    def shrinkage(self, away: Floats) -> Floats:
        """radius / max(norm, radius) of every row, by the sum of absolute values."""
        sums = np.zeros(len(away))
        for column in away.T:
            sums += np.minimum(np.abs(column), 1e300 / away.shape[1])
        return np.asarray(self.radius / np.maximum(sums, self.radius))

    def _inside(self, codes: NDArray[np.int64], sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of norm at most M: |q| M // sum only rounds towards 0, and without rounding they would add up to M."""
        return np.where(sums > self.top, np.sign(codes) * (np.abs(codes) * self.top // np.maximum(sums, 1)), codes)
