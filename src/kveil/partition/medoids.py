"""Public medoids of cells: the member with the least sum of distances to the members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kveil.space.universe import Space

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_MEMBERS = 64  # of a cell that are compared; a random sample of them is as good as all


def medoids(
    space: Space, members: Integers, start: Integers, stop: Integers, copies: Integers, radius: Floats, rng: np.random.Generator
) -> Integers:
    """The medoid of every cell members[start:stop], a location counting as often as the universe has points there.

    A cell of more than MOST_MEMBERS locations is judged by as many of them. radius: of the cells.
    """
    chosen = members[start].copy()
    for c in np.flatnonzero(stop - start > 1).tolist():
        cell = members[start[c] : stop[c]]
        if len(cell) > MOST_MEMBERS:
            cell = rng.choice(cell, MOST_MEMBERS, replace=False)
        chosen[c] = cell[np.argmin(space.distances(cell, cell).astype(np.int64) @ copies[cell])]
    return chosen
