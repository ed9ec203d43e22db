"""Figure 3 of the HST paper as SVG: what the made-up graphs look like, near (r = 1) and far (r = 100)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.research.hst_figure import drawn_as
from kveil.research.median_cases import GROUPS, RANGES, clustered_graph
from kveil.space.graph import Graph

SHOWN = 50  # vertices, as in the paper: five per cluster
COLOURS = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999", "#000000", "#FFFFFF")


def svg(n: int) -> bytes:
    """Fifty vertices of each graph of `n`, and the edges between them. Places show distances as well as a plane can."""
    caption = (
        f"{SHOWN} of {n} vertices, {SHOWN // GROUPS} per cluster, chosen so that many edges run between them; a colour per "
        "cluster. Thicker and darker edges are shorter.\nPlaces by classical scaling of shortest paths in the whole graph. "
        "Graphs are made as the paper describes, with ten links between two clusters, which it leaves open."
    )

    def draw(axes: Any) -> None:
        for one, r in zip(axes, RANGES, strict=True):
            _panel(one, *clustered_graph(n, r), r)

    return drawn_as("What do the graphs look like?", caption, draw)


def excerpt(graph: Graph, group: Integers) -> Integers:
    """Vertices, five per cluster, each in turn the one with most edges to those that are there; ties to the first."""
    counted, chosen = np.zeros(graph.n_points, dtype=np.int64), list[int]()
    while len(chosen) < SHOWN:
        full = np.flatnonzero(np.bincount(group[chosen], minlength=GROUPS) >= SHOWN // GROUPS)
        is_free = ~np.isin(group, full)
        is_free[chosen] = False
        chosen.append(int(np.argmax(np.where(is_free, counted, -1))))
        counted[graph.heads[graph.indptr[chosen[-1]] : graph.indptr[chosen[-1] + 1]]] += 1
    return np.array(chosen)


def on_a_plane(distances: Floats) -> Floats:
    """Places (n, 2) whose distances come near the given ones: classical multidimensional scaling."""
    centred = distances**2 - (distances**2).mean(axis=0)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(centred)
    return np.asarray(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))


def mean_distances(graph: Graph, group: Integers) -> tuple[float, float]:
    """Of all pairs of vertices of one cluster, and of two."""
    apart, is_one = graph.distances(np.arange(graph.n_points)) * graph.step, group[:, None] == group
    return float(apart[is_one].sum() / (is_one.sum() - graph.n_points)), float(apart[~is_one].mean())


def _panel(axes: Any, graph: Graph, group: Integers, r: int) -> None:
    chosen = excerpt(graph, group)
    places = on_a_plane(np.asarray(graph.distances(chosen, chosen) * graph.step, dtype=np.float64))
    for one, vertex in enumerate(chosen):
        arcs = slice(graph.indptr[vertex], graph.indptr[vertex + 1])
        for head, length in zip(graph.heads[arcs], graph.lengths[arcs] * graph.step, strict=True):
            if head in chosen[:one]:
                near = 1 / (1 + 2 * length)
                ends = places[[one, int(np.flatnonzero(chosen == head)[0])]]
                axes.plot(*ends.T, color=str(0.8 * (1 - near)), lw=0.4 + 2.0 * near, zorder=1)
    axes.scatter(*places.T, c=[COLOURS[one] for one in group[chosen]], s=45, edgecolors="black", linewidths=0.7, zorder=2)
    within, between = mean_distances(graph, group)
    axes.set_title(f"r = {r}: mean distance {within:.2f} within a cluster, {between:.2f} between clusters", loc="left")
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(color="#EEEEEE", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("distance, in the units of the lengths")
    axes.spines[["right", "top"]].set_visible(False)
