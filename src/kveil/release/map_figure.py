"""Centres at their place: on a line, in a plane, or on the map of a public graph, with how far noise may have moved each.

The ellipse of a centre holds the noise in it with the stated probability: its axes are the standard errors of the two columns
times sqrt(-2 log(1 - level)), the radius of a round Gaussian in the plane; on a line the bar is the usual normal quantile.
"""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Ellipse
from matplotlib.ticker import Formatter
from scipy.stats import norm

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.release.labelling import place
from kveil.release.look import BLUE, ORANGE, Look
from kveil.release.numbers import percents, ticks
from kveil.release.picture import FLATTEST, TALLEST, Scene
from kveil.release.sheet import Sheet, dress, finish, new_sheet, pixels
from kveil.release.shown import share_error
from kveil.release.synthetic import extent, has_density
from kveil.release.words import printable, shortened

if TYPE_CHECKING:
    from kveil.release.figure import Options
    from kveil.release.release import Release

BINS, MOST_BINS, LINE_BINS = 160, 1280, 160
SMALLEST, LARGEST = 40.0, 620.0  # areas of discs, in points squared
DOT = 3.2  # points: the middle of a centre
AVOIDED = 26.0  # pixels: labels keep clear of ellipses up to this size; larger ones leave no room beside them
MANY = 25  # centres, from which on labels are numbers alone
FEW_EDGES = 4000  # more are drawn as an image: an SVG of every road is slow to open
ROOM = 0.06  # of the frame, on every side
MOST = 0.8  # of the bounds: where centres and rows fill less of an axis, the picture shows that part
HEAT = LinearSegmentedColormap.from_list(
    "heat", [(*(int(BLUE[i : i + 2], 16) / 255 for i in (1, 3, 5)), alpha) for alpha in (0, 0.85)]
)


def draw(release: Release, view: Scene, look: Look, options: Options) -> Sheet:
    """The picture of centres with one or two coordinates."""
    if not 0 < options.level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, got {options.level!r}: 0.95 is usual.")
    is_line = len(view.names) == 1
    view, low, high = _framed(view, *(_window(release, view) if options.universe is None else _whole(options.universe, view)))
    sheet = new_sheet(look, *_size(view, low, high), is_adaptive=options.theme == "auto")
    axes = sheet.subplots()
    dress(axes, look)
    said = _ground(axes, release, view, look, options, low, high)
    heights = np.zeros(len(view.centers)) if is_line else view.centers[:, 1]
    (_on_a_line if is_line else _in_the_plane)(axes, view, look, low, high)
    if options.universe is not None:
        axes.grid(visible=False)  # beside roads its lines would look like some
    radii = _discs(axes, view, heights, look)
    errors, reach = _errors(axes, view, heights, options.level, look)
    below = finish(sheet, _title(view), release.guarantee, *said, errors, _cut(view, low, high))
    left_out = _labels(sheet, axes, view, heights, np.maximum(radii * sheet.dpi / 72, _in_pixels(axes, reach)), look, release)
    if left_out:
        below.set_text(f"{left_out} labels found no room and are left out. {below.get_text()}")
    return sheet


def _ground(axes: Any, release: Release, view: Scene, look: Look, options: Options, low: Floats, high: Floats) -> list[str]:
    """What lies behind the centres: where rows are, as far as noise tells, or the edges of the graph; returns the caption."""
    said = []
    if options.universe is not None:
        _edges(axes, options.universe)
        said.append("Lines: the public graph.")
    if view.is_whole and has_density(release):
        _density(axes, release, low, high)
        said.append("Blue: noisy shares of rows, as released.")
    if view.sizes is not None:
        share = "number of the centre" if len(view.centers) > MANY else "number of the centre and share of the rows near it"
        said.append(f"Labels: {share}. Area of a disc: its share.")
    return [" ".join(said)]


def _density(axes: Any, release: Release, low: Floats, high: Floats) -> None:
    lowest, highest = extent(release)
    share = float(((high - low) / (highest - lowest)).min())
    bins = LINE_BINS if len(low) == 1 else int(min(MOST_BINS, BINS / max(share, 1e-9)))
    mass = release.density(bins)
    if len(low) == 1:
        edges = np.linspace(lowest[0], highest[0], bins + 1)
        axes.stairs(0.85 * mass / mass.max(), edges, fill=True, color=BLUE, alpha=0.45, linewidth=0, zorder=0)
        return
    shade = np.sqrt(mass / np.quantile(mass[mass > 0], 0.995))  # roots, so that thin places show beside crowds
    box = (lowest[0], highest[0], lowest[1], highest[1])
    axes.imshow(
        np.minimum(shade, 1.0).T,
        extent=box,
        origin="lower",
        cmap=HEAT,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )


def _edges(axes: Any, graph: Any) -> None:
    tails = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = tails < graph.heads
    ends = np.stack([graph.points[tails[once]], graph.points[graph.heads[once]]], axis=1)
    thin = 0.9 if len(ends) <= FEW_EDGES else 0.35
    lines = LineCollection(list(ends), colors="#8a94a0", linewidths=thin, alpha=0.6, zorder=0)
    lines.set_rasterized(len(ends) > FEW_EDGES)
    axes.add_collection(lines, autolim=False)


def _on_a_line(axes: Any, view: Scene, look: Look, low: Floats, high: Floats) -> None:
    axes.axhline(0.0, color=look.muted, linewidth=0.8, zorder=0)
    axes.set_yticks([])
    axes.set_ylim(-1.0, 1.0)
    axes.spines["left"].set_visible(False)
    _axis(axes.xaxis, axes.set_xlim, view, 0, low, high)


def _in_the_plane(axes: Any, view: Scene, look: Look, low: Floats, high: Floats) -> None:
    left, right, bottom, top = view.low[0], view.high[0], view.low[1], view.high[1]
    frame = {"color": look.muted, "linewidth": 0.7, "linestyle": (0, (1, 3)), "zorder": 0}
    if view.is_public:
        axes.plot([left, right, right, left, left], [bottom, bottom, top, top, bottom], **frame)
    axes.grid(color=look.faint, linewidth=0.5, alpha=0.7)
    axes.set_axisbelow(True)
    _axis(axes.xaxis, axes.set_xlim, view, 0, low, high)
    _axis(axes.yaxis, axes.set_ylim, view, 1, low, high)
    if view.aspect is not None:
        axes.set_aspect(view.aspect, adjustable="box")


def _axis(axis: Any, limit: Any, view: Scene, place: int, low: Floats, high: Floats) -> None:
    """The ends of an axis with a little room, so that a disc on the border is whole; ticks as people write them."""
    room = 2 * ROOM * (high[place] / 2 - low[place] / 2)
    limit(low[place] - room, high[place] + room)
    axis.set_label_text(shortened(view.names[place], 48))
    axis.set_major_formatter(Ticks())


class Ticks(Formatter):
    """Marks as people write them."""

    def format_ticks(self, values: Any) -> list[str]:
        return ticks(values)

    def __call__(self, value: float, pos: int | None = None) -> str:
        return ticks([value])[0]


def _whole(graph: Any, view: Scene) -> tuple[Floats, Floats]:
    """The ends of a public graph; what is flat has those of the centres, which have a margin."""
    low, high = graph.points.min(axis=0), graph.points.max(axis=0)
    return np.where(high > low, low, view.low), np.where(high > low, high, view.high)


def _window(release: Release, view: Scene) -> tuple[Floats, Floats]:
    """What the picture shows: the public bounds, or, where centres and rows fill a part of them, that part.

    From released values alone: the centres, and cells that hold all but 0.2 % of the noisy counts on each side.
    """
    low, high = view.centers.min(axis=0), view.centers.max(axis=0)
    if view.is_whole and has_density(release):
        mass = release.density(BINS)
        lowest, highest = extent(release)
        edges = np.linspace(lowest, highest, BINS + 1)
        for side in range(len(low)):
            along = np.cumsum(mass.sum(axis=1 - side) if mass.ndim == 2 else mass)
            first, last = np.searchsorted(along, (0.002, 0.998))
            low[side] = min(low[side], edges[min(first, BINS - 1), side])
            high[side] = max(high[side], edges[min(last + 1, BINS), side])
    if len(view.centers) == 1 and not has_density(release):
        return view.low, view.high
    room = np.where(high > low, 0.12 * (high - low), 0.25 * (view.high - view.low))
    low, high = low - room, high + room
    if view.is_public:
        low, high = np.maximum(low, view.low), np.minimum(high, view.high)
        is_most = (high - low) > MOST * (view.high - view.low)
        low, high = np.where(is_most, view.low, low), np.where(is_most, view.high, high)
    return low, high


def _framed(view: Scene, low: Floats, high: Floats) -> tuple[Scene, Floats, Floats]:
    """No strips: where what is shown is far longer than wide, a map shows more around it, and other axes fill the frame."""
    if view.aspect is None or len(view.names) == 1:
        return view, low, high
    across, up = float(high[0] - low[0]), float(high[1] - low[1]) * view.aspect
    if FLATTEST * across <= up <= TALLEST * across:
        return view, low, high
    if not view.is_map:
        return replace(view, aspect=None), low, high
    wanted = np.array([max(across, up / TALLEST), max(up, across * FLATTEST) / view.aspect])
    middle = low / 2 + high / 2
    return view, middle - wanted / 2, middle + wanted / 2


def _size(view: Scene, low: Floats, high: Floats) -> tuple[float, float]:
    """Inches: a page as wide as its map, if that is tall."""
    if len(view.names) == 1:
        return 7.2, 3.0
    if view.aspect is None:
        return 7.2, 5.4
    ratio = float((high[1] - low[1]) * view.aspect / (high[0] - low[0]))
    if ratio > 1:
        return float(np.clip(6.4 / ratio + 1.2, 5.0, 7.2)), 8.2
    return 7.2, float(np.clip(6.2 * ratio + 1.8, 3.4, 8.2))


def _discs(axes: Any, view: Scene, heights: Floats, look: Look) -> Floats:
    """Centres as discs, area by weight, heavy ones first so that light ones stay visible; returns radii in points."""
    sizes = np.full(len(heights), 0.12) if view.sizes is None else view.sizes
    areas = SMALLEST + (LARGEST - SMALLEST) * sizes / (1 + max(0, len(sizes) - 12) / 40)
    order = np.argsort(-areas, kind="stable")
    across = view.centers[:, 0]
    axes.scatter(
        across[order],
        heights[order],
        s=areas[order],
        color=ORANGE,
        alpha=0.35,
        edgecolor=look.mark,
        linewidth=0.8,
        clip_on=False,
        zorder=3,
    )
    axes.scatter(across, heights, s=DOT**2, color=look.mark, linewidth=0, clip_on=False, zorder=5)
    return np.asarray(np.sqrt(areas / np.pi))


def _errors(axes: Any, view: Scene, heights: Floats, level: float, look: Look) -> tuple[str, Floats]:
    """An ellipse, or a bar, about every centre that holds the noise in it with probability `level`.

    Returns the caption, and how far each reaches in every direction.
    """
    if view.errors is None:
        return "", np.zeros((len(heights), 2))
    across, chance = view.centers[:, 0], percents([level])[0]
    if len(view.names) == 1:
        reach = float(norm.ppf(0.5 + level / 2)) * view.errors[:, 0]
        axes.hlines(heights, across - reach, across + reach, color=look.ink, linewidth=1.6, zorder=4)
        return f"Bars hold the noise in a centre with a probability of {chance}.", np.zeros((len(heights), 2))
    reach = sqrt(-2 * log(1 - level)) * view.errors
    for middle, size in zip(view.centers, reach, strict=True):
        shape = Ellipse(middle, *(2 * size), fill=False, edgecolor=look.ink, linewidth=1.1, zorder=4, clip_on=True)
        axes.add_patch(shape)
    text = f"Ellipses hold the noise in a centre with a probability of {chance}; where none is seen, it is smaller than the dot."
    return text, reach


def _in_pixels(axes: Any, reach: Floats) -> Floats:
    """(k,) the longer half of each ellipse, as far as labels keep clear of it."""
    longest = np.abs(axes.transData.transform(reach) - axes.transData.transform(np.zeros_like(reach))).max(axis=1)
    return np.asarray(np.minimum(longest, AVOIDED))


def _labels(sheet: Sheet, axes: Any, view: Scene, heights: Floats, radii: Floats, look: Look, release: Release) -> int:
    """The number of every centre in the table, and its share, where no label covers another; how many found no room."""
    scale = sheet.dpi / 72
    points = axes.transData.transform(np.column_stack([view.centers[:, 0], heights]))
    style = {"fontsize": 8 if len(points) <= 25 else 7, "color": look.ink, "ha": "center", "va": "center", "zorder": 7}
    ground = {"facecolor": look.paper, "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    written = label_texts(release) if len(points) <= MANY else [text.partition(" · ")[0] for text in label_texts(release)]
    texts = [axes.text(0, 0, text, transform=None, bbox=ground, clip_on=False, **style) for text in written]
    sizes = np.array([[box.width + 2, box.height + 2] for box in (pixels(sheet, text) for text in texts)])
    frame = axes.get_window_extent().padded(18 * scale).extents
    weights = np.zeros(len(points)) if view.sizes is None else view.sizes
    placed = place(points, sizes, radii, np.asarray(frame), np.argsort(-weights, kind="stable"))
    for text, box, point, is_shown, is_far in zip(texts, placed.boxes, points, placed.is_shown, placed.is_far, strict=True):
        if not is_shown:
            text.remove()
            continue
        middle = (box[:2] + box[2:]) / 2
        text.remove()
        away = (middle - point) / scale
        line = {"arrowstyle": "-", "color": look.muted, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2} if is_far else None
        data = axes.transData.inverted().transform(point)
        axes.annotate(
            text.get_text(),
            data,
            xytext=away,
            textcoords="offset points",
            annotation_clip=False,
            arrowprops=line,
            bbox=ground,
            **style,
        ).set_gid("label")
    return int((~placed.is_shown).sum())


def label_texts(release: Release) -> list[str]:
    """The number of every centre, its name if it has one, and its share of the rows."""
    names = [printable(name, 24) for name in release.names] if release.names else [str(i) for i in range(len(release.centers))]
    if release.weights is None:
        return names
    return [f"{name} · {share}" for name, share in zip(names, percents(release.weights, share_error(release)), strict=True)]


def _title(view: Scene) -> str:
    k = len(view.centers)
    what = "centre" if k == 1 else f"{k} centres"
    weight = "" if view.sizes is None else f", and how much weight has {'it' if k == 1 else 'each'}"
    where = f"Where along {shortened(view.names[0], 40)}" if len(view.names) == 1 else "Where"
    return f"{where} {'is' if k == 1 else 'are'} the {what}{weight}?"


def _cut(view: Scene, low: Floats, high: Floats) -> str:
    """What the axes show."""
    texts = []
    for side, name in enumerate(view.names):
        ends = ticks([view.low[side], view.high[side]])
        texts.append(f"{shortened(name, 30)} {ends[0]} to {ends[1]}")
    if not view.is_public:
        return ""
    is_cut = bool((low > view.low).any() or (high < view.high).any())
    return f"{view.ends.capitalize()}: {', '.join(texts)}{'; the picture shows a part of them' if is_cut else ''}."
