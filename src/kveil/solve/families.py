"""Exponential families as local densities of k-variates++: each is centred on its anchor.

Every regular exponential family has a Bregman divergence of its own (Banerjee, Merugu, Dhillon, Ghosh, 2005): Gaussian noise goes
with `SquaredEuclidean` or `Mahalanobis`, `Gamma` with `ItakuraSaito`, `Multinomial` with `KullbackLeibler`. Pairs may be mixed.
Noise here is public, as in `kveil.solve.densities`, and hides nothing.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.solve.densities import Rng
from kveil.space.euclidean import Domain


class Gaussian:
    """The anchor plus Gaussian noise: of one standard deviation in all coordinates, or with a covariance matrix."""

    def __init__(self, deviation: float | None = None, *, covariance: ArrayLike | None = None) -> None:
        if (deviation is None) == (covariance is None):
            raise InvalidValue("pass either a deviation or a covariance, not both.")
        given = np.asarray(covariance if deviation is None else [[float(deviation) ** 2]], dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.isfinite(given).all() or not np.allclose(given, given.T):
            raise InvalidValue("a covariance must be a square matrix, finite and symmetric; a deviation a finite number.")
        values, vectors = np.linalg.eigh(given)
        if not values.min() >= -1e-12 * max(1.0, values.max()) or not values.max() > 0 or (deviation or 1) < 0:
            raise InvalidValue("a deviation must be above 0, and a covariance have no negative eigenvalue and one above 0.")
        self.is_round, self.root = deviation is not None, vectors * np.sqrt(np.maximum(values, 0.0))

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        d = points.shape[1]
        if not self.is_round and len(self.root) != d:
            raise InvalidValue(f"the covariance is for {len(self.root)} column(s), and these points have {d}.")
        noise = rng.standard_normal(d)  # public
        return np.asarray(points[anchor] + (self.root[0, 0] * noise if self.is_round else self.root @ noise))

    def mean(self, points: Floats) -> Floats:
        return points

    def variance(self, points: Floats) -> Floats:
        return np.full(len(points), (points.shape[1] if self.is_round else 1) * float((self.root**2).sum()))

    def log_ratio(self, domain: Domain) -> float:
        """Infinite: it grows with x, wherever two anchors differ."""
        return inf


class Poisson:
    """Counts: every coordinate a Poisson number with the anchor's as its mean. Rows must be >= 0."""

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        return np.asarray(rng.poisson(_not_negative(points[anchor : anchor + 1])[0]), dtype=np.float64)

    def mean(self, points: Floats) -> Floats:
        return points

    def variance(self, points: Floats) -> Floats:
        return np.asarray(_not_negative(points).sum(axis=1))

    def log_ratio(self, domain: Domain) -> float:
        """Infinite: it grows with x."""
        return inf


class Gamma:
    """Sizes: every coordinate a gamma number with the anchor's as its mean and deviation anchor / sqrt(shape). Rows above 0.

    shape: 1 is the exponential law; larger ones are narrower.
    """

    def __init__(self, shape: float) -> None:
        if not (np.isfinite(shape) and shape > 0):
            raise InvalidValue("shape must be a finite number above 0.")
        self.shape = float(shape)

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        return np.asarray(rng.gamma(self.shape, _above(points[anchor : anchor + 1])[0] / self.shape))

    def mean(self, points: Floats) -> Floats:
        return points

    def variance(self, points: Floats) -> Floats:
        return np.asarray((_above(points) ** 2).sum(axis=1) / self.shape)

    def log_ratio(self, domain: Domain) -> float:
        """Infinite: it grows with x."""
        return inf


class Multinomial:
    """Frequencies: so many draws from the anchor, taken as a distribution (divided by its sum). Rows >= 0 with a sum above 0."""

    def __init__(self, trials: int) -> None:
        if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < 1:
            raise InvalidValue("trials must be a whole number of at least 1.")
        self.trials = int(trials)

    def draw(self, points: Floats, anchor: int, rng: Rng) -> Floats:
        return np.asarray(rng.multinomial(self.trials, self.mean(points[anchor : anchor + 1])[0]) / self.trials)

    def mean(self, points: Floats) -> Floats:
        sums = _not_negative(points).sum(axis=1, keepdims=True)
        if not (sums > 0).all():
            raise InvalidValue("a multinomial density is for rows with a sum above 0.")
        return np.asarray(points / sums)

    def variance(self, points: Floats) -> Floats:
        shares = self.mean(points)
        return np.asarray((shares * (1 - shares)).sum(axis=1) / self.trials)

    def log_ratio(self, domain: Domain) -> float:
        """All trials in the column whose share differs most; for a ball, that of the box around it. Infinite where a row may be
        0 in a column: there its share may be 0, and others' not."""
        low, high = domain.center - domain.half, domain.center + domain.half
        if low.min() <= 0:
            return inf
        most, least = high / (high + low.sum() - low), low / (low + high.sum() - high)
        return self.trials * float(np.log(most / least).max())


def _not_negative(rows: Floats) -> Floats:
    if (rows < 0).any():
        raise InvalidValue("this density is for rows >= 0.")
    return rows


def _above(rows: Floats) -> Floats:
    if not (rows > 0).all():
        raise InvalidValue("a gamma density is for rows above 0.")
    return rows
