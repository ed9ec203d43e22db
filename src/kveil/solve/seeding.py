"""k-variates++: one loop that is k-means++, weighted, distributed, streaming and noisy seeding, by what is plugged in.

Each round draws an anchor row (chooser), draws a centre around it (density), and updates how far every row, as seen by
the probe, is from its nearest centre (divergence). All randomness here is public, and so must the points be. Private seeding
(`kveil.desk.seeds`) is the same loop over summaries of rows that stay where they are; its draws come from the vault.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.errors import FewerDistinctPoints, InvalidType, InvalidValue
from kveil.solve import _seed_kernels
from kveil.solve.densities import Density, Dirac
from kveil.solve.divergences import Divergence, SquaredEuclidean
from kveil.solve.probes import Identity, Probe

Rng = np.random.Generator
First = Literal["weighted", "paper"]

BLOCK = 2**20  # numbers that a divergence sees at a time


class Chooser(Protocol):
    """Which row becomes the anchor, given weights and distances (None in the first round)."""

    def pick(self, weights: Floats, distances: Floats | None, rng: Rng) -> int: ...


class D2:
    """A row with probability proportional to weight times distance; to weight alone in the first round, or when all
    distances are 0."""

    def pick(self, weights: Floats, distances: Floats | None, rng: Rng) -> int:
        scores = weights if distances is None else weights * distances
        return draw_index(scores if scores.sum() > 0 else weights, rng)


@dataclass(frozen=True)
class Seeding:
    """What the loop found, all of it exact facts about the points: a private seeding keeps its centres and nothing else.

    centers: (k, d).  anchors: (k,) the rows they were drawn at.  owners: (m,) the nearest centre of every row.
    costs: (k,) the weighted sum of divergences to the nearest centre after every round.
    """

    centers: Floats
    anchors: NDArray[np.int64]
    owners: NDArray[np.int32]
    costs: Floats


def kvariates(
    points: ArrayLike,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    density: Density = Dirac(),
    probe: Probe = Identity(),
    divergence: Divergence = SquaredEuclidean(),
    chooser: Chooser = D2(),
    first: First = "weighted",
    random_state: int | Rng | None = None,
) -> Seeding:
    """`n_clusters` seeds of public points by k-variates++ (Nock, Canyasse, Boreli, Nielsen, 2016). Not private by itself.

    weights: one number >= 0 per row; a row of weight w counts as w rows.
    density, probe, divergence, chooser: the plugs, from `kveil.seeding` or your own.
    first: the first anchor is drawn by weight, as the analysis needs; "paper" draws it uniformly, as printed for synopses.

    With the anchor itself as centre its expected cost is at most 8 (2 + ln k) times the least; in general at most
    (2 + ln k)((6 + 4 eta) least + 2 bias + 2 variance), Theorem 2, with the bias and variance of the density.

    >>> kvariates([[0.0], [0.0], [9.0]], 2, random_state=0).centers.ravel().tolist() in ([0.0, 9.0], [9.0, 0.0])
    True
    """
    check_plugs(
        density=(density, "draw"), probe=(probe, "apply"), divergence=(divergence, "to_center"), chooser=(chooser, "pick")
    )
    found = seed(
        points, n_clusters, weights=weights, density=density, probe=probe, divergence=divergence, chooser=chooser,
        first=first, random_state=random_state,
    )  # fmt: skip
    covered = np.flatnonzero(found.costs == 0)
    if covered.size and covered[0] < n_clusters - 1:
        message = f"the points have only {covered[0] + 1} distinct place(s) for {n_clusters} centres, so some centres are copies."
        warnings.warn(message, FewerDistinctPoints, stacklevel=2)
    return found


def seed(
    points: ArrayLike,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    density: Density = Dirac(),
    probe: Probe = Identity(),
    divergence: Divergence = SquaredEuclidean(),
    chooser: Chooser = D2(),
    first: First = "weighted",
    random_state: int | Rng | None = None,
) -> Seeding:
    """The loop of `kvariates`, for released values: it says nothing when they hold fewer distinct points than clusters."""
    rows = as_points(points)
    mass = as_weights(weights, rows)
    check_clusters(n_clusters)
    rng = np.random.default_rng(random_state)
    centers, anchors = np.empty((n_clusters, rows.shape[1])), np.empty(n_clusters, dtype=np.int64)
    nearest, costs = Nearest(len(rows), divergence), np.empty(n_clusters)
    for t in range(n_clusters):
        distances = nearest.best if t else None
        anchors[t] = chooser.pick(mass if t else first_weights(mass, first), distances, rng)
        centers[t] = density.draw(rows, int(anchors[t]), rng)
        seen = probe.apply(t, rows, centers[: t + 1])
        if not probe.is_fixed:
            nearest = Nearest(len(rows), divergence)
            for index in range(t):
                nearest.add(seen, centers[index], index)
        nearest.add(seen, centers[t], t)
        costs[t] = (mass * nearest.best).sum()
    return Seeding(centers, anchors, nearest.owner, costs)


class Nearest:
    """How far every row is from the nearest of the centres that were added, and which one that is."""

    def __init__(self, n_rows: int, divergence: Divergence = SquaredEuclidean()) -> None:
        self.best, self.owner = np.full(n_rows, np.inf), np.zeros(n_rows, dtype=np.int32)
        self._divergence = divergence

    def add(self, points: Floats, center: Floats, index: int) -> None:
        if type(self._divergence) is SquaredEuclidean:
            _seed_kernels.closer(np.ascontiguousarray(points), center, index, self.best, self.owner)
            return
        step = max(1, BLOCK // points.shape[1])
        for part in (slice(start, start + step) for start in range(0, len(points), step)):
            distances = self._divergence.to_center(points[part], center)
            nearer = distances < self.best[part]
            self.best[part][nearer], self.owner[part][nearer] = distances[nearer], index


def draw_index(scores: Floats, rng: Rng) -> int:
    """An index with probability proportional to its score."""
    cumulative = np.cumsum(scores)
    place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(place, int(np.flatnonzero(scores)[-1]))  # rounding may step past the last positive score


def first_weights(weights: Floats, first: First) -> Floats:
    if first not in ("weighted", "paper"):
        raise InvalidValue(f'first must be "weighted" or "paper", got {first!r}.')
    return weights if first == "weighted" else (weights > 0).astype(np.float64)


def check_plugs(**plugs: tuple[Any, str]) -> None:
    for name, (plug, verb) in plugs.items():
        if isinstance(plug, type) or not callable(getattr(plug, verb, None)):
            raise InvalidType(f"{name} must be an object of kveil.seeding, such as seeding.Dirac(), or have a method {verb}.")


def as_points(points: ArrayLike) -> Floats:
    try:
        rows = np.require(points, np.float64, ["C", "W"])  # the one kind of array that the kernel is compiled for
    except (TypeError, ValueError):
        raise InvalidValue(
            "points must be a table of numbers: an array, a frame or a list of rows. Read files beforehand."
        ) from None
    if rows.ndim != 2 or not rows.shape[0] or not rows.shape[1]:
        raise InvalidValue("points must be a table with at least one row and one column. One feature: array.reshape(-1, 1).")
    if not np.isfinite(rows).all():
        raise InvalidValue("points must be finite. Fill or drop rows with NaN or infinity beforehand.")
    return rows


def as_weights(weights: ArrayLike | None, points: Any) -> Floats:
    mass = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    if mass.shape != (len(points),) or not np.isfinite(mass).all() or (mass < 0).any() or not (mass > 0).any():
        raise InvalidValue("weights must be one finite number >= 0 a row, not all of them 0.")
    return mass


def check_clusters(n_clusters: Any) -> None:
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise InvalidValue("n_clusters must be a whole number of at least 1.")
