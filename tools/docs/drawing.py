"""How the pictures of the pages look: transparent ground, text in the colour of the page, colours that all eyes tell apart."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure

INK = "#010203"  # becomes the colour of the page
BLUE, ORANGE, GREEN, PURPLE = "#4477cc", "#ee7733", "#229977", "#aa4499"
DENSITY = LinearSegmentedColormap.from_list("density", [to_rgba(BLUE, 0.0), to_rgba(BLUE, 1.0)])  # the page shines through
SMALLEST = 12  # points; a phone shows them as 11.5 pixels
STYLE = {
    "svg.fonttype": "none", "font.size": SMALLEST, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK,
    "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlesize": 12,
    "axes.titleweight": "bold", "font.family": "sans-serif", "legend.frameon": False,
}  # fmt: skip


def panels(count: int, height: float = 3.2, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9.6, height), layout="constrained")
    return figure, figure.subplots(1, count, **options)


def bare(axes: Any) -> None:
    """A map: no ticks, equal scales, a thin frame."""
    axes.set(xticks=[], yticks=[], aspect="equal")
    for side in axes.spines.values():
        side.set(visible=True, alpha=0.3)


def svg(figure: Figure, name: str) -> str:
    """The picture as text: the same text for the same drawing, and INK turned into the colour of the page."""
    file = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(file, format="svg", dpi=110, transparent=True, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<\?xml.*?\?>|<!DOCTYPE.*?>", "", file.getvalue(), flags=re.S)
    text = text.replace(INK, "currentColor")
    return re.sub(r"\n\s*\n+", "\n", text).strip() + "\n"


def save(figure: Figure, path: Path) -> None:
    path.write_text(svg(figure, path.stem), encoding="utf-8")
