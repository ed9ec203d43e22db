"""Pictures of a release, drawn from the release alone: in a terminal, or as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, radians
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kveil import _pictures
from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.release.answers import scaling_of
from kveil.release.words import printable

if TYPE_CHECKING:
    from kveil.release.release import Release

GLYPHS = ".oO@"  # plain ASCII, because a terminal may know no other characters
PLAIN = "o"
FLATTEST, TALLEST = 0.4, 2.0  # height of a map over its width; beyond, one axis would be a strip


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
    if release.n_features is None and release.places is None:
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
    """Centres (k, d), the ends (d,) of the axes, names (d,), and sizes (k,) in [0, 1] if weights were released.

    errors: (k, d) the standard error of every number, if known. ends: what the ends of the axes are. aspect: how long a unit of
    the second axis is beside one of the first, if they can be compared. is_whole: whether these are all columns of the release.
    is_map: whether the axes are places, whose directions must not be stretched.
    """

    centers: Floats
    low: Floats
    high: Floats
    names: tuple[str, ...]
    sizes: Floats | None
    ends: str
    errors: Floats | None = None
    aspect: float | None = None
    is_whole: bool = True
    is_map: bool = False

    @property
    def is_public(self) -> bool:
        """Whether the ends are bounds that were known before."""
        return self.ends == "public bounds"

    def positions(self) -> Floats:
        """Where centres lie between the ends: 0 is low, 1 is high."""
        return np.clip((self.centers / 2 - self.low / 2) / (self.high / 2 - self.low / 2), 0.0, 1.0)


def scene(release: Release, columns: Sequence[str | int] | None = None) -> Scene:
    """The scene of a release whose centres have coordinates; of some columns of it, if they are named."""
    if release.n_features is None:
        return _of_places(release)
    low, high, ends = _ends(release)
    names = release.features or tuple(f"x{place}" for place in range(release.centers.shape[1]))
    errors, sizes = release.verdict().column_errors, relative_sizes(release.weights)
    centers, is_whole = release.centers, True
    if columns is not None:
        chosen = _chosen(columns, names)
        names, low, high = tuple(names[place] for place in chosen), low[chosen], high[chosen]
        errors = None if errors is None else errors[:, chosen]
        centers, is_whole = centers[:, chosen], False
    aspect, is_map = _aspect(release, names, low, high), _are_degrees(names)
    return Scene(centers, low, high, names, sizes, ends, errors, aspect, is_whole, is_map)


def _of_places(release: Release) -> Scene:
    """Points of a universe that have coordinates."""
    if release.places is None:
        raise InvalidValue(
            "the centres of this release are indices of a universe and have no coordinates that could be drawn. If the universe "
            "has some, pass it: release.plot(universe=...)."
        )
    low, high = _margins(release.places)
    aspect = degrees_aspect(float(low[1] / 2 + high[1] / 2)) if is_geographic(release) else 1.0
    sizes = relative_sizes(release.weights)
    return Scene(release.places, low, high, place_names(release), sizes, "range of the centres", None, aspect, is_map=True)


def place_names(release: Release) -> tuple[str, ...]:
    """What the coordinates of centres are called that are points of a universe; empty if it has none."""
    d = 0 if release.places is None else release.places.shape[1]
    usual = ("longitude", "latitude") if is_geographic(release) else ("x", "y")
    return usual[:d] if d <= 2 else tuple(f"x{place}" for place in range(d))


def is_geographic(release: Release) -> bool:
    """Whether the coordinates of a universe were given as longitude and latitude."""
    told = release.parameters.get("universe")
    return isinstance(told, dict) and told.get("coordinates") == "degrees"


def _chosen(columns: Sequence[str | int], names: tuple[str, ...]) -> list[int]:
    if isinstance(columns, str) or not 1 <= len(columns) <= 2:
        raise InvalidValue('columns must name one or two columns of the release, such as columns=("age", "pay").')
    found = [names.index(one) if one in names else one for one in columns]
    if not all(isinstance(one, int) and 0 <= one < len(names) for one in found) or len(set(found)) < len(found):
        raise InvalidValue(f"columns must be different columns of the release, by name or number: {', '.join(names[:20])}.")
    return [int(one) for one in found]


def _aspect(release: Release, names: tuple[str, ...], low: Floats, high: Floats) -> float | None:
    """Degrees by their names; equal where distances are in the units of the data, unless one axis would vanish."""
    if len(names) != 2:
        return None
    if _are_degrees(names):
        return degrees_aspect(float(low[1] / 2 + high[1] / 2))
    ratio = float((high[1] / 2 - low[1] / 2) / (high[0] / 2 - low[0] / 2))
    return 1.0 if scaling_of(release.parameters) is None and FLATTEST <= ratio <= TALLEST else None


def _are_degrees(names: tuple[str, ...]) -> bool:
    """Whether these are longitude and latitude, by what they are called."""
    return len(names) == 2 and names[0].lower().startswith(("lon", "lng")) and names[1].lower().startswith("lat")


def degrees_aspect(latitude: float) -> float:
    """How much longer a degree of latitude is than one of longitude."""
    return 1 / max(cos(radians(min(abs(latitude), 85.0))), 1e-3)


def _ends(release: Release) -> tuple[Floats, Floats, str]:
    try:
        domain = release.domain()
    except InvalidValue:  # made without bounds: the centres themselves are all there is to go by
        return *_margins(release.centers), "range of the centres"
    return domain.center - domain.half, domain.center + domain.half, "public bounds"


def _margins(points: Floats) -> tuple[Floats, Floats]:
    least, most = points.min(axis=0), points.max(axis=0)
    margin = np.where(most > least, 0.0, np.maximum(np.abs(most), 1.0))
    return least - margin, most + margin


def relative_sizes(weights: Floats | None) -> Floats | None:
    if weights is None:
        return None
    positive = np.maximum(weights, 0.0)
    return positive / positive.max() if positive.max() > 0 else positive
