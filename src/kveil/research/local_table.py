"""What clustering costs when nobody is trusted: the protocols of the local model on made-up data, against plain k-means.

The data are k round clusters in the unit ball: centres uniform in the ball of radius 0.7 and apart by at least 0.35 (0.25 if they
would not fit), shares by Dirichlet(5), clusters of root mean squared radius 0.12. One family, so one reading: real data differ.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.research.contest import cost

PROTOCOLS = {"refine": "refinement in rounds", "grid": "one grid", "lae": "LAE, four rounds", "lma": "LMA, one round"}
DATA_FREE = "centres that saw no data"
COLOURS = {"refine": "#0072B2", "grid": "#CC79A7", "lae": "#D55E00", "lma": "#009E73", DATA_FREE: "#777777"}
SEED = 2021  # of the made-up rows; devices' coins have none


@dataclass(frozen=True)
class Size:
    """What a table spans. shapes: (k, columns)."""

    shapes: tuple[tuple[int, int], ...] = ((4, 2), (8, 2), (8, 3), (8, 5), (8, 10), (16, 10), (10, 20))
    people: tuple[int, ...] = (100_000, 1_000_000)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    runs: int = 4


QUICK = Size(shapes=((4, 2), (8, 5)), people=(50_000,), epsilons=(1.0, 4.0), runs=2)


@dataclass(frozen=True)
class Cell:
    """All runs of one protocol in one place. ratios: cost over the cost of k-means on the same rows; not private.

    default: whether it is what "auto" picks here. refused: "auto" would not run it. forecast: the ratio that `plan` expects.
    """

    protocol: str
    k: int
    columns: int
    people: int
    epsilon: float
    ratios: tuple[float, ...]
    seconds: float
    default: bool
    refused: bool
    forecast: float | None

    @property
    def median(self) -> float:
        return float(np.median(self.ratios))


def play(size: Size, on_step: Callable[[str, int, int], None]) -> list[Cell]:
    """Run every protocol that takes the columns, everywhere."""
    places = [(k, d, n) for k, d in size.shapes for n in size.people]
    cells = []
    for number, (k, d, n) in enumerate(places, start=1):
        on_step(f"k = {k}, {d} columns, {n} people", number, len(places))
        tables = [made_up(n, k, d, SEED + run) for run in range(size.runs)]
        for name in [name for name in PROTOCOLS if d <= 3 or name != "grid"]:
            cells += [_cell(name, k, epsilon, tables) for epsilon in size.epsilons]
        free = tuple(cost(rows, data_free(k, d, run)) / least for run, (rows, least) in enumerate(tables))
        cells += [Cell(DATA_FREE, k, d, n, epsilon, free, 0.0, False, False, None) for epsilon in size.epsilons]
    return cells


def made_up(n: int, k: int, d: int, seed: int) -> tuple[Floats, float]:
    """Rows of the mixture, and their mean cost by k-means without privacy, started at the true centres."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    places = _places(k, d, rng)
    owner = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    rows = places[owner] + 0.12 / np.sqrt(d) * rng.standard_normal((n, d))  # made-up rows, not noise for privacy
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    best = KMeans(k, init=places, n_init=1, max_iter=10).fit(rows[:100_000]).cluster_centers_
    return rows, cost(rows, best)


def data_free(k: int, d: int, seed: int) -> Floats:
    """Centres that serve all of the ball: k-means of even points."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    even = rng.standard_normal((5_000, d))  # made-up rows
    even *= rng.random((5_000, 1)) ** (1 / d) / np.linalg.norm(even, axis=1, keepdims=True)
    return np.asarray(KMeans(k, n_init=1, random_state=seed).fit(0.7 * even).cluster_centers_)


def _places(k: int, d: int, rng: np.random.Generator) -> Floats:
    places, apart, tries = np.empty((0, d)), 0.35, 0
    while len(places) < k:
        place = rng.standard_normal(d)
        place *= 0.7 * rng.random() ** (1 / d) / np.linalg.norm(place)
        if not len(places) or np.linalg.norm(places - place, axis=1).min() >= apart:
            places = np.vstack([places, place])
        tries += 1
        if tries == 20_000:  # they do not fit
            places, apart, tries = np.empty((0, d)), 0.25, 0
    return places


def _cell(name: str, k: int, epsilon: float, tables: list[tuple[Floats, float]]) -> Cell:
    from kveil.collect.forecast import plan
    from kveil.models.local_kmeans import LocalKMeans

    n, d = tables[0][0].shape
    ratios, start = [], time.perf_counter()
    for run, (rows, least) in enumerate(tables):
        model: Any = LocalKMeans(k, epsilon=epsilon, radius=1.0, protocol=name, random_state=run)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of too few people: the table shows it
            ratios.append(cost(rows, model.fit(rows).cluster_centers_) / least)
    seconds = (time.perf_counter() - start) / len(tables)
    default = plan(n, k, d, epsilon)
    named = plan(n, k, d, epsilon, name)  # type: ignore[arg-type]
    is_default = default.protocol == name
    return Cell(
        name, k, d, n, epsilon, tuple(ratios), seconds, is_default, is_default and default.refusal is not None, named.ratio
    )
