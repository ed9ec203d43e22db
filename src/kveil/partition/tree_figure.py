"""A figure of a tree, by matplotlib: cells from large to small, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.partition.drawing import expanded, label

if TYPE_CHECKING:
    from kveil.partition.hst import Hst


BLUE, GREY = "#0072B2", "#555555"  # Okabe and Ito: told apart by everyone
MOST_NODES, MOST_LABELS = 200, 48
SMALLEST, LARGEST = 8.0, 160.0  # areas of markers


def draw(tree: Hst, path: Path, format: str) -> None:
    """Draw `tree` into the file at `path`; of a large one the upper MOST_NODES nodes."""
    is_open = expanded(tree, MOST_NODES)
    shown = np.array([0, *(v for v in range(1, tree.n_nodes) if is_open[tree.parent[v]])])
    across, up = _places(tree, shown, is_open), tree.gap * tree.space.step
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(8.0, 4.8), layout="constrained")
        axes = figure.subplots()
        axes.set_title(f"How does the tree divide {tree.space.n_points} points?", pad=14, loc="left")
        for node in shown[1:]:
            above = tree.parent[node]
            axes.plot(
                [across[above], across[node], across[node]], [up[above], up[above], up[node]], color="#AAAAAA", linewidth=0.8
            )
        ends = shown[~is_open[shown]]
        sizes = (tree.stop - tree.start) / (tree.stop - tree.start).max()
        areas = SMALLEST + (LARGEST - SMALLEST) * sizes[ends]
        axes.scatter(across[ends], up[ends], s=areas, color=BLUE, alpha=0.7, edgecolor="white", linewidth=0.5, zorder=3)
        _axes(axes, tree, ends, across)
        hidden = tree.n_nodes - len(shown)
        more = f" {hidden} smaller cells are not shown." if hidden else ""
        figure.supxlabel(
            f"2-HST of public points, factor of the radii {tree.factor:.3g}. Discs: cells, by their number of places.{more}",
            fontsize=9, style="italic", color=GREY,
        )  # fmt: skip
        figure.savefig(path, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)


def _axes(axes: Any, tree: Hst, ends: NDArray[np.int64], across: Floats) -> None:
    if tree.diameter > 0:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, position: f"{value:.3g}")
    axes.set_ylabel("radius of the level a cell was cut at")
    axes.spines[["right", "top", "bottom"]].set_visible(False)
    if len(ends) <= MOST_LABELS:
        axes.set_xticks(across[ends], [label(tree, int(node)) for node in ends], rotation=90, fontsize=8)
    else:
        axes.set_xticks([])
    axes.tick_params(axis="x", length=0)


def _places(tree: Hst, shown: NDArray[np.int64], is_open: NDArray[np.bool_]) -> Floats:
    """Ends of the drawing side by side, every other node over the middle of its children."""
    across = np.zeros(tree.n_nodes)
    ends = shown[~is_open[shown]]
    across[ends[np.argsort(tree.start[ends])]] = np.arange(len(ends))
    for node in shown[is_open[shown]][::-1]:  # children come after their parents
        across[node] = across[tree.children(int(node))].mean()
    return across
