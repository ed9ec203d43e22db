"""Constants of the k-variates++ paper on small public data: eta, delta_w and delta_s (Definitions 1, 7 and 8), Theorem 10's g,
and the share that Theorem 6 asks of batches.

They are exact facts about the points, found by trying all subsets: for study, and for public data alone. A noise scale must not
be computed from them (docs/errata.md); `conditional_laplace` takes typed numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.research.partitions import MOST, best_labels
from kveil.research.ratios import Range, least_ratio
from kveil.solve.divergences import SquaredEuclidean
from kveil.solve.seeding import as_points, check_clusters

Labels = NDArray[np.int64]


def delta_w(points: ArrayLike, n_clusters: int, *, diameter: float | None = None) -> float:
    """The least delta_w for which the points are delta_w-spread (Definition 7), by trying all sets of k - 1 of them.

    diameter: R of the paper, a bound on the distance of two points; that of the points themselves, if not given.

    >>> delta_w([[0.0], [1.0], [3.0]], 2)  # from 0 or 1, without the farthest point, 1 is left of R^2 = 9
    9.0
    """
    rows = _points(points, n_clusters, 2)
    if comb(len(rows), n_clusters - 1) > MOST:
        raise InvalidValue(f"all sets of {n_clusters - 1} of so many points are too many to try: take fewer points.")
    squares = _squares(rows)
    wide = float(squares.max()) if diameter is None else float(diameter) ** 2
    nearest = (squares[:, some].min(axis=1) for some in map(list, combinations(range(len(rows)), n_clusters - 1)))
    least = min(float(near.sum() - near.max()) for near in nearest)
    return wide / least if least > 0 else inf


def delta_s(points: ArrayLike, n_clusters: int, *, least: int = 1, is_over_all: bool = False) -> float:
    """The least delta_s for which the points are delta_s-monotonic (Definition 8), by trying all sets N and all packed sets.

    least: how many points a packed set has at least. As printed it is 1, and a single point away from N makes delta_s infinite:
        it is its own centre, at cost 0.
    is_over_all: add costs up over all points instead of the packed set; then they stay above 0.

    >>> delta_s([[0.0], [4.0], [6.0]], 2), delta_s([[0.0], [4.0], [6.0]], 2, least=2)  # from 0: 16 + 36 against 1 + 1
    (inf, 25.0)
    """
    rows = _points(points, n_clusters, 2)
    if comb(len(rows), n_clusters - 1) * 2 ** len(rows) > MOST:
        raise InvalidValue("all packed sets of so many points are too many to try: take fewer points.")
    squares, worst = _squares(rows), 1.0
    for some in (list(N) for size in range(1, n_clusters) for N in combinations(range(len(rows)), size)):
        near = squares[:, some].min(axis=1)
        for packed in _packed_sets(rows, near, sorted(set(range(len(rows))) - set(some)), least):
            counted = np.arange(len(rows)) if is_over_all else np.array(packed)
            closer = np.minimum(near, SquaredEuclidean().to_center(rows, rows[packed].mean(axis=0)))
            before, after = float(near[counted].sum()), float(closer[counted].sum())
            if before > 0:
                worst = max(worst, before / after if after > 0 else inf)
    return worst - 1


def eta(points: ArrayLike, seen: ArrayLike, n_clusters: int, *, labels: ArrayLike | None = None) -> Range:
    """Between which numbers the least eta lies for which a probe is eta-stretching (Definition 1).

    seen: the points as the probe shows them.  labels: the optimal partition; found by trying all, if not given.

    The definition asks for any set of at most k centres anywhere: `high` is proved, `low` is found by a search for the worst one.
    It is infinite where a cluster is seen at 2 to k places that are not its points: centres on those places cost nothing as seen.

    >>> eta([[0.0], [2.0]], [[1.0], [3.0]], 1).low.__round__(6)  # a shift by half the distance: the golden ratio
    1.618034
    """
    rows, probes = _points(points, n_clusters, 1), as_points(seen)
    if probes.shape != rows.shape:
        raise InvalidValue("seen must have one row per point, and the same columns.")
    found = Range(1.0, 1.0)
    for members in _clusters(rows, n_clusters, labels):
        own, shown = rows[members], probes[members]
        wide, wide_seen = _squares(own).sum(axis=1), _squares(shown).sum(axis=1)
        if len(members) == 1 or not wide_seen.any():
            continue
        stretch = float((wide_seen[wide_seen > 0] / wide[wide_seen > 0]).max()) if wide[wide_seen > 0].all() else inf
        share = least_ratio(shown, own, np.arange(len(own)), n_clusters)
        found = Range(max(found.low, _over(stretch, share.high)), max(found.high, _over(stretch, share.low)))
    return Range(found.low - 1, found.high - 1)


class Online(NamedTuple):
    """What Theorem 6 needs: how wide clusters are beside the stream, and which share of a cluster's cost every batch carries."""

    width: float
    share: Range

    @property
    def share_of_theorem(self) -> Range:
        """The largest number that meets both conditions."""
        return Range(min(self.width, self.share.low), min(self.width, self.share.high))


def online_share(batches: Sequence[ArrayLike], n_clusters: int, *, labels: ArrayLike | None = None) -> Online:
    """The conditions of Theorem 6 on a stream: the largest share that meets both lies in `share_of_theorem`.

    labels: the optimal partition of the rows of all batches, in their order; found by trying all, if not given.

    Centres may lie anywhere, so `low` is proved and `high` is found by a search. The share is 0 where a batch has a cluster at k
    places or fewer: centres there cost nothing in that batch.

    >>> online_share([[[0.0], [4.0]], [[1.0], [3.0]]], 1).share_of_theorem.high  # centre 2: the second batch has 2 of 10
    0.2
    """
    parts = [as_points(batch) for batch in batches]
    rows = _points(np.concatenate(parts), n_clusters, 1)
    home = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    wide, width, share = float(_squares(rows).max()), inf, Range(1.0, 1.0)
    for members in _clusters(rows, n_clusters, labels):
        pairs = comb(len(members), 2) * wide
        width = min(width, float(_squares(rows[members]).sum()) / 2 / pairs) if pairs else width
        for part in range(len(parts)):
            mine = rows[members[home[members] == part]]
            if not len(mine):
                return Online(width, Range(0.0, 0.0))
            owner = np.array([SquaredEuclidean().to_center(mine, row).argmin() for row in rows[members]])
            found = least_ratio(mine, rows[members], owner, n_clusters)
            share = Range(min(share.low, found.low), min(share.high, found.high))
    return Online(width, share)


def theorem_10_g(n_rows: int, n_clusters: int, n_columns: int, ratio: float) -> float:
    """g(m, k, d, R) = 4 / m^(1/4 + 1/(d+1)) + (64 / k^(2/d))^k ratio / m, ratio = rho(2R) the largest ratio of two densities.

    The theorem bounds the ratio of likelihoods by 1 + r^k g, r >= 1 the ratio of the highest to the lowest density of the rows,
    with probability 1 - delta over the rows, if k <= delta^2 sqrt(m) / (4 r) and delta < 1/2.

    >>> round(theorem_10_g(10_000, 1, 1, 1.0), 4)  # 4 / 1000 + 64 / 10 000
    0.0104
    """
    m, k, d = n_rows, n_clusters, n_columns
    return float(4 / m ** (1 / 4 + 1 / (d + 1)) + (64 / k ** (2 / d)) ** k * ratio / m)


def theorem_10_delta(n_rows: int, n_clusters: int, density_ratio: float = 1.0) -> float:
    """The least delta that Theorem 10 allows for these sizes; the theorem says nothing where it is 1/2 or more."""
    return float(sqrt(4 * density_ratio * n_clusters / sqrt(n_rows)))


def _packed_sets(rows: Floats, near: Floats, free: list[int], least: int) -> Iterator[list[int]]:
    """All packed sets of free points: balls about them, out to the nearest point of N, meet in a point."""
    for size in range(max(1, least), len(free) + 1):
        for some in map(list, combinations(free, size)):
            if balls_meet(rows[some], near[some]):
                yield some


def balls_meet(centers: Floats, squared_radii: Floats) -> bool:
    """Whether balls have a point in common; touching is enough.

    The least over x of max |x - a|^2 - r_a^2 is, by duality, the largest over weights l >= 0 with sum 1 of
    sum l (|a|^2 - r_a^2) - |sum l a|^2, which has at most d + 1 positive weights: all such supports are tried.
    """
    heights = (centers**2).sum(axis=1) - squared_radii
    tolerance = 1e-9 * max(1.0, float((centers**2).sum(axis=1).max()), float(squared_radii.max()))
    for size in range(1, min(len(centers), centers.shape[1] + 1) + 1):
        for some in map(list, combinations(range(len(centers)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = 2 * centers[some] @ centers[some].T, 0.0
            solved, _, rank, _ = np.linalg.lstsq(system, np.append(heights[some], 1.0), rcond=None)
            weights = solved[:size]
            if rank == size + 1 and weights.min() >= 0:
                middle = weights @ centers[some]
                if float(weights @ heights[some] - middle @ middle) > tolerance:
                    return False
    return True


def _clusters(rows: Floats, n_clusters: int, labels: ArrayLike | None) -> list[Labels]:
    told = best_labels(rows, n_clusters) if labels is None else np.asarray(labels)
    if told.shape != (len(rows),):
        raise InvalidValue("labels must be one per point.")
    return [np.flatnonzero(told == label) for label in np.unique(told)]


def _points(points: ArrayLike, n_clusters: int, least: int) -> Floats:
    check_clusters(n_clusters)
    rows = as_points(points)
    if not least <= n_clusters < len(rows):
        raise InvalidValue(f"n_clusters must be at least {least} and below the number of points.")
    return rows


def _squares(rows: Floats) -> Floats:
    return np.array([SquaredEuclidean().to_center(rows, row) for row in rows])


def _over(stretch: float, share: float) -> float:
    return stretch / share if share > 0 else inf
