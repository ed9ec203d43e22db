"""How the cells of one level become those of the next: by balls around points in a random order.

A divider fills, for every member of every cell, the number of its child, counted in the order in which children arise; and for
every child how far members may lie beyond the radius, where a cap on the number of children forced them in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.partition import _graph_kernels, _kernels
from kveil.space.graph import Graph
from kveil.space.vectors import Euclidean, Manhattan

if TYPE_CHECKING:
    from kveil.space.universe import Space

# level, members, starts, stops, child, far
Divide = Callable[[int, Integers, Integers, Integers, NDArray[np.int32], Floats], None]

MOST_COLUMNS = 64  # points with more are projected: seeds of 784 columns cost the same, and the tree a sixth of the time
BLOCK = 2**14


def divider(space: Space, order: Integers, radii: list[float], most: int, rng: np.random.Generator) -> Divide:
    """The quickest way to divide cells of this space. order: its locations, in the order in which they become centres.
    most: children of a cell; what is left then goes to the nearest. Graphs have no such limit.

    Graphs have *global* centres: a point goes to the first of all points that is near enough, in its cell or not. Elsewhere a
    centre is a member of the cell that no earlier one took.
    """
    if isinstance(space, Graph):
        return _by_searches(space, order, radii)
    if isinstance(space, Manhattan):
        return _by_codes(space.codes, radii, most, is_l1=True)
    if isinstance(space, Euclidean):
        return _by_codes(_projected(space.codes, rng), radii, most, is_l1=False)
    return _by_rows(space, radii, most)


def _by_codes(codes: NDArray[np.int32], radii: list[float], most: int, *, is_l1: bool) -> Divide:
    """Points on a grid. A distance, rounded up, is at most r if and only if the distance is at most floor(r)."""

    def divide(level: int, members: Integers, starts: Integers, stops: Integers, child: NDArray[np.int32], far: Floats) -> None:
        whole = int(radii[level])
        far[:] = 0.0
        _kernels.carve_vectors(codes, members, starts, stops, whole if is_l1 else whole**2, is_l1, most, child, far)
        if not is_l1:
            np.sqrt(far, out=far)

    return divide


def _projected(codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Codes with at most MOST_COLUMNS columns: sums with random signs, which keep squared distances in the mean."""
    if codes.shape[1] <= MOST_COLUMNS:
        return codes
    signs = rng.choice([-1.0, 1.0], (codes.shape[1], MOST_COLUMNS)) / np.sqrt(MOST_COLUMNS)
    out = np.empty((len(codes), MOST_COLUMNS), dtype=np.int32)
    for top in range(0, len(codes), BLOCK):
        sums = codes[top : top + BLOCK].astype(np.float64) @ signs
        out[top : top + BLOCK] = np.rint(np.clip(sums, -(2**29), 2**29))  # differences fit into 32 bits
    return out


def _by_searches(graph: Graph, order: Integers, radii: list[float]) -> Divide:
    rank = np.empty((len(radii), graph.n_points), dtype=np.int32)
    falling = np.array([int(radius) for radius in reversed(radii)], dtype=np.int32)
    _graph_kernels.least_elements(graph.indptr, graph.heads, graph.lengths, order, falling, rank)

    def divide(level: int, members: Integers, starts: Integers, stops: Integers, child: NDArray[np.int32], far: Floats) -> None:
        _graph_kernels.number_children(rank[len(radii) - 1 - level], members, starts, stops, child)

    return divide


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
