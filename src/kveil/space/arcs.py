"""From edges to the arcs of an undirected graph with integer lengths: loops dropped, the shortest of parallel edges kept.

Lengths become whole numbers of a public step. Shortest paths are then computed on the integers, so any rounding gives a
metric; rounding up keeps different places apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isinf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidType, InvalidValue
from kveil.space import _graph_kernels as kernels
from kveil.space.universe import MOST_STEPS, STEPS, capped, power_of_two, seal

EDGE_STEPS = 64  # what an edge of median length gets at least, so that rounding up adds less than 1 % to it
FARTHEST = 2**31 - 1
LARGEST = 1e290  # sums of longer edges could overflow


@dataclass(frozen=True)
class Arcs:
    """The arcs of vertex v are indptr[v] to indptr[v + 1]: their heads, and their lengths in steps."""

    indptr: Integers
    heads: NDArray[np.int32]
    lengths: NDArray[np.int32]
    step: float
    diameter: int


def arcs(edges: ArrayLike, lengths: ArrayLike | None, n_points: int | None, truncate: float | None) -> Arcs:
    """Arcs of the undirected graph with these edges, and a public bound of its diameter."""
    ends = _ends(edges)
    measured = _lengths(lengths, len(ends))
    cut = capped(truncate)
    n = _size(ends, n_points)
    if n > len(ends) + 1 and truncate is None:  # before anything is as large as a vertex number in a damaged file
        raise _in_pieces()
    graph = _undirected(ends, measured, n)
    n_pieces, piece = connected_components(graph, directed=False)
    if n_pieces > 1 and truncate is None:
        raise _in_pieces()
    extent = _extent(graph, piece)
    step = _step(graph.data[graph.data > 0], min(extent, cut))
    if n_pieces > 1 and cut > step * MOST_STEPS:
        raise InvalidValue(
            f"truncate is too large beside the distances within a piece: no step fits both. Use at most {step * MOST_STEPS:.3g}."
        )
    cap = FARTHEST if isinf(cut) else min(ceil(cut / step), FARTHEST)
    steps = np.minimum(np.ceil(graph.data / step), cap).astype(np.int32)
    indptr, heads = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    seal(indptr, heads, steps)  # before the first search: compiled code is made anew for arrays that may be written to
    return Arcs(indptr, heads, steps, step, _bound(indptr, heads, steps, cap))


def _in_pieces() -> InvalidValue:
    return InvalidValue(
        "the graph falls into pieces that no path connects, so some distances would be infinite. Pass truncate=c, a public "
        "length, and every distance above c counts as c; or keep one piece only."
    )


def _ends(edges: ArrayLike) -> Integers:
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if ends.dtype.kind not in "iu":
        raise InvalidType("edges must be pairs of vertex numbers, integers from 0. For vertices with names use Graph.read.")
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise InvalidValue("edges must have two columns, the vertices that an edge joins; lengths are an array of their own.")
    if ends.min() < 0 or ends.max() >= FARTHEST:
        raise InvalidValue("edges must hold vertex numbers, 0 or more and below 2**31 - 1.")
    return ends.astype(np.int64)


def _lengths(lengths: ArrayLike | None, n_edges: int) -> Floats:
    if lengths is None:
        return np.ones(n_edges)
    given = np.asarray(lengths)
    if given.size and given.dtype.kind not in "iuf":
        raise InvalidType("lengths must be numbers, one an edge.")
    if given.shape != (n_edges,):
        raise InvalidValue("lengths must be one number an edge.")
    measured = given.astype(np.float64)
    if not ((measured >= 0) & (measured <= LARGEST)).all():  # also false for NaN
        raise InvalidValue("lengths must be 0 or more, finite and of ordinary size. Leave out edges that cannot be used.")
    return measured


def _size(ends: Integers, n_points: int | None) -> int:
    least = int(ends.max()) + 1 if len(ends) else 0
    if n_points is None:
        n_points = least
    if isinstance(n_points, bool) or not isinstance(n_points, int | np.integer):
        raise InvalidType("n_points must be a whole number.")
    if not max(1, least) <= n_points < FARTHEST:
        raise InvalidValue(
            "n_points must be at least 1, above every vertex number in edges, and below 2**31 - 1: a universe cannot be empty."
        )
    return int(n_points)


def _undirected(ends: Integers, lengths: Floats, n: int) -> Any:
    """Both directions of every edge as a CSR array; edges of length 0 are stored zeros, which SciPy's searches follow too."""
    is_edge = ends[:, 0] != ends[:, 1]
    one, other = ends[is_edge].T
    pairs = np.concatenate([one * n + other, other * n + one])  # below 2**62: one number to sort by
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    shortest = np.minimum.reduceat(np.tile(lengths[is_edge], 2)[order], first) if len(first) else np.empty(0)
    tails, heads = np.divmod(pairs[first], n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    kind = np.int32 if len(first) < FARTHEST else np.int64  # older searches of SciPy take no wider one
    return csr_array((shortest, heads.astype(kind), indptr.astype(kind)), shape=(n, n))


def _extent(graph: Any, piece: NDArray[np.int32]) -> float:
    """No two vertices of one piece are farther apart: twice the largest distance from the first vertex of their piece."""
    first = np.unique(piece, return_index=True)[1]
    return 2 * float(dijkstra(graph, indices=first, min_only=True).max())


def _step(positive: Floats, extent: float) -> float:
    """1 for whole lengths; otherwise a power of two, fine enough for the diameter and for a typical edge."""
    if extent == 0 or (extent <= MOST_STEPS and (positive == np.floor(positive)).all()):
        return 1.0
    return power_of_two(max(min(extent / STEPS, float(np.median(positive)) / EDGE_STEPS), 4 * extent / MOST_STEPS))


def _bound(indptr: Integers, heads: NDArray[np.int32], lengths: NDArray[np.int32], cap: int) -> int:
    """Twice the least radius around any of four vertices, the last in the middle of a long path; at most `cap`."""
    n = len(indptr) - 1
    everyone = np.ones(n, dtype=np.int8)

    def radius(site: int) -> tuple[NDArray[np.int32], int]:
        apart = np.empty(n, dtype=np.int32)
        kernels.sweep(indptr, heads, lengths, site, cap, everyone, apart)
        return apart, int(apart.max())

    start, least = radius(0)
    one, first = radius(int(start.argmax()))
    other, second = radius(int(one.argmax()))
    _, middle = radius(int(np.maximum(one, other).argmin()))
    return min(2 * min(least, first, second, middle), cap)
