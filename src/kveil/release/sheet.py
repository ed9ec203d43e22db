"""The page a picture is drawn on, by matplotlib: its title, its caption with the promise, and how it is saved."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context, rcParamsDefault
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kveil.kernel.loss import Guarantee
from kveil.release.look import Look, adaptive, with_variables
from kveil.release.numbers import with_powers
from kveil.release.words import sentence

DPI = 150
PER_INCH = 16.0  # characters of a caption that stand side by side in one inch
KEPT = ("backend", "interactive", "toolbar", "timezone", "datapath", "webagg", "keymap", "tk.", "date.", "animation")


class Sheet(Figure):
    """A matplotlib Figure that notebooks show by itself, and that saves the same bytes for the same picture."""

    look: Look
    is_adaptive = False

    def savefig(self, fname: Any, **options: Any) -> None:
        """As matplotlib does; without the day, so that nothing tells when it was drawn."""
        with settings(), _quiet():
            name = str(options.get("format") or getattr(fname, "suffix", "") or str(fname)).lower()
            options = {"dpi": DPI, "facecolor": self.get_facecolor(), **options}
            super().savefig(fname, **({"metadata": {"Date": None}} | options if name.endswith("svg") else options))

    def save(self, path: Path, format: str) -> Path:
        """Into a file; an SVG of theme "auto" adapts to the page that shows it."""
        if format == "svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            self.savefig(path, format=format)
        return path

    def svg(self) -> str:
        """The picture as the text of an SVG."""
        sink = io.StringIO()
        self.savefig(sink, format="svg")
        return adaptive(sink.getvalue()) if self.is_adaptive else sink.getvalue()

    def part_of_page(self, label: str) -> str:
        """The picture as a part of an HTML page, which sets its colours; `label`, escaped, is read out where it is not seen."""
        sink = io.StringIO()
        self.savefig(sink, format="svg")
        text = re.sub(r"<metadata>.*?</metadata>", "", sink.getvalue(), flags=re.DOTALL)
        return with_variables(text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{label}"', 1))

    def _repr_png_(self) -> bytes:
        sink = io.BytesIO()
        self.savefig(sink, format="png", dpi=96)
        return sink.getvalue()


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib's own defaults, whatever this process has set, and ours."""
    usual: dict[Any, Any] = {key: value for key, value in rcParamsDefault.items() if not key.startswith(KEPT)}
    ours: dict[Any, Any] = {"svg.hashsalt": "kveil", "font.size": 9, "text.parse_math": False, "font.family": "DejaVu Sans"}
    with rc_context({**usual, **ours}):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in a script that the font lacks is drawn as boxes
        yield


def new_sheet(look: Look, width: float, height: float, *, is_adaptive: bool) -> Sheet:
    """An empty page of so many inches."""
    sheet = Sheet(figsize=(width, height), layout="constrained", facecolor=look.paper)
    FigureCanvasAgg(sheet)
    sheet.look, sheet.is_adaptive = look, is_adaptive
    return sheet


def dress(axes: Any, look: Look) -> None:
    """Axes in the colours of a page, without a box around them."""
    axes.set_facecolor("none")
    axes.tick_params(colors=look.muted, labelsize=8, length=3, width=0.6)
    axes.spines[["right", "top"]].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(look.faint)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(look.muted)


def finish(sheet: Sheet, title: str, guarantee: Guarantee, *captions: str) -> Any:
    """Title above, captions and the promise below, wrapped to the width of the page; then the layout is settled.

    Returns the text below.
    """
    width = int(sheet.get_figwidth() * PER_INCH)
    sheet.suptitle("\n".join(textwrap.wrap(title, int(width * 0.65))), x=0.01, ha="left", fontsize=12, color=sheet.look.ink)
    is_good = guarantee.valid and guarantee.route != "none"
    lines = [line for text in captions if text for line in textwrap.wrap(text, width)]
    lines += textwrap.wrap(with_powers(sentence(guarantee)), width)
    colour = sheet.look.muted if is_good else sheet.look.warn
    below = sheet.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color=colour)
    with settings(), _quiet():
        sheet.draw_without_rendering()
    sheet.set_layout_engine("none")
    return below


def pixels(sheet: Sheet, artist: Any) -> Any:
    """Where something is drawn, in pixels."""
    canvas: Any = sheet.canvas
    return artist.get_window_extent(canvas.get_renderer())
