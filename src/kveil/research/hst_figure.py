"""The HST figures as SVG: costs of seeds and of final centres beside each other, and running times."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.research.figure import GREY, MANY_RUNS, names_beside
from kveil.research.hst_figures import Cell, Outcome
from kveil.research.hst_times import FIXED, Timing

STROKES = {"not private": "--", "printed": ":", "corrected": "-", "counts": "-"}
MARKS = {"--": "- -", ":": "···", "-": "—"}  # before a name, since two lines may have one colour
SHOWN = (("seeds", "seeds"), ("final", "after the search"))
COLOURS = {"k-median++": "#0072B2", "HST, tree and search": "#D55E00", "HST, tree kept": "#E69F00"}


def svg(outcome: Outcome) -> bytes:
    """Seeds on the left, final centres on the right."""
    runs = len(outcome.cells[0].runs)
    spread = "5th to the 95th percentile" if runs >= MANY_RUNS else "least to the greatest"
    caption = (
        f"{outcome.points} points, {outcome.rows} rows; mean of {runs} run(s), band from the {spread} of them. "
        "Dashed: without privacy.\nDotted: constants as printed, for study, no promise. Solid: "
        f"(ε = {outcome.epsilon:g}, δ = 0) per record, add or remove, curator model, each fit.\n"
        "Drawn anew: not the paper's own numbers."
    )
    title = f"What do starts and private searches cost on {outcome.title}, {outcome.kind} demand?"

    def draw(axes: Any) -> None:
        for one, (what, name) in zip(axes, SHOWN, strict=True):
            _costs(one, outcome, what, name)

    return drawn_as(title, caption, draw)


def times_svg(timings: Sequence[Timing], universe: str) -> bytes:
    """Over k on the left, over points on the right."""
    some = [timing for timing in timings if timing.universe == universe]
    most = max(timing.points for timing in some)
    by_k, by_points = ([t for t in some if t.points == most], [t for t in some if t.k == FIXED])
    caption = "Median CPU of a few runs. Seeds for all points; a tree that is kept serves every k and every demand."

    def draw(axes: Any) -> None:
        _times(axes[0], by_k, "number of clusters k", [timing.k for timing in by_k], f"{most} points")
        _times(axes[1], by_points, "points of the universe", [timing.points for timing in by_points], f"k = {FIXED}")

    return drawn_as(f"When are seeds by a tree quicker than k-median++ on {universe}?", caption, draw)


def drawn_as(title: str, caption: str, draw: Callable[[Any], None], *, rows: int = 1) -> bytes:
    """An SVG of panels, two beside each other, with one title and one caption. `draw` gets them as a flat array."""
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(13.0, 0.8 + 4.4 * rows), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False).ravel()
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        draw(axes)
        figure.supxlabel(caption, fontsize=8.5, style="italic", color=GREY)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def _costs(axes: Any, outcome: Outcome, what: str, title: str) -> None:
    cells = [cell for cell in outcome.cells if cell.all(what) and not (what == "seeds" and _is_double(cell))]
    every = np.concatenate([cell.all(what) for cell in cells])
    prepare(axes, title, "number of clusters k", outcome.clusters, is_log=every.max() > 10 * max(every.min(), 1e-12))
    axes.set_ylabel("sum of distances to the nearest centre")
    ends = []
    for name in dict.fromkeys(cell.method.name for cell in cells):
        line = [cell for cell in cells if cell.method.name == name]
        method, places, costs = line[0].method, [cell.k for cell in line], [cell.all(what) for cell in line]
        means = [float(np.mean(some)) for some in costs]
        low, high = zip(*map(band, costs), strict=True)
        axes.fill_between(places, low, high, color=method.colour, alpha=0.08, linewidth=0)
        axes.plot(places, means, STROKES[method.way], color=method.colour, linewidth=1.6, marker="o", markersize=3.0)
        ends.append((means[-1], f"{MARKS[STROKES[method.way]]} {name}", method.colour))
    names_beside(axes, ends)


def _is_double(cell: Cell) -> bool:
    """Whether these seeds are those of the printed method: public ones cost nothing and have nothing to correct."""
    return cell.method.way == "corrected" and cell.method.start != "hst"


def _times(axes: Any, timings: Sequence[Timing], label: str, places: list[int], title: str) -> None:
    prepare(axes, title, label, places, is_log=True)
    axes.set_ylabel("CPU seconds")
    spent = zip(*((timing.plusplus, timing.tree + timing.search, timing.search) for timing in timings), strict=True)
    ends = []
    for (name, colour), seconds in zip(COLOURS.items(), spent, strict=True):
        shown = np.maximum(seconds, 1e-6)  # a clock may not see what is quicker
        axes.plot(places, shown, "-", color=colour, linewidth=1.6, marker="o", markersize=3.5)
        ends.append((float(shown[-1]), name, colour))
    names_beside(axes, ends)


def prepare(axes: Any, title: str, label: str, places: Sequence[int], *, is_log: bool) -> None:
    """Places on a logarithmic axis, what is measured on the other."""
    axes.set_title(title, loc="left")
    axes.set_xscale("log")
    axes.set_xticks(places, [str(place) for place in places])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(label)
    if is_log:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(lambda value, position: _plain(value) if f"{value:e}"[0] in "25" else "")
    axes.yaxis.set_major_formatter(lambda value, position: _plain(value))
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)


def band(costs: Sequence[float]) -> tuple[float, float]:
    low, high = (5, 95) if len(costs) >= MANY_RUNS else (0, 100)
    return float(np.percentile(costs, low)), float(np.percentile(costs, high))


def _plain(value: float) -> str:
    """Without an exponent: 15000000 is 15 000 k."""
    return f"{value:g}" if abs(value) < 10_000 else f"{value / 1000:,.0f} k".replace(",", " ")
