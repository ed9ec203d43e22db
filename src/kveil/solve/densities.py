"""Where a centre is drawn, given its anchor: at it, around it, or anywhere in its group.

`mean` and `variance` are what Theorem 2 of the k-variates++ paper needs, for every row as an anchor. Noise here is public: it
comes from `random_state` and hides nothing. Private noise is drawn in `kveil.desk`.
"""

from __future__ import annotations

from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.space.euclidean import Domain

Rng = np.random.Generator


class Density(Protocol):
    """The law p_a of a centre that is anchored at row a."""

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats: ...

    def mean(self, points: Floats) -> Floats:
        """(m, d): the mean of p_a for every row a."""

    def variance(self, points: Floats) -> Floats:
        """(m,): the trace of the covariance of p_a."""

    def log_ratio(self, domain: Domain) -> float:
        """The largest ln p_a(x)/p_b(x) over all x and anchors a, b of the domain; infinite if there is none."""


class Dirac:
    """The anchor itself."""

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        return np.asarray(points[anchor])

    def mean(self, points: Floats) -> Floats:
        return points

    def variance(self, points: Floats) -> Floats:
        return np.zeros(len(points))

    def log_ratio(self, domain: Domain) -> float:
        return inf


class UniformOver:
    """Any row of the anchor's group, alike: what a node does that cannot weigh its rows (Dk-means++ with Forgy nodes)."""

    def __init__(self, groups: ArrayLike) -> None:
        self.groups = np.asarray(groups)

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        members = np.flatnonzero(self.groups == self.groups[anchor])
        return np.asarray(points[members[rng.integers(len(members))]])

    def mean(self, points: Floats) -> Floats:
        _, group = np.unique(self.groups, return_inverse=True)
        sums = np.zeros((group.max() + 1, points.shape[1]))
        np.add.at(sums, group, points)
        return np.asarray((sums / np.bincount(group)[:, None])[group])

    def variance(self, points: Floats) -> Floats:
        _, group = np.unique(self.groups, return_inverse=True)
        spread = ((points - self.mean(points)) ** 2).sum(axis=1)
        return np.asarray((np.bincount(group, spread) / np.bincount(group))[group])

    def log_ratio(self, domain: Domain) -> float:
        return inf


class ProductLaplace:
    """The anchor plus Laplace noise of scale b in every coordinate, for studies: floats, and a public source of noise."""

    def __init__(self, scale: float) -> None:
        if not (np.isfinite(scale) and scale > 0):
            raise InvalidValue("scale must be a finite number above 0.")
        self.scale = float(scale)

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        noise = rng.laplace(scale=self.scale, size=points.shape[1])  # public: these densities are for public points
        return np.asarray(points[anchor] + noise)

    def mean(self, points: Floats) -> Floats:
        return points

    def variance(self, points: Floats) -> Floats:
        return np.full(len(points), 2 * points.shape[1] * self.scale**2)

    def log_ratio(self, domain: Domain) -> float:
        """The L1 diameter over the scale."""
        reach = domain.l1_sensitivity / domain.top * domain.half.max() if hasattr(domain, "radius") else domain.half.sum()
        return float(2 * reach / self.scale)
