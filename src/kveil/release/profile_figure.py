"""How centres differ in many columns: every number, coloured by how far it lies from the weighted mean of all centres.

Colours are in units of the spread of the centres in that column, blue below and orange above, so that every column uses the whole
scale whatever its unit. A number is muted, without colour, where noise alone could explain its distance from the mean (two
standard errors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from kveil.arrays import Bools, Floats
from kveil.release.card import categories_of
from kveil.release.look import BLUE, ORANGE, Look
from kveil.release.map_figure import label_texts
from kveil.release.numbers import MINUS, column, of_level, percents
from kveil.release.picture import Scene
from kveil.release.sheet import Sheet, dress, finish, new_sheet
from kveil.release.words import shortened

if TYPE_CHECKING:
    from kveil.release.release import Release

MOST_ACROSS, MOST_DOWN = 14, 64  # cells with a number in them
MOST_NAMED = 120
ENDS = 2.0  # spreads, at which colours are full
SIGMAS = 2.0
WIDE, NARROW, HIGH, LOW = 0.66, 0.16, 0.27, 0.12  # inches of a cell
LEFT_OUT = "Numbers are left out: there are too many to read."


def _faded(colour: str, alpha: float) -> tuple[float, float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue, alpha


DIVERGING = LinearSegmentedColormap.from_list(
    "kveil", [(0.0, _faded(BLUE, 0.6)), (0.5, _faded(BLUE, 0.0)), (0.5, _faded(ORANGE, 0.0)), (1.0, _faded(ORANGE, 0.6))]
)


class Profile(NamedTuple):
    """Distances (k, d) from the weighted mean, in spreads; texts (k, d); and which differ by more than noise, if known."""

    away: Floats
    texts: list[list[str]]
    is_sure: Bools | None


def profile(release: Release, view: Scene) -> Profile:
    """What the picture shows, number by number."""
    weights = np.ones(len(view.centers)) if release.weights is None else np.maximum(release.weights, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
    mean = weights @ view.centers
    spread = np.sqrt(weights @ (view.centers - mean) ** 2)
    scale = np.abs(view.centers).max(axis=0)
    away = np.where(spread > 1e-12 * scale, (view.centers - mean) / np.where(spread > 0, spread, 1.0), 0.0)
    sure = None if view.errors is None else np.abs(view.centers - mean) > SIGMAS * view.errors
    return Profile(away, _texts(release, view), sure)


def draw(release: Release, view: Scene, look: Look, *, is_adaptive: bool) -> Sheet:
    """The picture. The longer of centres and columns goes down the page, where names are read without turning the head."""
    shown, (k, d) = profile(release, view), view.centers.shape
    columns_down = d > k or d > 8
    names = [shortened(name, 28) for name in view.names]
    marks = label_texts(release)
    across, down = (marks, names) if columns_down else (names, marks)
    away = shown.away if shown.is_sure is None else np.where(shown.is_sure, shown.away, 0.0)
    away = away.T if columns_down else away
    has_numbers = len(across) <= MOST_ACROSS and len(down) <= MOST_DOWN
    wide = WIDE if has_numbers else max(NARROW, min(WIDE, 7.0 / len(across)))
    high = HIGH if has_numbers else max(LOW, min(HIGH, 12.0 / len(down)))
    margin = 0.6 + 0.075 * max(map(len, down))
    width = max(6.4, margin + wide * len(across) + 0.3)
    wide = max(wide, (width - margin - 0.3) / len(across))  # few columns share the page
    sheet = new_sheet(look, width, 1.9 + high * len(down), is_adaptive=is_adaptive)
    axes = sheet.subplots()
    dress(axes, look)
    ends = (-ENDS, ENDS)
    image = axes.imshow(away, cmap=DIVERGING, vmin=ends[0], vmax=ends[1], aspect="auto", interpolation="nearest")
    _ticks(axes, across, down, wide)
    if has_numbers:
        _numbers(axes, shown, look, columns_down)
    _scale(sheet, axes, image, look)
    what = "centre" if k == 1 else f"{k} centres"
    title = f"How {'does' if k == 1 else 'do'} the {what} differ in {d} columns?"
    finish(sheet, title, release.guarantee, _said(shown, has_numbers))
    return sheet


def _said(shown: Profile, has_numbers: bool) -> str:
    """What a reader must know of numbers that noise may have made."""
    if shown.is_sure is None or shown.is_sure.all():
        return "" if has_numbers else LEFT_OUT
    if has_numbers:
        return "Muted numbers without colour: noise alone could explain how far they are from the mean (two standard errors)."
    share = percents([float(1 - shown.is_sure.mean())])[0]
    return f"{LEFT_OUT} Without colour: noise alone could explain {share} of the cells (two standard errors)."


def _ticks(axes: Any, across: list[str], down: list[str], wide: float) -> None:
    axes.xaxis.tick_top()
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    longest = max(map(len, across))
    fits = longest * 0.068 <= wide
    small = 8 if wide > 0.2 else 6
    if len(across) <= MOST_NAMED:
        slanted = {"rotation": 50 if wide > 0.3 else 90, "ha": "left", "va": "center", "rotation_mode": "anchor"}
        turn = {} if fits else slanted
        axes.set_xticks(range(len(across)), across, fontsize=small, **turn)
    else:
        axes.set_xticks([])
    if len(down) <= MOST_NAMED:
        axes.set_yticks(range(len(down)), down, fontsize=8 if len(down) <= MOST_DOWN else 6)
    else:
        axes.set_yticks([])


def _numbers(axes: Any, shown: Profile, look: Look, columns_down: bool) -> None:
    for place, row in enumerate(shown.texts):
        for number, text in enumerate(row):
            x, y = (place, number) if columns_down else (number, place)
            is_sure = shown.is_sure is None or bool(shown.is_sure[place, number])
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=look.ink if is_sure else look.muted).set_gid(
                "number"
            )


def _scale(sheet: Sheet, axes: Any, image: Any, look: Look) -> None:
    bar = sheet.colorbar(image, ax=axes, location="bottom", shrink=0.5, aspect=30, pad=0.02, ticks=[-2, -1, 0, 1, 2])
    bar.set_label("from the weighted mean of all centres, in units of their spread", color=look.muted, fontsize=8)
    bar.ax.set_xticklabels([f"{MINUS}2 or less", f"{MINUS}1", "0", "1", "2 or more"])
    bar.ax.tick_params(colors=look.muted, labelsize=8, length=0)
    bar.outline.set_edgecolor(look.faint)
    bar.ax.set_facecolor("none")  # its colours are translucent, as those of the cells are


def _texts(release: Release, view: Scene) -> list[list[str]]:
    """Every number as people write it; levels of a category as shares."""
    k, d = view.centers.shape
    columns = [column(view.centers[:, place], None if view.errors is None else view.errors[:, place]) for place in range(d)]
    for block in categories_of(release):
        for place in block.places:
            errors = [None] * k if view.errors is None else view.errors[:, place].tolist()
            pairs = zip(view.centers[:, place].tolist(), errors, strict=True)
            columns[place] = [of_level(value, error, block.high) for value, error in pairs]
    return [[columns[place][row] for place in range(d)] for row in range(k)]
