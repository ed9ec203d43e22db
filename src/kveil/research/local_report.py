"""The table of local protocols as CSV, as Markdown, and as a figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kveil.research.local_table import COLOURS, DATA_FREE, PROTOCOLS, Cell

NOTICE = (
    "Median cost of simulated campaigns over the cost of k-means without privacy, on made-up data. **Bold**: what protocol "
    '"auto" is. (refused): "auto" would not run it. Every person sends one report; epsilon is what that report may give away.'
)


def records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One flat record a cell."""
    return [
        {
            "protocol": cell.protocol, "k": cell.k, "columns": cell.columns, "people": cell.people, "epsilon": cell.epsilon,
            "runs": len(cell.ratios), "median_ratio": round(cell.median, 4), "least_ratio": round(min(cell.ratios), 4),
            "greatest_ratio": round(max(cell.ratios), 4), "forecast": cell.forecast and round(cell.forecast, 3),
            "default": cell.default, "refused": cell.refused, "seconds_a_campaign": round(cell.seconds, 3),
        }
        for cell in cells
    ]  # fmt: skip


def as_markdown(cells: Sequence[Cell]) -> str:
    """A table for each number of people: a line a shape and protocol, a column an epsilon."""
    parts = [f"# k-means when nobody is trusted\n\n{NOTICE}\n"]
    epsilons = list(dict.fromkeys(cell.epsilon for cell in cells))
    for people in dict.fromkeys(cell.people for cell in cells):
        some = [cell for cell in cells if cell.people == people]
        parts += [f"## {people} people, {len(some[0].ratios)} run(s)\n"]
        parts += [f"| k, columns | protocol | {' | '.join(f'ε = {e:g}' for e in epsilons)} |"]
        parts += ["| --- | --- |" + " ---: |" * len(epsilons)]
        for shape in dict.fromkeys((cell.k, cell.columns) for cell in some):
            for name in dict.fromkeys(cell.protocol for cell in some if (cell.k, cell.columns) == shape):
                row = [cell for cell in some if (cell.k, cell.columns, cell.protocol) == (*shape, name)]
                parts += [f"| {shape[0]}, {shape[1]} | {PROTOCOLS.get(name, name)} | {' | '.join(map(_shown, row))} |"]
        parts += [""]
    return "\n".join(parts)


def _shown(cell: Cell) -> str:
    number = f"{cell.median:.3g}"
    return f"**{number}**{' (refused)' if cell.refused else ''}" if cell.default else number


def svg(cells: Sequence[Cell], people: int) -> bytes:
    """One picture for a number of people: a panel a shape, a line a protocol, epsilon across."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    some = [cell for cell in cells if cell.people == people]
    shapes = list(dict.fromkeys((cell.k, cell.columns) for cell in some))
    with rc_context({"svg.hashsalt": "kveil", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(2.3 * len(shapes) + 2.2, 3.9), layout="constrained")
        panels = figure.subplots(1, len(shapes), sharey=True, squeeze=False)[0]
        for axes, shape in zip(panels, shapes, strict=True):
            _panel(axes, [cell for cell in some if (cell.k, cell.columns) == shape], shape)
        panels[0].set_ylabel("cost over k-means without privacy")
        names = {PROTOCOLS.get(name, name): name for name in dict.fromkeys(cell.protocol for cell in some)}
        lines = [panels[0].plot([], [], color=COLOURS[name], marker="o", markersize=3.5)[0] for name in names.values()]
        figure.legend(lines, list(names), loc="outside right center", frameon=False)
        figure.suptitle(f"What does it cost to trust nobody? {people} people", x=0.01, ha="left")
        runs = len(some[0].ratios)
        figure.supxlabel(
            f"Median of {runs} simulated campaign(s), band from the least to the greatest. Dashed: k-means without privacy.\n"
            "(ε as shown, δ = 0) per person, replace one, local model: one report a person.",
            fontsize=8, style="italic", color="#555555",
        )  # fmt: skip
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def _panel(axes: Any, cells: list[Cell], shape: tuple[int, int]) -> None:
    axes.set_title(f"k = {shape[0]}, {shape[1]} columns", fontsize=9)
    epsilons = list(dict.fromkeys(cell.epsilon for cell in cells))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("ε")
    axes.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, position: "")
    axes.axhline(1.0, linestyle="--", color="#000000", linewidth=0.8)
    for name in dict.fromkeys(cell.protocol for cell in cells):
        row = [cell for cell in cells if cell.protocol == name]
        style = ":" if name == DATA_FREE else "-"
        axes.fill_between(
            epsilons,
            [min(cell.ratios) for cell in row],
            [max(cell.ratios) for cell in row],
            color=COLOURS[name],
            alpha=0.15,
            lw=0,
        )
        axes.plot(epsilons, [cell.median for cell in row], style, color=COLOURS[name], linewidth=1.5, marker="o", markersize=3.5)
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
