"""`make docs-pictures`: the pictures of "What epsilon means" and "How it works", drawn by the code that they explain.

Rows are made up, and noise is scripted, so that the pictures stay the same; no number of theirs is a guarantee. The picture of
the tutorial is drawn by `make docs-outputs`, from the release whose numbers the page shows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from kveil import Graph, PrivateKMeans, PrivateKMedian, testing
from tools.docs.baseline_pictures import grid, mean, sample_aggregate
from tools.docs.drawing import BLUE, DENSITY, GREEN, INK, ORANGE, PURPLE, STYLE, bare, panels, save
from tools.docs.method_pictures import candidates, federation, spherical, stream
from tools.docs.town import city

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def belief() -> Figure:
    """How sure can an attacker become?"""
    figure, axes = panels(1)
    epsilon = np.geomspace(0.05, 10, 200)
    for prior, above, colour in [(0.5, 7, BLUE), (0.1, 4, ORANGE), (0.01, 3, GREEN)]:
        odds = prior / (1 - prior) * np.exp(epsilon)
        axes.plot(epsilon, 100 * odds / (1 + odds), color=colour, lw=2)
        axes.text(0.052, 100 * prior + above, f"{100 * prior:g} % sure before", color=colour)
    axes.plot([1], [73.1], "o", color=BLUE)
    axes.annotate("epsilon 1: from 50 % to at most 73.2 %", (1, 73.1), (0.12, 84), arrowprops={"arrowstyle": "-", "color": INK})
    axes.set(xscale="log", ylim=(0, 102), xlabel="epsilon", ylabel="sure afterwards, at most (%)", xticks=[0.1, 0.3, 1, 3, 10])
    axes.set_xticklabels(["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    return figure


def two_laws() -> Figure:
    """The same answer, with and without one person."""
    figure, both = panels(2, sharey=True)
    for axes, epsilon in zip(both, (0.5, 2.0), strict=True):
        values = np.arange(92, 110)
        for shift, colour, label in [(0, BLUE, "without you"), (1, ORANGE, "with you")]:
            p = np.exp(-epsilon * abs(values - 100 - shift))
            axes.step(values, p / p.sum(), where="mid", color=colour, lw=2, label=label)
        axes.set(title=f"epsilon {epsilon:g}: at most {np.exp(epsilon):.2f} times as likely", xlabel="noisy number of people")
        axes.set_xticks([95, 100, 105])
    both[0].set(ylabel="probability")
    both[0].legend(loc="upper right")
    return figure


def trust() -> Figure:
    """Where the noise is added, in the four trust models."""
    figure, axes = panels(1, height=4.2)
    axes.set(xlim=(0, 4), ylim=(-0.65, 3.2))
    axes.axis("off")
    models = [("curator", "holder", "one table,\nseen by its holder"),
              ("federation", "party", "several tables,\neach seen by its party"),
              ("stream", "operator", "rows pass by\nand are not kept"),
              ("local", "collector", "nobody sees\na true value")]  # fmt: skip
    for i, (name, who, sees) in enumerate(models):
        x = i + 0.5
        axes.text(x, 3.05, name, ha="center", fontsize=13, fontweight="bold")
        for place in (-0.28, 0, 0.28):
            axes.plot(x + place, 2.6, "o", color=BLUE, ms=10)
            noisy = name == "local"
            axes.add_patch(FancyArrowPatch((x + place, 2.45), (x + (place if name == "federation" else place / 4), 1.95),
                           arrowstyle="->", mutation_scale=9, color=ORANGE if noisy else INK, lw=2 if noisy else 1))  # fmt: skip
        for place in (-0.28, 0, 0.28) if name == "federation" else (0,):
            wide = 0.095 if name == "federation" else 0.3
            box = FancyBboxPatch((x + place - wide, 1.55), 2 * wide, 0.3, boxstyle="round,pad=0.03", fc="none", ec=INK)
            axes.add_patch(box)
            axes.text(x + place, 1.7, who, ha="center", va="center_baseline")
            noisy = name != "local"
            axes.add_patch(FancyArrowPatch((x + place, 1.5), (x + place / 4, 1.0), arrowstyle="->", mutation_scale=9,
                           color=ORANGE if noisy else INK, lw=2 if noisy else 1))  # fmt: skip
        axes.text(x, 0.82, "release", ha="center", va="center")
        axes.text(x, 0.27, sees, ha="center", va="center")
    axes.text(0.1, -0.28, "blue: people", color=BLUE, va="center")
    axes.text(0.1, -0.55, "orange: noise is added on this way", color=ORANGE, va="center")
    return figure


def tree() -> Figure:
    """The default method, step by step."""
    rows = city()
    with testing.scripted(3):
        release = PrivateKMeans(4, epsilon=1.0, bounds=(0, 10), random_state=0).fit(rows).release_
    figure, (first, second, third) = panels(3, height=3.5)
    first.plot(*rows.T, ".", ms=1.5, color=BLUE, alpha=0.5, rasterized=True)
    first.set_title("1. rows, never seen outside")
    share = release.density(bins=48)
    second.imshow(share.T, origin="lower", extent=(0, 10, 0, 10), cmap=DENSITY, vmax=np.quantile(share, 0.995))
    second.set_title("2. noisy counts of cells")
    third.imshow(share.T, origin="lower", extent=(0, 10, 0, 10), cmap=DENSITY, vmax=2 * np.quantile(share, 0.995))
    third.plot(*release.centers.T, "o", color=ORANGE, ms=9, mec="white")
    third.set_title("3. centres, after noisy steps")
    for axes in (first, second, third):
        bare(axes)
        axes.set(xlim=(0, 10), ylim=(0, 10))
    return figure


def lloyd() -> Figure:
    """DP-Lloyd: the same steps at three budgets."""
    rows = city()
    start = np.array([[3.0, 5.0], [7.0, 5.0], [5.0, 8.0], [5.0, 2.0]])
    figure, three = panels(3, height=3.5)
    for axes, epsilon in zip(three, (0.1, 0.4, 2.0), strict=True):
        path = [start]
        for steps in range(1, 6):
            with testing.scripted(12):
                model = PrivateKMeans(
                    4, epsilon=epsilon * steps / 5, bounds=(0, 10), method="lloyd", init=start, n_steps=steps, random_state=0
                )
                path.append(model.fit(rows).cluster_centers_)
        axes.plot(*rows.T, ".", ms=1.2, color=BLUE, alpha=0.35, rasterized=True)
        for way in np.clip(np.array(path), 0, 10).transpose(1, 0, 2):
            axes.plot(*way.T, "-", color=ORANGE, lw=1.6)
            axes.plot(*way[0], "s", color=ORANGE, ms=5, mfc="none")
            axes.plot(*way[-1], "o", color=ORANGE, ms=8, mec="white")
        axes.set_title(f"epsilon {epsilon:g}")
        bare(axes)
        axes.set(xlim=(0, 10), ylim=(0, 10))
    return figure


def graph() -> Figure:
    """k-median on a map: public cells, noisy counts, stops."""
    side, rng = 18, np.random.default_rng(2)
    number = np.arange(side * side).reshape(side, side)
    edges = np.concatenate([np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
                            np.column_stack([number[:-1].ravel(), number[1:].ravel()])])  # fmt: skip
    edges = edges[rng.random(len(edges)) < 0.88]
    town = Graph.from_edges(edges, truncate=40)
    spots = np.concatenate([rng.normal(place, 1.6, (500, 2)) for place in ([4, 4], [13, 6], [8, 14])])
    x, y = np.clip(spots.round(), 0, side - 1).astype(int).T
    xy = np.column_stack([np.arange(town.n_points) % side, np.arange(town.n_points) // side])
    with testing.scripted(5):
        model = PrivateKMedian(3, universe=town, epsilon=1.0, random_state=0).fit(number[y, x])
    figure, both = panels(2, height=4)
    for axes in both:
        axes.add_collection(LineCollection(xy[edges], color="#888888", alpha=0.5, lw=0.8, rasterized=True))
        bare(axes)
    people = np.bincount(number[y, x], minlength=side * side)
    both[0].scatter(*xy.T, s=3 * people, color=BLUE, alpha=0.7, lw=0, rasterized=True)
    both[0].set_title("people (private) on roads (public)")
    owner = town.nearest(model.center_indices_)[0]
    both[1].scatter(*xy.T, s=45, c=np.array([BLUE, GREEN, PURPLE])[owner], alpha=0.75, lw=0, rasterized=True)
    both[1].plot(*xy[model.center_indices_].T, "o", color=ORANGE, ms=11, mec="white")
    both[1].set_title("released: stops, and whom they serve")
    return figure


def local() -> Figure:
    """The local model: what leaves a device, and what all devices together tell."""
    rng = np.random.default_rng(8)
    grid, epsilon, n = 12, 2.0, 60_000
    rows = np.clip(np.concatenate([rng.normal(place, 0.9, (n // 3, 2)) for place in ([3, 3], [7.5, 4], [5, 8])]), 0, 9.99)
    cell = (rows * grid / 10).astype(int) @ [grid, 1]
    stay = np.exp(epsilon) / (np.exp(epsilon) + grid * grid - 1)
    sent = np.where(rng.random(n) < stay, cell, rng.integers(0, grid * grid, n))
    counts = np.bincount(sent, minlength=grid * grid)
    keep, other = stay + (1 - stay) / grid**2, (1 - stay) / grid**2
    estimate = (counts - n * other) / (keep - other)
    figure, three = panels(3, height=3.5)
    true = np.bincount(cell, minlength=grid**2)
    shown = [(true, "true cells, on no computer"), (counts, "reports, as they arrive"), (estimate, "what they tell together")]
    for axes, (values, title) in zip(three, shown, strict=True):
        table = values.reshape(grid, grid).T
        axes.imshow(table, origin="lower", cmap=DENSITY, vmin=0 if values is not counts else table.min())
        axes.set_title(title)
        bare(axes)
    return figure


def budget() -> Figure:
    """A ledger adds up."""
    figure, axes = panels(1, height=1.7)
    left = 0.0
    for size, label, colour in [(0.5, "bounds 0.5", GREEN), (1.0, "March fit 1", BLUE), (1.0, "June fit 1", BLUE)]:
        axes.barh(0, size, left=left, color=colour, edgecolor="white", height=0.5)
        axes.text(left + size / 2, 0, label, ha="center", va="center", color="white")
        left += size
    axes.barh(0, 0.5, left=left, color="none", edgecolor=INK, height=0.5, ls="--")
    axes.text(left + 0.25, 0, "left 0.5", ha="center", va="center")
    axes.set(yticks=[], ylim=(-0.4, 0.4), xlim=(0, 3), xlabel="epsilon spent on the same people, limit 3")
    axes.spines["left"].set_visible(False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "epsilon-belief": belief, "epsilon-two-laws": two_laws, "epsilon-budget": budget, "how-trust": trust, "how-tree": tree,
    "how-lloyd": lloyd, "how-graph": graph, "how-local": local, "how-federation": federation, "how-stream": stream,
    "how-spherical": spherical, "how-candidates": candidates, "how-grid": grid, "how-sample-aggregate": sample_aggregate,
    "how-mean": mean,
}  # fmt: skip


def draw(folder: Path, names: list[str]) -> None:
    """Pictures by name; without names all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for name in names or PICTURES:
            save(PICTURES[name](), folder / f"{name}.svg")


if __name__ == "__main__":
    draw(FOLDER, sys.argv[1:])
