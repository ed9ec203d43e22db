"""How the rows of a demand become points of a finite public universe: a grid whose codes are the points themselves.

A source reads rows as float64 and asks a grid for integers; what is counted then is exact. A row becomes a point by itself
alone, so neighbours stay neighbours, and no row raises, warns or is left out.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.space.universe import Space

SPARSE_DEMAND = "a demand is one index, or one place, a row: a sparse matrix has neither. Pass an array of indices."


class Places:
    """Rows of one column are indices of points, rows of as many columns as the points have are coordinates.

    What is no index (NaN, negative, a fraction, too large) is point 0. Coordinates are the nearest point, ties to the smallest
    index, as `Space.locate` says; a row with NaN or infinity is in the middle of all points.
    """

    bits = 1  # rows are counted, their codes are never added up: no number of rows could overflow a sum of them

    def __init__(self, space: Space, n_columns: int) -> None:
        width = None if space.points is None else space.points.shape[1]
        if n_columns not in (1, width):
            coordinates = "" if width is None or width == 1 else f", or the {width} coordinates of its points"
            raise InvalidValue(
                f"the demand has {n_columns} columns, and this universe takes one column of indices{coordinates}. Choose them "
                "with kveil.read(demand, columns=[...])."
            )
        self.space, self.n_columns = space, n_columns
        points = space.points
        self._middle = None if points is None or n_columns == 1 else points.min(axis=0) / 2 + points.max(axis=0) / 2

    def encode(self, rows: Any) -> NDArray[np.int32]:
        """The point of every row, (n,)."""
        with np.errstate(all="ignore"):  # what rows hold never warns, whatever this process has set
            if self._middle is None:
                return self.space.locate(rows[:, 0]).astype(np.int32)
            is_place = np.isfinite(rows).all(axis=1, keepdims=True)
            return self.space.locate(np.where(is_place, rows, self._middle)).astype(np.int32)

    def encode_sparse(self, rows: Any) -> NoReturn:
        raise InvalidValue(SPARSE_DEMAND)
