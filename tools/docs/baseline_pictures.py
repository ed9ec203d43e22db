"""Pictures of "How it works" for the methods to compare with: a uniform grid, sample and aggregate, one mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from sklearn.cluster import KMeans

from kveil import PrivateKMeans, testing
from tools.docs.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, panels
from tools.docs.maps import CELLS, TINY, cells, centres, dots, frame
from tools.docs.town import city, counts, noisy


def grid() -> Figure:
    """One histogram: equal cells, noisy counts, those that stand out."""
    rows = city()
    figure, (first, second, third) = panels(3, height=3.7)
    dots(first, rows)
    for line in np.linspace(0, 10, CELLS + 1):
        first.axvline(line, color=INK, lw=0.4, alpha=0.4)
        first.axhline(line, color=INK, lw=0.4, alpha=0.4)
    first.set_title("1. equal cells, all public")
    table = noisy(counts(rows, CELLS), TINY, 5)
    cells(second, table, float(table.max()))
    second.set_title("2. noisy counts of all cells")
    deviation = np.sqrt(2) / TINY
    cells(third, np.where(table > 2 * deviation, table, 0), 1.3 * float(table.max()))
    centres(third, _fit("grid", rows).cluster_centers_)
    third.set_title("3. cells that stand out")
    return figure


def sample_aggregate() -> Figure:
    """Blocks of rows, the centres of each, and their noisy average."""
    rows = city()
    n_blocks = round(len(rows) ** 0.4)
    block = np.random.default_rng(6).integers(0, n_blocks, len(rows))  # a sketch: kveil hashes what a row holds, with a key
    start = np.array([[3.0, 5.0], [7.0, 5.0], [5.0, 8.0], [5.0, 2.0]])
    found = [KMeans(4, init=start, n_init=1).fit(rows[block == one]).cluster_centers_ for one in range(n_blocks)]
    figure, (first, second, third) = panels(3, height=3.7)
    for one, colour in enumerate((BLUE, GREEN, PURPLE)):
        first.plot(*rows[block == one].T, ".", ms=4, color=colour, alpha=0.8, mew=0, rasterized=True)
    frame(first)
    first.set_title(f"1. three of {n_blocks} blocks of rows")
    frame(second)
    second.plot(*np.concatenate(found).T, ".", ms=5, color=GREEN, mew=0)
    second.set_title("2. centres of every block")
    model = _fit("sample-aggregate", rows, 15, init=start)
    frame(third)
    third.plot(*np.mean(found, axis=0).T, "+", ms=9, color=GREEN, mew=2)
    for place, error in zip(model.cluster_centers_, model.cluster_errors_, strict=True):
        third.add_patch(Circle(tuple(place), error, fill=False, ec=ORANGE, lw=1, alpha=0.8))
    centres(third, model.cluster_centers_)
    third.set_title("3. noisy average, epsilon 1")
    return figure


def mean() -> Figure:
    """One mean, released many times over: what its noise does at three budgets."""
    rows = city()
    figure, three = panels(3, height=3.7)
    for axes, epsilon in zip(three, (0.005, 0.02, 0.1), strict=True):
        dots(axes, rows)
        found = [_fit("mean", rows, script, epsilon=epsilon).cluster_centers_[0] for script in range(30)]
        axes.plot(*np.array(found).T, "o", color=ORANGE, ms=5, mec="white", mew=0.5)
        axes.set_title(f"epsilon {epsilon:g}")
    return figure


def _fit(method: str, rows: Any, script: int = 3, epsilon: float = 1.0, **options: Any) -> PrivateKMeans:
    with testing.scripted(script):
        return PrivateKMeans(4, epsilon=epsilon, bounds=(0, 10), method=method, random_state=0, **options).fit(rows)
