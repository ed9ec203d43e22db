"""A figure of a cost curve, by matplotlib. It may leave the house: its caption carries the guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.release.figure import BLUE, GREY
from kveil.release.words import sentence

if TYPE_CHECKING:
    from kveil.release.curve import CostCurve

ORANGE = "#D55E00"


def draw(curve: CostCurve, path: Path, format: str) -> None:
    """Draw `curve` into the file at `path`: the cost, where it is known, over the silhouette."""
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(7.0, 4.8 if curve.cost is not None else 3.0), layout="constrained")
        lower = figure.subplots(2 if curve.cost is not None else 1, 1, sharex=True, squeeze=False)[:, 0]
        lower[0].set_title(f"How many clusters? {curve.suggested} {'is clear' if curve.is_clear else 'is a guess'}", pad=12)
        if curve.cost is not None:
            _line(lower[0], curve, curve.cost, "estimated mean\nsquared distance")
            lower[0].set_ylim(bottom=0.0)
        _line(lower[-1], curve, np.where(curve.k > 1, curve.silhouette, np.nan), "silhouette")
        lower[-1].set_xlabel("number of clusters")
        colour = GREY if curve.guarantee.valid and curve.guarantee.route != "none" else ORANGE
        figure.supxlabel(sentence(curve.guarantee), fontsize=9, style="italic", color=colour)
        figure.savefig(path, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)


def _line(axes: Any, curve: CostCurve, values: Any, label: str) -> None:
    axes.plot(curve.k, values, marker="o", markersize=3.5, color=BLUE, linewidth=1.2)
    axes.axvline(curve.suggested, color=GREY, linewidth=0.8, linestyle="-" if curve.is_clear else ":")
    axes.set_ylabel(label)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.spines[["right", "top"]].set_visible(False)
