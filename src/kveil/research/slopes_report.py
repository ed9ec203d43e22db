"""Exponents of the local protocols' error as CSV, as Markdown, and as a figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kveil.research.local_slopes import COLOURS, PROTOCOLS, Along, Cell, hardest, slope

BOUNDS: dict[Along, float] = {"people": 0.5, "k": 1.0}  # of LAE in Table 1; for k without O(1/(2c**2 - 1)), which c makes small
ALONG: tuple[Along, ...] = ("people", "k")
NOTICE = (
    "Total cost of simulated campaigns on rows whose optimal cost is 0, so that all of it is additive error. *Hardest*: small "
    "groups of the size with the greatest median. *Equal*: all groups of one size. ±: standard error of the slope, from drawing "
    "the runs of each cell anew. That the hardest size was chosen is not in it."
)


def records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One flat record per cell."""
    return [
        {
            "protocol": cell.protocol, "people": cell.people, "k": cell.k, "small_over_sqrt_n": cell.factor or "equal",
            "runs": len(cell.costs), "median_cost": round(cell.median, 2), "least_cost": round(min(cell.costs), 2),
            "greatest_cost": round(max(cell.costs), 2),
        }
        for cell in cells
    ]  # fmt: skip


def slopes(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The exponent of every protocol along people and along k, wherever two places or more were measured."""
    found = []
    for is_equal in (False, True):
        for along in ALONG:
            for name in PROTOCOLS:
                line = _line(cells, name, along, is_equal)
                if len(line) > 1:
                    fit = slope(line, along)
                    found.append(
                        {
                            "groups": "equal" if is_equal else "hardest", "along": along, "protocol": name,
                            "from": getattr(line[0], along), "to": getattr(line[-1], along), "exponent": round(fit.exponent, 3),
                            "standard_error": round(fit.error, 3),
                        }
                    )  # fmt: skip
    return found


def as_markdown(cells: Sequence[Cell], epsilon: float) -> str:
    """Exponents first, then the medians that they were fitted to."""
    first = cells[0]
    parts = [f"# How the error grows with people and clusters\n\n{NOTICE} ε = {epsilon:g}, {len(first.costs)} runs.\n"]
    parts += ["| groups | along | protocol | range | exponent |", "| --- | --- | --- | --- | ---: |"]
    for line in slopes(cells):
        span, name = f"{line['from']} to {line['to']}", PROTOCOLS[line["protocol"]]
        parts += [f"| {line['groups']} | {line['along']} | {name} | {span} | {line['exponent']} ± {line['standard_error']} |"]
    places = list(dict.fromkeys((cell.people, cell.k) for cell in cells))
    for is_equal, title in ((False, "Hardest sizes: median cost (small group over sqrt(n))"), (True, "Equal sizes: median cost")):
        found = hardest(cells, is_equal)
        parts += [f"\n## {title}\n", f"| people, k | {' | '.join(PROTOCOLS.values())} |", "| --- |" + " ---: |" * len(PROTOCOLS)]
        for people, k in places:
            shown = [_shown(found.get((name, people, k))) for name in PROTOCOLS]
            parts += [f"| {people}, {k} | {' | '.join(shown)} |"]
    return "\n".join([*parts, ""])


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.median:,.0f}".replace(",", " ") + (f" ({cell.factor:g})" if cell.factor else "")


def _line(cells: Sequence[Cell], name: str, along: Along, is_equal: bool) -> list[Cell]:
    """The cells of a protocol that differ in one thing alone, ascending: those of the first k, or of its number of people."""
    found = [cell for cell in hardest(cells, is_equal).values() if cell.protocol == name]
    k = cells[0].k
    if along == "people":
        return sorted((cell for cell in found if cell.k == k), key=lambda cell: cell.people)
    middle = {cell.people for cell in found if cell.k != k}
    return sorted((cell for cell in found if cell.people in middle), key=lambda cell: cell.k)


def svg(cells: Sequence[Cell], epsilon: float) -> bytes:
    """Cost over people and over k, on logarithmic axes, with the slopes of the paper's bound beside."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "kveil", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(10.5, 4.0), layout="constrained")
        panels = figure.subplots(1, 4, sharey=True)
        combos = [(is_equal, along) for is_equal in (False, True) for along in ALONG]
        for axes, (is_equal, along) in zip(panels, combos, strict=True):
            _panel(axes, cells, along, is_equal)
        panels[0].set_ylabel("total cost; the optimum is 0")
        lines = [panels[0].plot([], [], color=COLOURS[name], marker="o", markersize=3.5)[0] for name in PROTOCOLS]
        lines += [panels[0].plot([], [], "--", color="#777777")[0]]
        figure.legend(lines, [*PROTOCOLS.values(), "slope of LAE's bound"], loc="outside right center", frameon=False)
        figure.suptitle("How does the error grow with people and with clusters?", x=0.01, ha="left")
        figure.supxlabel(
            f"Median of {len(cells[0].costs)} simulated campaigns, band from the least to the greatest. "
            f"(ε = {epsilon:g}, δ = 0) per person, replace one, local model.",
            fontsize=8, style="italic", color="#555555",
        )  # fmt: skip
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()


def _panel(axes: Any, cells: Sequence[Cell], along: Along, is_equal: bool) -> None:
    axes.set_title("groups of one size" if is_equal else "the hardest small groups", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, position: f"{value:,.0f}".replace(",", " "))
    axes.set_xlabel("people" if along == "people" else "clusters k")
    for name in PROTOCOLS:
        line = _line(cells, name, along, is_equal)
        if not line:
            continue
        x = [getattr(cell, along) for cell in line]
        axes.fill_between(
            x, [min(cell.costs) for cell in line], [max(cell.costs) for cell in line], color=COLOURS[name], alpha=0.15, lw=0
        )
        axes.plot(x, [cell.median for cell in line], color=COLOURS[name], linewidth=1.5, marker="o", markersize=3.5)
    line = _line(cells, "lae", along, is_equal)
    x, power = [getattr(cell, along) for cell in line], BOUNDS[along]
    axes.plot(x, [2 * line[0].median * (value / x[0]) ** power for value in x], "--", color="#777777", linewidth=1)
    axes.set_xticks(x, [f"{value:g}" if along == "k" else f"2^{value.bit_length() - 1}" for value in x])
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
