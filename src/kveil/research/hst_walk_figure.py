"""Figures 5 and 6 of the HST paper as SVG: how soon private searches are at their best, and how good that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kveil.research.figure import GREY, names_beside
from kveil.research.hst_claims import PRINTED
from kveil.research.hst_figure import MARKS, STROKES, drawn_as, prepare
from kveil.research.hst_figures import Outcome

AIMLESS = "HST seeds, swaps at random"
TITLES = {
    "steps": "How many steps does a private search take until five steps in a row cost least? Imbalanced demand",
    "best": "What does the best step of a private search cost, which nobody releases? Imbalanced demand",
}
LABELS = {"steps": "steps until the moving average is least", "best": "lowest sum of distances on the way"}

What = Literal["steps", "best"]


def svg(outcomes: Sequence[Outcome], what: What) -> bytes:
    """Figure 5 ("steps") or 6 ("best"): a panel per universe, imbalanced demands alone, as the paper has them."""
    shown = [outcome for outcome in outcomes if outcome.kind == "imbalanced"]
    some, runs = shown[0], len(shown[0].cells[0].runs)
    caption = (
        f"T = {some.steps} steps, {some.rows} rows, ε = {some.epsilon:g}; mean of {runs} run(s) and its standard error. Dotted: "
        "as printed, for study, no promise. Solid: corrected, the same number of steps.\n"
        + ("Grey: as DP-HST as printed, but swaps are drawn uniformly and look at nothing. " if what == "steps" else "")
        + "Exact statistics of every step, which no private method shows. Drawn anew: not the paper's own numbers."
    )

    def draw(axes: Any) -> None:
        for one, outcome in zip(axes, shown, strict=True):
            _panel(one, outcome, what)

    return drawn_as(TITLES[what], caption, draw, rows=len(shown) // 2)


def _panel(axes: Any, outcome: Outcome, what: What) -> None:
    lines = {cell.method.name: cell.method for cell in outcome.cells if cell.all(what)}
    numbers = {name: [outcome.costs(name, k, what) for k in outcome.clusters] for name in lines}
    styles = {name: (STROKES[method.way], method.colour) for name, method in lines.items()}
    if what == "steps":
        numbers[AIMLESS] = [outcome.costs(PRINTED[0], k, "aimless_steps") for k in outcome.clusters]
        styles[AIMLESS] = (":", GREY)
    means = {name: [float(np.mean(some)) for some in runs] for name, runs in numbers.items()}
    every = [mean for line in means.values() for mean in line]
    prepare(axes, outcome.name, "number of clusters k", outcome.clusters, is_log=what == "best" and max(every) > 5 * min(every))
    axes.set_ylabel(LABELS[what])
    if what == "steps":
        axes.set_ylim(0, 1.02 * (outcome.steps - 4))
    for name, runs in numbers.items():
        stroke, colour = styles[name]
        errors = [float(np.std(some, ddof=1)) / np.sqrt(len(some)) if len(some) > 1 else 0.0 for some in runs]
        axes.errorbar(outcome.clusters, means[name], errors, ls=stroke, color=colour, lw=1.6, marker="o", ms=3.0, elinewidth=0.7)
    names_beside(axes, [(means[name][-1], f"{MARKS[styles[name][0]]} {name}", styles[name][1]) for name in numbers])
