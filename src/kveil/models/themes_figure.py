"""A picture of themes, by matplotlib: the keywords of every cluster, with their lift and its interval."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.release.words import printable, sentence

if TYPE_CHECKING:
    from kveil.models.themes import Theme, Themes, Word

BLUE, GREY = "#0072B2", "#555555"  # Okabe and Ito: told apart by everyone
COLUMNS, WORDS, MOST_CLUSTERS = 3, 6, 24


def draw(themes: Themes, path: Path, format: str) -> None:
    """Draw `themes` into the file at `path`."""
    shown = themes.clusters[:MOST_CLUSTERS]
    across = min(COLUMNS, len(shown))
    down = ceil(len(shown) / across)
    with rc_context({"svg.hashsalt": "kveil", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(3.2 * across + 0.6, 1.9 * down + 1.0), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        most = _most([word for theme in shown for word in theme.words[:WORDS]])
        for number, axes in enumerate(panels.ravel()):
            if number < len(shown):
                _panel(axes, number, shown[number], most)
            else:
                axes.set_axis_off()
        figure.suptitle("Which words stand out in each cluster?", x=0.01, ha="left")
        more = "" if len(shown) == len(themes.clusters) else f" The first {len(shown)} of {len(themes.clusters)} clusters."
        caption = (
            f"Lift over all rows, on one scale; lines hold the exact lift with a chance of 95 % each.{more}\n"
            f"{sentence(themes.guarantee)}"
        )
        figure.supxlabel(caption, fontsize=8, style="italic", color=GREY)
        figure.savefig(path, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)


def _most(words: list[Word]) -> float:
    """Where the scale of all panels ends: at the longest line, unless that would make all bars short; lines may run beyond it."""
    longest, largest = (max((getattr(word.lift, name) for word in words), default=1.0) for name in ("high", "value"))
    return float(min(1.1 * longest, 3 * largest))


def _panel(axes: Any, number: int, theme: Theme, most: float) -> None:
    words = theme.words[:WORDS]
    axes.set_title(f"cluster {number}, about {max(theme.size.value, 0):.0f} rows", loc="left", fontsize=9)
    axes.spines[["right", "top"]].set_visible(False)
    axes.set_xlim(0, most)
    if not words:
        axes.set_yticks([])
        axes.text(0.02, 0.5, "no word stands out of the noise", transform=axes.transAxes, color=GREY)
        return
    places, values = range(len(words)), [word.lift.value for word in words]
    axes.barh(places, values, color=BLUE, alpha=0.35)
    axes.hlines(places, [word.lift.low for word in words], [word.lift.high for word in words], color=BLUE, linewidth=1.2)
    axes.set_yticks(places, [printable(word.name, 18) for word in words])
    axes.invert_yaxis()
