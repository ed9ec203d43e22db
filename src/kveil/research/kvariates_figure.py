"""Figure 3 of the k-variates++ paper as SVG, one panel a rival."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.research.figure import GREY, names_beside
from kveil.research.peers import Crowd, Point

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9")


def svg(points: Sequence[Point], crowd: Crowd, rival: str) -> bytes:
    """Nodes that draw uniformly against one rival: a line a k, over the share of moved rows."""
    some = [point for point in points if (point.local_pick, point.rival) == ("uniform", rival)]
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}):
        figure = Figure(figsize=(8.2, 5.0), layout="constrained")
        axes = figure.subplots()
        axes.set_title(f"What do nodes that draw uniformly cost over {rival}?", pad=14, loc="left")
        axes.axhline(0.0, linestyle="--", color="#000000", linewidth=1.0)
        axes.set_xlabel("rows moved to other peers, per cent")
        axes.set_ylabel("cost of the seeds, per cent more")
        axes.spines[["right", "top"]].set_visible(False)
        ends = []
        for k, colour in zip(dict.fromkeys(point.k for point in some), COLOURS, strict=False):
            line = [point for point in some if point.k == k]
            places, means = [100 * point.moved for point in line], [point.percent for point in line]
            low, high = ([point.percent + sign * point.error for point in line] for sign in (-2, 2))
            axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(places, means, "-", color=colour, linewidth=1.6, marker="o", markersize=3.5)
            ends.append((means[-1], f"k = {k}", colour))
        names_beside(axes, ends)
        caption = (
            f"{crowd.rows} rows, {crowd.columns} columns, {crowd.peers} peers; mean of {crowd.tables} data sets with "
            f"{crowd.seeds} seeds each, band of two standard errors.\nMade-up rows: not the paper's own numbers. No privacy here."
        )
        figure.supxlabel(caption, fontsize=8.5, style="italic", color=GREY)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()
