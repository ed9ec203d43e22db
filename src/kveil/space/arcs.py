"""From edges to the arcs of an undirected graph with integer lengths: loops dropped, the shortest of parallel edges kept.

Lengths become whole numbers of a public step. Shortest paths are then computed on the integers, so any rounding gives a
metric; rounding up keeps different places apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from kveil.errors import InvalidType, InvalidValue
from kveil.space import _graph_kernels as kernels
from kveil.space.universe import MOST_STEPS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 2**22  # what a diameter of fractional lengths gets at least
EDGE_STEPS = 64  # what an edge of median length gets at least, so that rounding up adds less than 1 % to it
FARTHEST = 2**31 - 1


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
    n = _size(ends, n_points)
    cut = _cut(truncate)
    graph = _undirected(ends, measured, n)
    if cut is None and connected_components(graph, directed=False, return_labels=False) > 1:
        raise InvalidValue(
            "the graph falls into pieces that no path connects, so some distances would be infinite. Pass truncate=c, a public "
            "length, and every distance above c counts as c; or keep one piece only."
        )
    step = _step(graph, cut)
    cap = FARTHEST if cut is None else min(ceil(cut / step), FARTHEST)
    steps = np.minimum(np.ceil(graph.data / step), cap).astype(np.int32)
    found = Arcs(graph.indptr.astype(np.int64), graph.indices.astype(np.int32), steps, step, 0)
    return Arcs(found.indptr, found.heads, found.lengths, step, _bound(found, cap))


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
    if not (np.isfinite(measured).all() and (measured >= 0).all()):
        raise InvalidValue("lengths must be finite and 0 or more. Leave out edges that cannot be used.")
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


def _cut(truncate: float | None) -> float | None:
    if truncate is None:
        return None
    if isinstance(truncate, bool) or not isinstance(truncate, int | float | np.integer | np.floating):
        raise InvalidType("truncate must be a number, in the units of the lengths.")
    if not (np.isfinite(truncate) and truncate > 0):
        raise InvalidValue("truncate must be finite and above 0: the largest distance that counts.")
    return float(truncate)


def _undirected(ends: Integers, lengths: Floats, n: int) -> Any:
    """Both directions of every edge as a CSR array; edges of length 0 are stored zeros, which SciPy's searches follow too."""
    is_edge = ends[:, 0] != ends[:, 1]
    tails = np.concatenate([ends[is_edge, 0], ends[is_edge, 1]])
    heads = np.concatenate([ends[is_edge, 1], ends[is_edge, 0]])
    both = np.tile(lengths[is_edge], 2)
    order = np.lexsort((both, heads, tails))
    tails, heads, both = tails[order], heads[order], both[order]
    is_first = np.ones(len(tails), dtype=bool)
    is_first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails[is_first], minlength=n))])
    return csr_array((both[is_first], heads[is_first], indptr), shape=(n, n))


def _step(graph: Any, cut: float | None) -> float:
    """1 for whole lengths; otherwise a power of two, fine enough for the diameter and for a typical edge."""
    positive = graph.data[graph.data > 0]
    if not len(positive):
        return 1.0
    extent = cut if cut is not None else 2 * float(dijkstra(graph, indices=0).max())
    if extent <= MOST_STEPS and (positive == np.floor(positive)).all():
        return 1.0
    finest = max(min(extent / STEPS, float(np.median(positive)) / EDGE_STEPS), 2 * extent / MOST_STEPS)
    return float(2.0 ** floor(log2(finest)))


def _bound(found: Arcs, cap: int) -> int:
    """Twice the least radius around any of four vertices, the last in the middle of a long path; at most `cap`."""
    n = len(found.indptr) - 1
    everyone = np.ones(n, dtype=np.int8)

    def radius(site: int) -> tuple[NDArray[np.int32], int]:
        apart = np.empty(n, dtype=np.int32)
        kernels.sweep(found.indptr, found.heads, found.lengths, site, cap, everyone, apart)
        return apart, int(apart.max())

    start, least = radius(0)
    one, first = radius(int(start.argmax()))
    other, second = radius(int(one.argmax()))
    _, middle = radius(int(np.maximum(one, other).argmin()))
    return min(2 * min(least, first, second, middle), cap)
