"""Pictures of "How it works" for a federation, a stream, directions and candidates. The models find the centres."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.sparse import csr_array

from kveil import FederatedKMeans, Ledger, PrivateKMeans, StreamKMeans, private_candidates, testing
from tools.docs.drawing import BLUE, DENSITY, GREEN, INK, ORANGE, PURPLE, panels
from tools.docs.maps import CELLS, TINY, cells, centres, dots, frame
from tools.docs.town import city, counts, noisy


def federation() -> Figure:
    """Three parties: what they hold, what they tell, what is made of it."""
    rows = city()
    where = rows[:, 0] + np.random.default_rng(1).normal(0, 2.0, len(rows))  # neighbourhoods, with some travel between them
    parties = [rows[where < 3.2], rows[(where >= 3.2) & (where < 6.2)], rows[where >= 6.2]]
    with testing.scripted(3):
        model = FederatedKMeans(4, epsilon=1.0, bounds=(0, 10), random_state=0).fit(parties)
    figure = Figure(figsize=(9.6, 4.5), layout="constrained")
    grid = figure.add_gridspec(2, 5, width_ratios=[1, 1, 1, 0.12, 2.06])
    told = [noisy(counts(own, CELLS), TINY, seed) for seed, own in enumerate(parties)]
    for place, (own, name, colour) in enumerate(zip(parties, ("north", "south", "east"), (BLUE, GREEN, PURPLE), strict=True)):
        above, below = figure.add_subplot(grid[0, place]), figure.add_subplot(grid[1, place])
        dots(above, own, colour)
        above.set_title(name, color=colour)
        cells(below, told[place], float(told[place].max()))
        if not place:
            above.set_ylabel("rows stay")
            below.set_ylabel("noisy counts go")
    last = figure.add_subplot(grid[:, 4])
    total = sum(told)
    cells(last, total, 1.3 * float(total.max()))
    centres(last, model.cluster_centers_)
    last.set_title("added up: sum and centres")
    return figure


def stream() -> Figure:
    """Three days, and the release after them."""
    rows = city()
    order = np.argsort(rows[:, 1] + np.random.default_rng(3).normal(0, 2.5, len(rows)))  # crowds come at different times
    days = np.array_split(rows[order], 3)
    with testing.scripted(3):
        model = StreamKMeans(4, epsilon=1.0, bounds=(0, 10), random_state=0)
        for day in days:
            model.partial_fit(day)
        model.finish()
    figure, four = panels(4, height=3.1)
    most = float(counts(rows, CELLS).max())
    for place, (axes, day) in enumerate(zip(four, days, strict=False)):
        if place:
            cells(axes, counts(np.concatenate(days[:place]), CELLS), most)
        dots(axes, day, GREEN)
        axes.set_title(f"day {place + 1}")
    four[0].set_xlabel("rows of the day")
    four[1].set_xlabel("blue: counted before")
    four[2].set_xlabel("the rows are forgotten")
    table = noisy(counts(rows, CELLS), TINY, 5)
    cells(four[3], table, 1.3 * float(table.max()))
    centres(four[3], model.cluster_centers_)
    four[3].set_title("finish: noise, once")
    four[3].set_xlabel("only centres leave")
    return figure


def spherical() -> Figure:
    """Directions: lengths do not count, few columns matter, and noisy sums point the way."""
    figure, (first, second, third) = panels(3, height=3.7)
    rng = np.random.default_rng(1)
    angles, lengths = np.deg2rad(rng.normal(np.repeat([14, 45, 76], 130), 6)), rng.gamma(5.0, 0.18, 390)
    texts = np.column_stack([np.cos(angles), np.sin(angles)]) * np.maximum(lengths, 0.15)[:, None]
    texts = texts[lengths < 1.5]  # so that none lies on the words above
    first.plot(*texts.T, ".", ms=4.5, color=BLUE, alpha=0.6, mew=0, rasterized=True)
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    first.plot(*units.T, ".", ms=5, color=GREEN, alpha=0.5, mew=0, rasterized=True)
    first.set(xlim=(0, 1.9), ylim=(0, 1.9), xticks=[], yticks=[], aspect="equal", xlabel="one word", ylabel="another word")
    first.text(0.06, 1.86, "blue: texts, long and short", color=BLUE, va="top")
    first.text(0.06, 1.7, "green: their directions", color=GREEN, va="top")
    first.set_title("1. only directions count")

    words, topic = 60, np.repeat(np.arange(3), 2000)
    often = np.full((3, words), 0.01)
    for theme in range(3):
        often[theme, 4 + 6 * theme : 9 + 6 * theme] = 0.55
    said = rng.random((len(topic), words)) < often[topic]
    said[:, 25] |= ~said.any(axis=1)
    total = (said / np.linalg.norm(said, axis=1, keepdims=True)).sum(axis=0)
    told = total + np.random.default_rng(2).normal(0, 45, words)
    line = 135
    second.bar(np.arange(words), told, width=0.8, color=[ORANGE if value > line else BLUE for value in told])
    second.axhline(line, color=INK, lw=1, ls="--")
    second.text(words - 1, line + 25, "above: stands out\nfrom the noise", ha="right")
    second.set(xticks=[], yticks=[0], xlabel="words (columns)", ylabel="noisy total", box_aspect=1)
    second.set_title("2. few columns matter")

    with testing.scripted(3):
        model = PrivateKMeans(3, epsilon=1.0, delta=1e-6, metric="cosine", method="spherical", random_state=0)
        model.fit(csr_array(said.astype(float)))
    shown = model.cluster_centers_[:, :24]
    shown = shown[np.argsort(shown.argmax(axis=1))]
    third.imshow(shown, cmap=DENSITY, vmin=0, aspect="auto")
    third.set(
        yticks=range(3), yticklabels=["centre 1", "centre 2", "centre 3"], xticks=[], xlabel="the first 24 words", box_aspect=1
    )
    for side in third.spines.values():
        side.set(visible=True, alpha=0.3)
    third.set_title("3. noisy sums: centres")
    return figure


def candidates() -> Figure:
    """Cubes that many rows share, swaps among their middles, and means."""
    rows = city()
    with testing.scripted(3):
        ledger = Ledger.memory("picture", 1.0, relation="add-remove")
        found = private_candidates(rows, 1.0, ledger=ledger, n_clusters=4, bounds=(0, 10), random_state=0)
        model = PrivateKMeans(4, epsilon=1.0, bounds=(0, 10), method="candidates", random_state=0).fit(rows)
    figure, (first, second, third) = panels(3, height=3.7)
    dots(first, rows)
    _halved(first, rows)
    first.set_title("1. crowded cubes are halved")
    points = np.clip(found.points, 0, 10)
    dots(second, rows)
    second.plot(*points.T, "D", color=GREEN, ms=5, mec="white", clip_on=False)
    second.set_title("2. middles of crowded cubes")
    frame(third)
    third.plot(*points.T, "D", color=GREEN, ms=4, alpha=0.65, mew=0, clip_on=False)
    centres(third, model.cluster_centers_)
    third.set_title("3. swaps choose, means follow")
    return figure


def _halved(axes: Any, rows: Any) -> None:
    """A shifted partition into cubes; those that noisy counts show to be crowded are cut once more, and again."""
    corners, side = [(x, y) for x in (-1.9, 1.1, 4.1, 7.1) for y in (-1.1, 1.9, 4.9, 7.9)], 3.0
    rng = np.random.default_rng(7)
    for colour, width in ((ORANGE, 1.8), (GREEN, 1.2), (PURPLE, 0.8)):
        for x, y in corners:
            axes.add_patch(Rectangle((x, y), side, side, fill=False, ec=colour, lw=width, alpha=0.9))
        inside = [((rows >= corner) & (rows < np.add(corner, side))).all(axis=1).sum() + rng.laplace(0, 4) for corner in corners]
        crowded = [corner for corner, count in zip(corners, inside, strict=True) if count > 150]
        side /= 2
        corners = [(x + i * side, y + j * side) for x, y in crowded for i in (0, 1) for j in (0, 1)]
