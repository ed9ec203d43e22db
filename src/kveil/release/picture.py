"""Pictures of a release, drawn from the release alone: in a terminal, or as a file."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kveil import _pictures
from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.release.words import printable

if TYPE_CHECKING:
    from kveil.release.release import Release

GLYPHS = ".oO@"  # plain ASCII, because a terminal may know no other characters
PLAIN = "o"


def text_picture(release: Release, width: int = 64, height: int = 20) -> str:
    """Where the centres are, for a terminal: at most `width` columns and `height` lines.

    The first two features, or one on a line; larger glyphs carry more weight.
    """
    if width < 24 or height < 8:
        raise InvalidValue("a picture needs at least 24 columns and 8 lines.")
    lines = _listed(release, height) if release.n_features is None else scene_lines(scene(release), width, height)
    return "\n".join(printable(line.rstrip(), width) for line in lines)


def scene_lines(view: Scene, width: int = 64, height: int = 20) -> list[str]:
    """The first two features in a frame, or one on a line."""
    return _on_a_line(view, width) if len(view.names) == 1 else _in_the_plane(view, width, height)


def save_picture(release: Release, path: str | PathLike[str]) -> Path:
    """Draw the release into an SVG or PNG file, by its suffix; needs matplotlib: pip install "kveil[report]".

    One or two features: the centres at their place, larger with more weight. More: a heat map of centres and features.
    """
    if release.n_features is None:
        raise InvalidValue("the centres of this release are indices of a universe and have no coordinates that could be drawn.")
    return _pictures.save("kveil.release.figure", release, Path(path))


def _in_the_plane(view: Scene, width: int, height: int) -> list[str]:
    left = [_end(view.high[1]), _end(view.low[1])]
    margin = max(map(len, left)) + 1
    columns, rows = width - margin - 2, height - 5
    canvas = [[" "] * columns for _ in range(rows)]
    hidden = 0
    for place in _small_first(view):
        x, y = view.positions()[place, :2]
        row, column = rows - 1 - round(y * (rows - 1)), round(x * (columns - 1))
        hidden += canvas[row][column] != " "
        canvas[row][column] = _glyph(view, place)
    labels = {0: left[0], rows - 1: left[1]}
    frame = " " * margin + "+" + "-" * columns + "+"
    body = [f"{labels.get(row, ''):>{margin - 1}} |{''.join(cells)}|" for row, cells in enumerate(canvas)]
    up = f"{printable(view.names[1], width // 2)} (up)"
    axis = " " * margin + _axis(view, columns + 2)
    return [up, frame, *body, frame, axis, _legend(view, hidden)]


def _on_a_line(view: Scene, width: int) -> list[str]:
    cells, hidden = [" "] * width, 0
    for place in _small_first(view):
        column = round(view.positions()[place, 0] * (width - 1))
        hidden += cells[column] != " "
        cells[column] = _glyph(view, place)
    return ["".join(cells), "+" + "-" * (width - 2) + "+", _axis(view, width), _legend(view, hidden)]


def _listed(release: Release, height: int) -> list[str]:
    shown = release.centers[: height - 2]
    weights = [""] * len(shown) if release.weights is None else [f"  weight {weight:.3g}" for weight in release.weights]
    lines = ["Centres, points of a public universe by index:"]
    lines += [f"  {index}{weight}" for index, weight in zip(shown.tolist(), weights, strict=False)]
    left = len(release.centers) - len(shown)
    return [*lines, f"  and {left} more"] if left else lines


def _small_first(view: Scene) -> list[int]:
    """The order of drawing: where two share a cell, the heavier one is seen."""
    if view.sizes is None:
        return list(range(len(view.centers)))
    return [int(place) for place in np.argsort(view.sizes, kind="stable")]


def _glyph(view: Scene, place: int) -> str:
    if view.sizes is None:
        return PLAIN
    breadth = float(np.sqrt(view.sizes[place]))  # an area means the weight, as in the figure
    return GLYPHS[min(int(breadth * len(GLYPHS)), len(GLYPHS) - 1)]


def _axis(view: Scene, width: int) -> str:
    """The ends of the first axis, its name between them."""
    low, high = _end(view.low[0]), _end(view.high[0])
    room = width - len(low) - len(high)
    return low + printable(view.names[0], room - 2).center(room) + high


def _legend(view: Scene, hidden: int) -> str:
    parts = ["o a centre" if view.sizes is None else f"{' '.join(GLYPHS)} by weight"]
    if len(view.names) > 2:
        parts.append(f"2 of {len(view.names)} features")
    if hidden:
        parts.append(f"{hidden} hidden")
    return ", ".join(parts)


def _end(value: float) -> str:
    return f"{value:.6g}"


@dataclass(frozen=True)
class Scene:
    """Centres (k, d), the ends (d,) of the axes, names (d,), and sizes (k,) in [0, 1] if weights were released."""

    centers: Floats
    low: Floats
    high: Floats
    names: tuple[str, ...]
    sizes: Floats | None
    ends: str  # what the ends of the axes are

    def positions(self) -> Floats:
        """Where centres lie between the ends: 0 is low, 1 is high."""
        return np.clip((self.centers / 2 - self.low / 2) / (self.high / 2 - self.low / 2), 0.0, 1.0)


def scene(release: Release) -> Scene:
    """The scene of a release whose centres have coordinates."""
    low, high, ends = _ends(release)
    names = release.features or tuple(f"x{place}" for place in range(release.centers.shape[1]))
    return Scene(release.centers, low, high, names, relative_sizes(release.weights), ends)


def _ends(release: Release) -> tuple[Floats, Floats, str]:
    try:
        domain = release.domain()
    except InvalidValue:  # made without bounds: the centres themselves are all there is to go by
        least, most = release.centers.min(axis=0), release.centers.max(axis=0)
        margin = np.where(most > least, 0.0, np.maximum(np.abs(most), 1.0))
        return least - margin, most + margin, "range of the centres"
    return domain.center - domain.half, domain.center + domain.half, "public bounds"


def relative_sizes(weights: Floats | None) -> Floats | None:
    if weights is None:
        return None
    positive = np.maximum(weights, 0.0)
    return positive / positive.max() if positive.max() > 0 else positive
