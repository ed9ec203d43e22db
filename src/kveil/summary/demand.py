"""How many rows of a demand are at every point of a public universe, or in every cell of a public partition of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def point_counts(points: NDArray[np.int32], n_points: int) -> tuple[Integers]:
    """Raw numbers of rows at each point (n,): a row adds 1 to one of them."""
    return (np.bincount(points, minlength=n_points),)


def cell_counts(points: NDArray[np.int32], owner: NDArray[np.int32]) -> tuple[Integers]:
    """Raw numbers of rows in each cell (m,), `owner` being the cell of each point: a row adds 1 to one of them."""
    return (np.bincount(owner[points], minlength=int(owner.max()) + 1),)


def row_count(points: NDArray[np.int32], state: None) -> tuple[Integers]:
    """The raw number of rows (1,)."""
    return (np.array([len(points)]),)
