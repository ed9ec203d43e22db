"""k-variates++: one loop that is k-means++, weighted, distributed, streaming and private seeding, by what is plugged in.

Each round draws an anchor row (chooser), draws a centre around it (density), and updates how far every row, as seen by
the probe, is from its nearest centre (divergence). All randomness here is public; private instances lend their own
density and chooser, which draw from the vault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidValue

Floats = NDArray[np.float64]
Rng = np.random.Generator


class Density(Protocol):
    """Where a centre is drawn, given its anchor."""

    def draw(self, anchor: Floats, rng: Rng) -> Floats: ...


class Probe(Protocol):
    """How rows are seen in round t. `is_fixed`: the same in every round, so that distances need no recomputing."""

    is_fixed: bool

    def apply(self, t: int, points: Floats, centers: Floats) -> Floats: ...


class Divergence(Protocol):
    """How far rows are from one centre; non-negative."""

    def to_center(self, points: Floats, center: Floats) -> Floats: ...


class Chooser(Protocol):
    """Which row becomes the anchor, given weights and distances (None in the first round)."""

    def pick(self, weights: Floats, distances: Floats | None, rng: Rng) -> int: ...


class Dirac:
    """The anchor itself."""

    def draw(self, anchor: Floats, rng: Rng) -> Floats:
        return anchor


class Identity:
    """Rows as they are."""

    is_fixed = True

    def apply(self, t: int, points: Floats, centers: Floats) -> Floats:
        return points


class SquaredEuclidean:
    def to_center(self, points: Floats, center: Floats) -> Floats:
        away = points - center
        return np.asarray(np.einsum("ij,ij->i", away, away))


class D2:
    """A row with probability proportional to weight times distance; to weight alone in the first round, or when all
    distances are 0."""

    def pick(self, weights: Floats, distances: Floats | None, rng: Rng) -> int:
        scores = weights if distances is None else weights * distances
        total = scores.sum()
        if not total > 0:
            scores, total = weights, weights.sum()
        cumulative = np.cumsum(scores)
        place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        return min(place, int(np.flatnonzero(scores)[-1]))  # rounding may step past the last positive score


@dataclass(frozen=True)
class Seeding:
    """Centres (k, d) and the rows they were drawn at. A private seeding has no anchors: they are row indices."""

    centers: Floats
    anchors: NDArray[np.int64] | None


def kvariates(
    points: ArrayLike,
    n_clusters: int,
    *,
    weights: ArrayLike | None = None,
    density: Density = Dirac(),
    probe: Probe = Identity(),
    divergence: Divergence = SquaredEuclidean(),
    chooser: Chooser = D2(),
    random_state: int | Rng | None = None,
) -> Seeding:
    """`n_clusters` seeds of public points by k-variates++. Not private by itself.

    >>> kvariates([[0.0], [0.0], [9.0]], 2, random_state=0).centers.ravel().tolist() in ([0.0, 9.0], [9.0, 0.0])
    True
    """
    rows = np.asarray(points, dtype=np.float64)
    mass = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(rows, mass, n_clusters)
    rng = np.random.default_rng(random_state)
    centers = np.empty((n_clusters, rows.shape[1]))
    anchors = np.empty(n_clusters, dtype=np.int64)
    best: Floats | None = None
    for t in range(n_clusters):
        anchors[t] = chooser.pick(mass, best, rng)
        centers[t] = density.draw(rows[anchors[t]], rng)
        seen = probe.apply(t, rows, centers[: t + 1])
        if probe.is_fixed and best is not None:
            best = np.minimum(best, divergence.to_center(seen, centers[t]))
        else:
            best = _least(seen, centers[: t + 1], divergence)
    return Seeding(centers, anchors)


def kmeans_plusplus(
    points: ArrayLike, n_clusters: int, *, weights: ArrayLike | None = None, random_state: int | Rng | None = None
) -> Floats:
    """Centres by (weighted) k-means++: k-variates++ with the anchor itself as centre. Not private."""
    return kvariates(points, n_clusters, weights=weights, random_state=random_state).centers


def _least(points: Floats, centers: Floats, divergence: Divergence) -> Floats:
    best = divergence.to_center(points, centers[0])
    for center in centers[1:]:
        best = np.minimum(best, divergence.to_center(points, center))
    return best


def _check(rows: Floats, mass: Floats, n_clusters: Any) -> None:
    if rows.ndim != 2 or not rows.shape[0] or not rows.shape[1]:
        raise InvalidValue("points must be a table with at least one row and one column.")
    if not np.isfinite(rows).all():
        raise InvalidValue("points must be finite.")
    if mass.shape != (len(rows),) or not np.isfinite(mass).all() or (mass < 0).any() or not (mass > 0).any():
        raise InvalidValue("weights must be one finite number >= 0 a row, not all of them 0.")
    if not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise InvalidValue("n_clusters must be a whole number of at least 1.")
