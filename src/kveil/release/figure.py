"""A figure of a release, by matplotlib. It may leave the house: its caption carries the guarantee."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from kveil.release.picture import Scene, scene
from kveil.release.synthetic import extent, has_density
from kveil.release.words import printable, sentence

if TYPE_CHECKING:
    from kveil.release.release import Release

BLUE, GREY, PALE = "#0072B2", "#555555", "#DDDDDD"  # Okabe and Ito: told apart by everyone
PLANE_BINS, LINE_BINS = 64, 128
MOST_LABELS, MOST_NUMBERS = 40, 120
SMALLEST, LARGEST = 30.0, 700.0  # areas of markers


def draw(release: Release, path: Path, format: str) -> None:
    """Draw `release` into the file at `path`."""
    view = scene(release)
    with rc_context({"svg.hashsalt": "kveil", "font.size": 10, "text.parse_math": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in a script that the font lacks is drawn as boxes
        figure = Figure(figsize=(7.0, 4.8 if len(view.names) > 1 else 2.6), layout="constrained")
        axes = figure.subplots()
        if len(view.names) == 1:
            _density_line(axes, release)
            _line(axes, view, _labels(release))
        elif len(view.names) == 2:
            _density_plane(axes, release)
            _plane(axes, view, _labels(release))
        else:
            _heat_map(figure, axes, view, _labels(release))
        colour = GREY if release.guarantee.valid and release.guarantee.route != "none" else "#D55E00"
        figure.supxlabel(sentence(release.guarantee), fontsize=9, style="italic", color=colour)
        figure.savefig(path, format=format, dpi=150, metadata={"Date": None} if format == "svg" else None)


def _density_line(axes: Any, release: Release) -> None:
    """Where rows are, as far as noise tells: a step curve above the line that the centres lie on."""
    if has_density(release):
        mass, (low, high) = release.density(LINE_BINS), extent(release)
        axes.stairs(0.9 * mass / mass.max(), np.linspace(low[0], high[0], LINE_BINS + 1), fill=True, color=PALE, zorder=0)


def _density_plane(axes: Any, release: Release) -> None:
    """Where rows are, as far as noise tells: squares under the centres, the darker the more."""
    if has_density(release):
        mass, (low, high) = release.density(PLANE_BINS), extent(release)
        edges = np.linspace(low, high, PLANE_BINS + 1)
        axes.pcolormesh(*edges.T, np.sqrt(mass.T), cmap="Greys", vmin=0.0, vmax=2.0 * np.sqrt(mass.max()), zorder=0)


def _line(axes: Any, view: Scene, labels: list[str]) -> None:
    axes.set_title(f"Where along {_name(view.names[0])} are the {_centres(view)}{_and_weight(view)}?", pad=16)
    axes.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
    _markers(axes, view, np.zeros(len(view.centers)), labels)
    axes.set_yticks([])
    axes.set_ylim(-1.0, 1.0)
    axes.spines[["left", "right", "top"]].set_visible(False)
    _limits(axes.set_xlim, view, 0)
    axes.set_xlabel(f"{_name(view.names[0])} ({view.ends}: {view.low[0]:.6g} to {view.high[0]:.6g})")


def _plane(axes: Any, view: Scene, labels: list[str]) -> None:
    axes.set_title(f"Where are the {_centres(view)}{_and_weight(view)}?", pad=16)
    _markers(axes, view, view.centers[:, 1], labels)
    (left, low), (right, high) = view.low, view.high
    axes.plot(
        [left, right, right, left, left], [low, low, high, high, low], color="#AAAAAA", linewidth=0.8, linestyle=":", zorder=0
    )
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)
    for place, (limit, label) in enumerate(((axes.set_xlim, axes.set_xlabel), (axes.set_ylim, axes.set_ylabel))):
        _limits(limit, view, place)
        label(f"{_name(view.names[place])} ({view.ends}: {view.low[place]:.6g} to {view.high[place]:.6g})")


def _heat_map(figure: Figure, axes: Any, view: Scene, labels: list[str]) -> None:
    k, d = view.centers.shape
    axes.set_title(f"How do the {_centres(view)} differ in {d} features?", pad=16)
    positions = view.positions()
    image = axes.imshow(positions, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=axes, label=f"place between the {view.ends}", ticks=[0.0, 0.5, 1.0])
    axes.set_ylabel("centre" if view.sizes is None else "centre · weight")
    if k <= MOST_LABELS:
        axes.set_yticks(range(k), labels)
    if d <= MOST_LABELS:
        turn = 0 if d <= 6 and max(map(len, view.names)) <= 10 else 60
        axes.set_xticks(range(d), [_name(name) for name in view.names], rotation=turn, ha="right" if turn else "center")
    if k * d <= MOST_NUMBERS and d <= 12:
        for (row, column), position in np.ndenumerate(positions):
            colour = "white" if position < 0.5 else "black"
            axes.text(column, row, f"{view.centers[row, column]:.3g}", ha="center", va="center", color=colour, fontsize=8)


def _markers(axes: Any, view: Scene, heights: Any, labels: list[str]) -> None:
    """Centres as discs, area by weight, heavy ones first so that light ones stay visible; each with its label."""
    sizes = np.full(len(heights), 0.15) if view.sizes is None else view.sizes
    order = np.argsort(-sizes, kind="stable")
    areas = SMALLEST + (LARGEST - SMALLEST) * sizes
    across = view.centers[:, 0]
    look = {"color": BLUE, "alpha": 0.55, "edgecolor": "white", "linewidth": 1.0, "clip_on": False}
    axes.scatter(across[order], heights[order], s=areas[order], **look)
    if len(labels) > MOST_LABELS:
        return
    is_line = len(view.names) == 1
    for turn, place in enumerate(np.argsort(across, kind="stable")):
        side = -1 if is_line and turn % 2 else 1  # on a line, neighbours would write over each other
        lift = (0.0, side * (np.sqrt(areas[place]) / 2 + 2))  # in points: just outside the disc
        spot = {"xytext": lift, "textcoords": "offset points", "ha": "center", "va": "bottom" if side > 0 else "top"}
        axes.annotate(labels[place], (across[place], heights[place]), fontsize=8, color="#222222", **spot)


def _labels(release: Release) -> list[str]:
    """The number of every centre in the table, and its weight."""
    if release.weights is None:
        return [str(place) for place in range(len(release.centers))]
    return [f"{place} · {weight:.2f}" for place, weight in enumerate(release.weights)]


def _limits(limit: Any, view: Scene, place: int) -> None:
    """The public ends with a little room, so that a disc on the border is whole."""
    low, high = view.low[place], view.high[place]
    limit(low - 0.04 * (high / 2 - low / 2) * 2, high + 0.04 * (high / 2 - low / 2) * 2)


def _centres(view: Scene) -> str:
    return "centre" if len(view.centers) == 1 else f"{len(view.centers)} centres"


def _and_weight(view: Scene) -> str:
    if view.sizes is None:
        return ""
    return ", and how much weight has it" if len(view.centers) == 1 else ", and how much weight has each"


def _name(name: str) -> str:
    return printable(name, 24)
