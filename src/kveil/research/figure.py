"""A reproduced figure as SVG: lines with their names beside them, bands of spread, and a caption with the promise."""

from __future__ import annotations

import io
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.research.contest import NOT_PRIVATE, Cell
from kveil.research.highdim import Outcome
from kveil.research.highdim_methods import ONE_MEAN
from kveil.research.tables import runs_words

GREY = "#555555"
MANY_RUNS = 20  # from so many on, percentiles say more than the extremes
FAR = 1.2  # times the cost of one private mean
LINE = 0.052  # height of a name beside its line, as a share of the axis


def svg(outcome: Outcome) -> bytes:
    """Draw one panel."""
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(8.2, 5.0), layout="constrained")
        axes, far = figure.subplots(), far_off(outcome)
        shown = replace(outcome, cells=tuple(cell for cell in outcome.cells if cell.name not in far))
        _axes(axes, shown)
        ends = [_line(axes, shown, name) for name in dict.fromkeys(cell.name for cell in shown.cells)]
        names_beside(axes, ends)
        figure.supxlabel(_caption(outcome, far), fontsize=8.5, style="italic", color=GREY)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def far_off(outcome: Outcome) -> list[str]:
    """Methods whose cost is far above that of one private mean everywhere: drawn, they would flatten all other lines."""
    floor = max((cell.mean for cell in outcome.cells if cell.name == ONE_MEAN), default=inf)
    names = dict.fromkeys(cell.name for cell in outcome.cells)
    return [name for name in names if min(cell.mean for cell in outcome.cells if cell.name == name) > FAR * floor]


def _axes(axes: Any, outcome: Outcome) -> None:
    panel, means = outcome.panel, [cell.mean for cell in outcome.cells]
    places = panel.epsilons if panel.is_sweep else panel.clusters
    axes.set_title(panel.title, pad=14, loc="left")
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("ε (smaller is more private)" if panel.is_sweep else "number of clusters k")
    if max(means) > 10 * max(min(means), 1e-12):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda value, position: "")
    else:
        lowest, highest = min(means), max(max(cell.costs) for cell in outcome.cells)
        axes.set_ylim(bottom=0.0 if lowest < highest / 2 else 0.9 * lowest, top=1.05 * highest)  # else half would be empty
    axes.set_ylabel("mean squared distance to the nearest centre")
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)


def _line(axes: Any, outcome: Outcome, name: str) -> tuple[float, str, str]:
    """Draw one method; returns where its line ends, its name and its colour."""
    panel, cells = outcome.panel, [cell for cell in outcome.cells if cell.name == name]
    colour = next(someone.colour for someone in panel.contestants if someone.name == name)
    if panel.is_sweep and name == NOT_PRIVATE:
        places: list[Any] = list(panel.epsilons)
        cells = cells * len(places)
    else:
        places = [cell.epsilon if panel.is_sweep else cell.k for cell in cells]
    low, high = zip(*map(_band, cells), strict=True)
    means = [cell.mean for cell in cells]
    axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    dashed = "--" if name == NOT_PRIVATE else "-"
    axes.plot(places, means, dashed, color=colour, linewidth=1.6, marker="o", markersize=3.5)
    return means[-1], name, colour


def _band(cell: Cell) -> tuple[float, float]:
    low, high = (5, 95) if len(cell.costs) >= MANY_RUNS else (0, 100)
    return float(np.percentile(cell.costs, low)), float(np.percentile(cell.costs, high))


def names_beside(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Names to the right of the lines' ends, pushed apart so that none covers another."""
    to_share = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    wanted = sorted((float(to_share.transform((right, end))[1]), name, colour) for end, name, colour in ends)
    heights = _apart([height for height, _, _ in wanted])
    for height, (_, name, colour) in zip(heights, wanted, strict=True):
        axes.text(1.01, height, name, color=colour, transform=axes.transAxes, va="center", fontsize=9)


def _apart(heights: list[float]) -> list[float]:
    """The same heights in the same order, at least LINE apart, none above the top."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LINE) if placed else max(height, 0.0))
    top = 1.0
    for place in reversed(range(len(placed))):  # what sticks out pushes its neighbours down
        placed[place] = min(placed[place], top)
        top = placed[place] - LINE
    return placed


def _caption(outcome: Outcome, far: list[str]) -> str:
    panel, setting = outcome.panel, outcome.panel.setting
    spread = "5th to the 95th percentile" if setting.runs >= MANY_RUNS else "least to the greatest"
    epsilon = "ε as shown" if panel.is_sweep else f"ε = {panel.epsilons[0]:g}"
    fixed = f"k = {panel.clusters[0]}. " if panel.is_sweep else ""
    n, d = setting.rows.shape
    above = [f"{name} ({_range([cell.mean for cell in outcome.cells if cell.name == name])})" for name in far]
    return "\n".join(
        [
            f"{n} rows, {d} columns. {fixed}Mean of {runs_words(outcome, far)}; band from the {spread} of them.",
            *([f"Far above the picture: {', '.join(above)}."] if above else []),
            f"All but the dashed line: ({epsilon}, δ = {setting.delta:g}) per record, add or remove, curator model, each fit.",
            "Corrected calibrations, drawn anew: not the paper's own numbers.",
        ]
    )


def _range(means: list[float]) -> str:
    return f"{min(means):.3g} to {max(means):.3g}"
