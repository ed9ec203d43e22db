"""A picture of a plan, by matplotlib: what noise does, by epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from kveil.models.plan import CuratorPlan

BLUE, GREEN, ORANGE, GREY = "#0072B2", "#009E73", "#D55E00", "#555555"  # Okabe and Ito: told apart by everyone


def draw(plan: CuratorPlan, path: Path, format: str) -> None:
    """Draw `plan` into the file at `path`."""
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(7.0, 4.4), layout="constrained")
        axes = figure.subplots()
        (_ratios if plan.trials else _noise)(axes, plan)
        axes.set_xscale("log")
        axes.set_xlabel("ε (smaller is more private)")
        axes.axvline(plan.epsilon, color=GREY, linewidth=0.8, linestyle=":")
        _label(axes, "this model", (plan.epsilon, 1.0), ("data", "axes fraction"), (3, -10), GREY)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, position: f"{value:g}")
            axis.set_minor_formatter(lambda value, position: "")
        axes.spines[["right", "top"]].set_visible(False)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        figure.supxlabel(_caption(plan), fontsize=9, style="italic", color=GREY)
        figure.savefig(path, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)


def _ratios(axes: Any, plan: CuratorPlan) -> None:
    epsilons, means = [trial.epsilon for trial in plan.trials], [trial.ratio for trial in plan.trials]
    low, high = ([pick(trial.ratios) for trial in plan.trials] for pick in (min, max))
    axes.set_title("What does privacy cost on the public sample?", loc="left", pad=12)
    axes.fill_between(epsilons, low, high, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(epsilons, means, color=BLUE, linewidth=1.6, marker="o", markersize=3.5)
    if max(high) > 10:
        axes.set_yscale("log")
    axes.set_ylabel("cost over the cost without privacy")
    _level(axes, "without privacy", 1.0, GREY)


def _noise(axes: Any, plan: CuratorPlan) -> None:
    told = plan.figures
    assert told is not None  # a plan has trials or figures
    axes.set_title("How large is the noise in a centre?", loc="left", pad=12)
    axes.plot(*zip(*told.curve, strict=True), color=BLUE, linewidth=1.6)
    axes.set_yscale("log")
    axes.set_ylabel("noise in a centre, over the clip radius")
    for name, end, colour in (("good below this line", told.good, GREEN), ("noise above this line", told.noise, ORANGE)):
        if end is not None:
            _level(axes, name, end, colour)


def _level(axes: Any, name: str, height: float, colour: str) -> None:
    axes.axhline(height, color=colour, linewidth=1.0, linestyle="--")
    _label(axes, name, (0.01, height), ("axes fraction", "data"), (0, 3), colour)


def _label(axes: Any, text: str, place: tuple[float, float], units: tuple[str, str], lift: tuple[int, int], colour: str) -> None:
    axes.annotate(text, place, xycoords=units, xytext=lift, textcoords="offset points", fontsize=8, color=colour)


def _caption(plan: CuratorPlan) -> str:
    terms = f"{plan.kind}, {plan.n_clusters} clusters, {plan.rows:,.0f} rows, {plan.n_features} column(s), δ = {plan.delta:g}."
    if not plan.trials:
        return f"{terms}\nFrom public numbers alone, for clusters of equal size; no row was read."
    runs = len(plan.trials[0].ratios)
    return f"{terms}\n{plan.sample_rows:,} public rows; mean of {runs} run(s), band from the least to the greatest of them."
