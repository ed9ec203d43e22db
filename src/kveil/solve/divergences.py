"""How far rows are from a centre. The seeding loop needs nothing else, so it runs where no centroid has a closed form.

Bregman divergences have data first and the centre second: the arithmetic mean is then the best centre for every one of them,
and Lloyd steps go on as usual. Of the total Jensen divergence no closed-form centre is known: refine by a medoid.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.space.euclidean import Domain


class Divergence(Protocol):
    """How far rows are from one centre; non-negative."""

    def to_center(self, points: Floats, center: Floats) -> Floats: ...


class SquaredEuclidean:
    def to_center(self, points: Floats, center: Floats) -> Floats:
        away = points - center
        return np.asarray(np.einsum("ij,ij->i", away, away))

    def bound(self, domain: Domain) -> float:
        """The largest value on the domain: its squared diameter."""
        return float(4 * (domain.radius**2 if hasattr(domain, "radius") else (domain.half**2).sum()))


class Mahalanobis:
    """(a - c)' M (a - c) for a symmetric positive semidefinite M: a Bregman divergence."""

    def __init__(self, matrix: ArrayLike) -> None:
        given = np.asarray(matrix, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.isfinite(given).all() or not np.allclose(given, given.T):
            raise InvalidValue("the matrix of a Mahalanobis distance must be square, finite and symmetric.")
        values, vectors = np.linalg.eigh(given)
        if values.min() < -1e-12 * max(1.0, values.max()):
            raise InvalidValue("the matrix of a Mahalanobis distance must have no negative eigenvalue.")
        self.root, self.largest = vectors * np.sqrt(np.maximum(values, 0.0)), float(max(values.max(), 0.0))

    def to_center(self, points: Floats, center: Floats) -> Floats:
        if len(self.root) != len(center):
            raise InvalidValue(f"the matrix is for {len(self.root)} column(s), and these points have {len(center)}.")
        away = (points - center) @ self.root
        return np.asarray(np.einsum("ij,ij->i", away, away))

    def bound(self, domain: Domain) -> float:
        return self.largest * SquaredEuclidean().bound(domain)


class KullbackLeibler:
    """sum a ln(a/c) of rows taken as distributions: divided by their sum, and mixed with the uniform one, whose share is
    `smoothing`, so that no coordinate is 0. Rows must be >= 0 with a sum above 0."""

    def __init__(self, smoothing: float = 1e-3) -> None:
        if not 0 < smoothing <= 1:
            raise InvalidValue("smoothing must be above 0 and at most 1: without it one zero makes a divergence infinite.")
        self.smoothing = float(smoothing)

    def to_center(self, points: Floats, center: Floats) -> Floats:
        a, c = self._smoothed(points), self._smoothed(center[None])
        return np.asarray(np.maximum((a * np.log(a / c)).sum(axis=1), 0.0))

    def bound(self, domain: Domain) -> float:
        """Between two corners of the simplex."""
        s, d = self.smoothing, domain.n_columns
        return 0.0 if d == 1 else (1 - s) * log((1 - s + s / d) * d / s)

    def _smoothed(self, rows: Floats) -> Floats:
        sums = rows.sum(axis=1, keepdims=True)
        if (rows < 0).any() or not (sums > 0).all():
            raise InvalidValue("Kullback-Leibler divergences are for rows >= 0 with a sum above 0.")
        return np.asarray((1 - self.smoothing) * rows / sums + self.smoothing / rows.shape[1])


class ItakuraSaito:
    """sum a/c - ln(a/c) - 1, for rows above 0, such as spectra. `low`: a public number above 0; smaller values count as it."""

    def __init__(self, low: float) -> None:
        if not (np.isfinite(low) and low > 0):
            raise InvalidValue("low must be a finite number above 0: the divergence is infinite at 0.")
        self.low = float(low)

    def to_center(self, points: Floats, center: Floats) -> Floats:
        ratio = np.maximum(points, self.low) / np.maximum(center, self.low)
        return np.asarray(np.maximum((ratio - np.log(ratio) - 1).sum(axis=1), 0.0))

    def bound(self, domain: Domain) -> float:
        """The highest value over the lowest, in every column: r - ln r - 1 passes 1/r + ln r - 1 for r > 1."""
        ratio = np.maximum(domain.center + domain.half, self.low) / np.maximum(domain.center - domain.half, self.low)
        return float((ratio - np.log(ratio) - 1).sum())


class TotalJensen:
    """rho J, with J = [alpha F(p) + (1-alpha) F(q) - F(alpha p + (1-alpha) q)] / (alpha (1-alpha)) and
    rho = (1 + (F(p) - F(q))^2 / |p - q|^2)^(-1/2); 0 where p = q. Nielsen and Nock, "Total Jensen divergences".

    generator: F, "squares" (sum x^2), "entropy" (sum x ln x - x, rows >= 0) or "burg" (-sum ln x, rows above 0).
    """

    def __init__(self, generator: Literal["squares", "entropy", "burg"] = "squares", alpha: float = 0.5) -> None:
        if generator not in GENERATORS:
            raise InvalidValue(f"generator must be one of {', '.join(map(repr, GENERATORS))}, got {generator!r}.")
        if not 0 < alpha < 1:
            raise InvalidValue("alpha must be between 0 and 1, both excluded.")
        self.generator, self.alpha = generator, float(alpha)

    def to_center(self, points: Floats, center: Floats) -> Floats:
        f, alpha = GENERATORS[self.generator], self.alpha
        of_points, of_center = f(points).sum(axis=1), float(f(center).sum())
        gap = alpha * of_points + (1 - alpha) * of_center - f(alpha * points + (1 - alpha) * center).sum(axis=1)
        squares = SquaredEuclidean().to_center(points, center)
        slope = np.divide((of_points - of_center) ** 2, squares, out=np.zeros(len(points)), where=squares > 0)
        jensen = np.maximum(gap, 0.0) / (alpha * (1 - alpha))
        return np.where(squares > 0, jensen / np.sqrt(1 + slope), 0.0)

    def bound(self, domain: Domain) -> float:
        """rho <= 1, and a gap of F is at most its range over the box; F is convex, so its greatest value is at an end."""
        low, high = domain.center - domain.half, domain.center + domain.half
        if (low < 0 if self.generator == "entropy" else low <= 0).any() and self.generator != "squares":
            return inf
        least = np.clip({"squares": 0.0, "entropy": 1.0, "burg": inf}[self.generator], low, high)
        f = GENERATORS[self.generator]
        return float((np.maximum(f(low), f(high)) - f(least)).sum() / (self.alpha * (1 - self.alpha)))


def _entropy(x: Any) -> Any:
    if np.any(x < 0):
        raise InvalidValue("the entropy generator is for rows >= 0.")
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0) - x


def _burg(x: Any) -> Any:
    if np.any(x <= 0):
        raise InvalidValue("the burg generator is for rows above 0.")
    return -np.log(x)


GENERATORS: dict[str, Callable[[Any], Any]] = {"squares": np.square, "entropy": _entropy, "burg": _burg}
