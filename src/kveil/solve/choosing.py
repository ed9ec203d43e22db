"""How many clusters released points show: costs and silhouettes of ordinary clusterings, and a rule that picks among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats, Integers
from kveil.errors import InvalidValue
from kveil.solve.cloud import Cloud, cloud
from kveil.solve.histogram import Histogram
from kveil.solve.synopsis import Synopsis
from kveil.solve.wkmeans import thorough_kmeans

NEAR_BEST = 0.02  # silhouettes this close to the best are as good
MOST = 100  # clusters that are tried
PER_CLUSTER = {True: 3, False: 2}  # points that a cluster needs: cells, and leaves, which are means of more rows
LEAST_POINTS = {True: 50, False: 40}  # with fewer nothing is clear
CHOSE = 'n_clusters="auto": '  # how a note begins about the k that a fit chose
APART = 3.0  # standard errors between a centre and the nearest other one


class Curve(NamedTuple):
    """For k = 1, 2, ...: the estimated mean cost, the simplified silhouette, and how many centres are told apart from the nearest
    other one. Costs are in the squared distance of the model."""

    k: Integers
    cost: Floats
    silhouette: Floats
    told_apart: Integers


NOTHING = Curve(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))


class Choice(NamedTuple):
    """A number of clusters, whether it is clear, and why."""

    k: int
    is_clear: bool
    why: str


def check_range(given: Any, least: int = 2) -> tuple[int, int]:
    """Two whole numbers, the second larger, between `least` and 100."""
    pair = tuple(given) if isinstance(given, tuple | list) else ()
    whole = all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in pair)
    if len(pair) != 2 or not whole or not least <= pair[0] < pair[1] <= MOST:
        raise InvalidValue(
            f"k_range must be two whole numbers (low, high) with {least} <= low < high <= {MOST}, got {given!r}. Clustering "
            "released points again for every k takes longer the more there are."
        )
    return int(pair[0]), int(pair[1])


def curve(shown: Cloud | None, most: int, rng: np.random.Generator) -> Curve:
    """Costs, silhouettes and centres told apart of the best clusterings into 1, 2, ..., `most` clusters."""
    ks = np.arange(1, most + 1)
    found = [] if shown is None else [_clustered(shown, int(k), rng) for k in ks]
    if not found:
        return NOTHING
    costs, silhouettes, told = (np.array([each[place] for each in found]) for place in range(3))
    return Curve(ks, costs, silhouettes, told.astype(np.int64))


def most_clusters(shown: Cloud | None, high: int) -> int:
    """How many clusters, up to `high`, these points can show: a third of the number of cells, half that of leaves; and no more
    than the budget tells apart, where they are a projection."""
    if shown is None:
        return 0
    top = min(high, len(shown.points) // PER_CLUSTER[shown.is_cells])
    return top if top <= shown.most else int(shown.most / 2)


def _clustered(shown: Cloud, k: int, rng: np.random.Generator) -> tuple[float, float, int]:
    centers = thorough_kmeans(shown.points, shown.weights, k, rng)
    apart, shares = cdist(shown.points, centers, "sqeuclidean"), shown.weights / shown.weights.sum()
    near = np.partition(apart, min(1, k - 1), axis=1)[:, :2] + shown.spreads[:, None]
    cost = float(shares @ near[:, 0])
    if k == 1:
        return cost, 0.0, 1
    first, second = np.sqrt(near[:, 0]), np.sqrt(near[:, 1])
    silhouette = float(shares @ ((second - first) / np.maximum(second, 1e-300)))
    return cost, silhouette, _told_apart(shown, centers)


def _told_apart(shown: Cloud, centers: Floats) -> int:
    """How many centres lie more than `APART` standard errors from the nearest other one."""
    cells = Histogram(shown.points, shown.weights, shown.weights, shown.deviation, np.sqrt(shown.spreads))
    squares = cells.squared_errors(centers)
    apart = cdist(centers, centers, "sqeuclidean") / np.maximum(squares[:, None] + squares, 1e-300)
    np.fill_diagonal(apart, np.inf)
    return int(np.count_nonzero(apart.min(axis=1) >= APART**2))


def choice(found: Curve, shown: Cloud | None, low: int) -> Choice:
    """A number of clusters, `low` or more, by two signs, and whether it is clear: they agree, far from either end.

    The silhouette says how well clusters are told apart; of those k that come near the best one, that with the largest
    Calinski-Harabasz index is taken. The jump says where the distortion, to the power -p/2 of so many columns p, falls most
    (Sugar and James, 2003; p is cut at 2, since noisy leaves of many columns look like clusters of their own).
    """
    n_points, top = 0 if shown is None else len(shown.points), len(found.k)
    if shown is None or top < low:
        return Choice(low, False, f"{low} is a guess: noise leaves {n_points} cells, too few to tell clusters apart")
    allowed = slice(low - 1, None)
    silhouettes, n = found.silhouette[allowed], float(shown.weights.sum())
    ratios = _calinski_harabasz(found, n)[allowed]
    by_silhouette = low + int(np.argmax(np.where(silhouettes >= silhouettes.max() - NEAR_BEST, ratios, -np.inf)))
    by_jump = low + int(np.argmax(_jumps(found, shown.points.shape[1])[allowed]))
    agree = abs(by_silhouette - by_jump) <= max(1.0, 0.1 * by_silhouette)
    k = by_silhouette if agree or by_jump >= 0.8 * top else by_jump
    is_clear = agree and k < 0.9 * top and n_points >= LEAST_POINTS[shown.is_cells]
    few = "" if n_points >= LEAST_POINTS[shown.is_cells] else ", too few to be sure"
    end = "" if k < 0.9 * top else f"; {top} were tried at most"
    says = f"the silhouette says {by_silhouette}, the jump says {by_jump}, from {n_points} cells{few}{end}"
    return Choice(k, bool(is_clear), f"{k} is clear: {says}" if is_clear else f"{k} is a guess: {says}")


def chosen(synopsis: Synopsis, unit: Floats | float, k_range: tuple[int, int]) -> Choice:
    """The choice that a synopsis suggests, always the same one: its public randomness has a fixed seed."""
    shown = cloud(synopsis, unit)
    found = curve(shown, most_clusters(shown, k_range[1]), np.random.default_rng(0))
    return choice(found, shown, k_range[0])


def _calinski_harabasz(found: Curve, n: float) -> Floats:
    within, k = np.maximum(found.cost, 1e-300), found.k
    return np.asarray((found.cost[0] - found.cost) / np.maximum(k - 1, 1) / within * (n - k))


def _jumps(found: Curve, n_columns: int) -> Floats:
    heights = np.maximum(found.cost, 1e-300) ** (-min(n_columns, 2) / 2)
    return np.diff(heights, prepend=heights[0])
