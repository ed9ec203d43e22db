"""Exact expected costs of seeds on small made-up sets: every way in which the draws can fall is walked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.research.partitions import best_labels
from kveil.research.ratios import potential

Labels = NDArray[np.int64]
Step = Callable[[list[Floats]], list[tuple[float, Floats]]]  # centres so far -> (chance, next centre)

ROWS = 7


@dataclass(frozen=True)
class Small:
    """A set with its optimum: rows, k, the cluster of every row, and what the best centres cost."""

    rows: Floats
    k: int
    labels: Labels
    least: float

    @classmethod
    def of(cls, rows: Floats, k: int, labels: Labels | None = None) -> Small:
        told = best_labels(rows, k) if labels is None else labels
        best = np.array([rows[told == label].mean(axis=0) for label in told])
        return cls(rows, k, told, float(((rows - best) ** 2).sum()))

    @property
    def factor(self) -> float:
        """2 + ln k: every bound has it."""
        return 2 + log(self.k)

    @property
    def width(self) -> float:
        """The root mean square of distances to the best centres."""
        return float(np.sqrt(self.least / len(self.rows)))


def small_sets(n_sets: int, rng: np.random.Generator) -> Iterator[Small]:
    """Seven rows in one or two columns about few places, some close together, some far apart; two or three clusters."""
    for _ in range(n_sets):
        d, k = int(rng.integers(1, 3)), int(rng.integers(2, 4))
        places = rng.uniform(-1, 1, (int(rng.integers(2, 5)), d)) * 10.0 ** rng.uniform(0, 2)
        yield Small.of(places[rng.integers(0, len(places), ROWS)] + rng.standard_normal((ROWS, d)), k)


def streams(n_sets: int, rng: np.random.Generator) -> Iterator[tuple[Small, list[Floats]]]:
    """k batches, each with k + 1 to k + 4 rows of each of k clusters; k is 2 and, in one of ten, 3. What is called the optimum is
    where Lloyd steps from the clusters that were made end."""
    for place in range(n_sets):
        k, d = (3 if place % 10 == 9 else 2), int(rng.integers(1, 3))
        n, middles = k + int(rng.integers(1, 5 if k == 2 else 2)), rng.uniform(-1, 1, (k, d)) * 10.0 ** rng.uniform(0, 1.5)
        batches = [np.concatenate([middle + rng.uniform(-1, 1, (n, d)) for middle in middles]) for _ in range(k)]
        rows = np.concatenate(batches)
        yield Small.of(rows, k, settled(rows, np.tile(np.repeat(np.arange(k), n), k))), batches


def settled(rows: Floats, labels: Labels) -> Labels:
    """Labels that no Lloyd step changes any more."""
    while True:
        means = np.array([rows[labels == label].mean(axis=0) for label in np.unique(labels)])
        closest = ((rows[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        if np.array_equal(closest, labels):
            return labels
        labels = closest


def expected_cost(rows: Floats, k: int, step: Step) -> float:
    """The expected cost of k centres."""

    def walked(centers: list[Floats]) -> float:
        if len(centers) == k:
            return potential(rows, np.array(centers))
        return sum(chance * walked([*centers, center]) for chance, center in step(centers) if chance > 0)

    return walked([])


def by_distance(points: Floats, weights: Floats | None = None, seen: Floats | None = None) -> Step:
    """Points by weight, then by weight times squared distance, as they are `seen`: k-means++, also of a synopsis."""
    mass, shown = np.ones(len(points)) if weights is None else weights, points if seen is None else seen

    def step(centers: list[Floats]) -> list[tuple[float, Floats]]:
        scores = mass * _near(shown, centers)
        scores = scores if scores.any() else mass
        return list(zip((scores / scores.sum()).tolist(), points, strict=True))

    return step


def by_nodes(parts: Sequence[Floats]) -> Step:
    """A node by its number of rows, then by its total; any of its rows, alike: Dk-means++ with Forgy nodes."""

    def step(centers: list[Floats]) -> list[tuple[float, Floats]]:
        totals = np.array([_near(part, centers).sum() for part in parts])
        totals = totals if totals.any() else np.array([float(len(part)) for part in parts])
        chances = (totals / totals.sum()).tolist()
        return [(chance / len(part), row) for chance, part in zip(chances, parts, strict=True) for row in part]

    return step


def by_batches(batches: Sequence[Floats]) -> Step:
    """One centre per batch, by squared distance: OLk-means++."""
    steps = [by_distance(batch) for batch in batches]
    return lambda centers: steps[len(centers)](centers)


def _near(rows: Floats, centers: list[Floats]) -> Floats:
    """Squared distances to the nearest centre; ones, before there is any."""
    if not centers:
        return np.ones(len(rows))
    return np.asarray(((rows[:, None] - np.array(centers)) ** 2).sum(axis=2).min(axis=1))
