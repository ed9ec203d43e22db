"""How the cells of one level become those of the next: by balls around points in a random order.

A divider fills, for every member of every cell, the number of its child, counted in the order in which children arise; and for
every child how far members may lie beyond the radius, where a cap on the number of children forced them in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kveil.space.universe import Space

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Divide = Callable[
    [int, Integers, Integers, Integers, NDArray[np.int32], Floats], None
]  # level, members, starts, stops, child, far


def divider(space: Space, order: Integers, radii: list[float], most: int, rng: np.random.Generator) -> Divide:
    """The quickest way to divide cells of this space."""
    return _by_rows(space, radii, most)


def _by_rows(space: Space, radii: list[float], most: int) -> Divide:
    """Any space that can say how far members are from one point."""

    def divide(level: int, members: Integers, starts: Integers, stops: Integers, child: NDArray[np.int32], far: Floats) -> None:
        for first, last in zip(starts.tolist(), stops.tolist(), strict=True):
            _carve(space, members[first:last], radii[level], most, child[first:last], far[first:last])

    return divide


def _carve(space: Space, cell: Integers, radius: float, most: int, child: NDArray[np.int32], far: Floats) -> None:
    left, opened = np.arange(len(cell)), 0
    near, owner = np.full(len(cell), np.inf), np.zeros(len(cell), dtype=np.int32)
    while len(left) and opened < most:
        apart = space.distances(cell[left[:1]], cell[left])[0]
        nearer = apart < near[left]
        near[left[nearer]], owner[left[nearer]] = apart[nearer], opened
        inside = apart <= radius
        child[left[inside]], far[opened] = opened, 0.0
        left, opened = left[~inside], opened + 1
    child[left] = owner[left]
    np.maximum.at(far, owner[left], near[left])
