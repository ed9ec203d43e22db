"""Public medoids of cells: the member with the least sum of distances to the members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.partition import _graph_kernels, _kernels
from kveil.space.graph import Graph
from kveil.space.vectors import Manhattan, Vectors

if TYPE_CHECKING:
    from kveil.space.universe import Space


MOST_MEMBERS = 64  # of a cell that are compared; a random sample of them is as good as all
MOST_ANCHORS = 8  # of a cell of a graph that members are measured from: 2 % above the best sum on roads; 4 are 20 % above


def medoids(
    space: Space, named: Integers, members: Integers, start: Integers, stop: Integers, radius: Floats, rng: np.random.Generator
) -> Integers:
    """The medoid of every cell members[start:stop], a location counting as often as the universe has points there.

    named: the location of every point. A cell of more than MOST_MEMBERS locations is judged by as many of them. radius: of the
    cells.
    """
    copies = np.bincount(named, minlength=space.n_points)
    chosen = members[start].copy()
    many = np.flatnonzero(stop - start > 1)
    if isinstance(space, Graph):
        chosen[many] = _by_anchors(space, members, start[many], stop[many], copies, radius[many], rng)
        return chosen
    members, start, stop = _sampled(members, start[many], stop[many], rng)
    if isinstance(space, Vectors):
        found = np.empty(len(many), dtype=np.int64)
        _kernels.vector_medoids(space.codes, members, start, stop, copies, isinstance(space, Manhattan), found)
        chosen[many] = found
        return chosen
    for c, (first, last) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
        cell = members[first:last]
        chosen[many[c]] = cell[np.argmin(space.distances(cell, cell).astype(np.int64) @ copies[cell])]
    return chosen


def _by_anchors(
    graph: Graph, members: Integers, start: Integers, stop: Integers, copies: Integers, radius: Floats, rng: np.random.Generator
) -> Integers:
    """Members nearest to a few random ones of their cell, on average: a search from every member would take too long."""
    anchors = np.full((len(start), MOST_ANCHORS), -1, dtype=np.int64)
    for c, (first, last) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
        cell = members[first:last]
        some = cell if len(cell) <= MOST_ANCHORS else rng.choice(cell, MOST_ANCHORS, replace=False)
        anchors[c, : len(some)] = some
    found = np.empty(len(start), dtype=np.int64)
    arcs = graph.indptr, graph.heads, graph.lengths
    _graph_kernels.graph_medoids(*arcs, members, start, stop, radius, anchors, copies, found)
    return found


def _sampled(members: Integers, start: Integers, stop: Integers, rng: np.random.Generator) -> tuple[Integers, Integers, Integers]:
    """The same cells, large ones thinned out to MOST_MEMBERS at random."""
    sizes = np.minimum(stop - start, MOST_MEMBERS)
    ends = np.cumsum(sizes)
    kept = np.repeat(start - (ends - sizes), sizes) + np.arange(sizes.sum())
    for c in np.flatnonzero(stop - start > MOST_MEMBERS).tolist():
        kept[ends[c] - sizes[c] : ends[c]] = start[c] + rng.choice(stop[c] - start[c], MOST_MEMBERS, replace=False)
    return members[kept], ends - sizes, ends
