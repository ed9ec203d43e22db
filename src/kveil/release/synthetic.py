"""Made-up rows that look like what a release tells, and the share of rows in the cells of a map. Released values alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.release.kept import Kept, fitted, generator, has_points, kept
from kveil.solve.again import shifted
from kveil.solve.cloud import cloud
from kveil.solve.synopsis import Synopsis, mean_cost
from kveil.space.euclidean import clip

if TYPE_CHECKING:
    from kveil.release.release import Release

MOST_NUMBERS = 2**27  # of made-up rows, or of a map: 1 GB


def sample(release: Release, n: int, random_state: Any = None) -> Floats:
    """`Release.sample`."""
    shown, rng = kept(release, "sample"), generator(random_state)  # public randomness over released values, no noise
    _check_whole("n", n, MOST_NUMBERS // len(release.centers[0]))
    has_rows = shown.synopsis.kept & (shown.synopsis.counts > 0)
    weights = shown.synopsis.counts[has_rows]
    picked = rng.choice(len(weights), size=int(n), p=weights / weights.sum())
    if shown.synopsis.kind == "cells":
        half = shown.synopsis.half[has_rows][picked]
        rows = shown.synopsis.points[has_rows][picked] + rng.uniform(-1, 1, size=half.shape) * half
    else:
        points, spreads = _blobs(release, shown, has_rows)
        lengths = np.sqrt(spreads / points.shape[1])[picked, None]
        rows = (points[picked] + lengths * rng.standard_normal((int(n), points.shape[1]))) * shown.unit
    return clip(release.domain(), rows)


def density(release: Release, bins: int = 32) -> Floats:
    """`Release.density`."""
    shown, d = kept(release, "density"), release.n_features
    if d is None or d > 2:
        raise InvalidValue("density is a map of one or two features. Use sample(n) for more, and look at two of its columns.")
    _check_whole("bins", bins, int(MOST_NUMBERS ** (1 / d)))
    low, high = extent(release)
    has_rows = shown.synopsis.kept & (shown.synopsis.counts > 0)
    points, half, weights = (part[has_rows] for part in (shown.synopsis.points, shown.synopsis.half, shown.synopsis.counts))
    edges = np.linspace(low, high, int(bins) + 1)  # (bins + 1, d)
    inside = [_overlap(points[:, column], half[:, column], edges[:, column]) for column in range(d)]
    mass = weights @ inside[0] if d == 1 else (inside[0] * weights[:, None]).T @ inside[1]
    return np.asarray(mass / mass.sum())


def _blobs(release: Release, shown: Kept, has_rows: Any) -> tuple[Floats, Floats]:
    """Points in all columns, in the distance of the model, moved to the fitted means; and the spread of the rows of each."""
    synopsis, unit, _ = shown
    points, weights = synopsis.points[has_rows] / unit, synopsis.counts[has_rows]
    leaves = cloud(synopsis, unit) if synopsis.kind == "leaves" else None
    if leaves is not None:
        spreads = leaves.spreads
    else:  # clusters of a projection: what the cost of one mean has more than they have among each other
        whole = mean_cost(synopsis.total)
        middle = np.zeros(points.shape[1]) if synopsis.middle is None else synopsis.middle / unit
        between = float(weights @ ((points - middle) ** 2).sum(axis=1) / weights.sum())
        spreads = np.full(len(points), 0.0 if whole is None else max(0.0, whole.value - between))
    return shifted(points, weights, fitted(release, shown))[0], spreads


def _overlap(middles: Floats, half: Floats, edges: Floats) -> Floats:
    """(m, bins) the share of every interval that lies in each bin; what lies outside all of them is in the nearest."""
    low, high = (np.clip(middles + side * half, edges[0], edges[-1]) for side in (-1, 1))
    below = np.clip(edges, low[:, None], high[:, None])
    width = (high - low)[:, None]
    place = np.clip(np.searchsorted(edges, low, side="right") - 1, 0, len(edges) - 2)
    alone = np.eye(len(edges) - 1)[place]
    return np.where(width > 0, np.diff(below, axis=1) / np.where(width > 0, width, 1.0), alone)


def has_density(release: Release) -> bool:
    """Whether there is a map of this release to draw: of one or two features, with a domain and cells."""
    if release.n_features not in (1, 2) or not isinstance(release.synopsis, Synopsis):
        return False
    return has_points(release.synopsis) and any(name in release.parameters for name in ("bounds", "radius"))


def extent(release: Release) -> tuple[Floats, Floats]:
    """The lowest and the highest value of every feature, by the public domain."""
    domain = release.domain()
    return (domain.lower, domain.upper) if isinstance(domain, Box) else (domain.center - domain.half, domain.center + domain.half)


def _check_whole(name: str, value: Any, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise InvalidValue(f"{name} must be a whole number from 1 to {most}, got {value!r}.")
