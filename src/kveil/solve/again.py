"""Other centres from a synopsis: cells, leaves and recovered centres clustered once more. Lengths are those of the model."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.solve.cloud import Cloud
from kveil.solve.histogram import Histogram
from kveil.solve.placed import Clustering, Placed, merged
from kveil.solve.synopsis import Synopsis


def of_cells(synopsis: Synopsis, unit: Floats | float, k: int, rng: np.random.Generator) -> Placed:
    """k centres of the cells of one grid, as a fit finds them before its step."""
    widths, weights = np.sqrt(((synopsis.half / unit) ** 2).sum(axis=1) / 3), np.where(synopsis.kept, synopsis.counts, 0.0)
    cells = Histogram(synopsis.points / unit, synopsis.counts, weights, synopsis.deviation, widths)
    centers = cells.centers(k, rng)
    owner = cdist(cells.points, centers, "sqeuclidean").argmin(axis=1)
    counts = np.bincount(owner, cells.counts, minlength=k).astype(np.float64)
    return Placed(centers, counts, np.sqrt(cells.squared_errors(centers)))


def of_leaves(leaves: Cloud, fitted: Placed, k: int, rng: np.random.Generator, clustered: Clustering) -> Placed:
    """k centres of the leaves of a tree, moved to where the steps of the fit found the means of their rows.

    Of the errors, those of the fitted centres are shared by all leaves that were moved along: they do not average out.
    """
    points, of = shifted(leaves.points, leaves.weights, fitted)
    centers = clustered(points, leaves.weights, k, rng)
    owner = cdist(points, centers, "sqeuclidean").argmin(axis=1)
    counts = np.bincount(owner, leaves.weights, minlength=k).astype(np.float64)
    shared = np.bincount(owner, leaves.weights * fitted.errors[of] ** 2, minlength=k) / np.maximum(counts, 1e-300)
    own = Histogram(points, leaves.weights, leaves.weights, leaves.deviation, np.sqrt(leaves.spreads)).squared_errors(centers)
    return Placed(centers, counts, np.sqrt(own + shared))


def of_recovered(cells: Placed, fitted: Placed, k: int, rng: np.random.Generator, clustered: Clustering) -> Placed:
    """k centres of the clusters that were found in a projection, moved in the same way."""
    shown = Placed(*(part[cells.counts > 0] for part in cells))
    points, _ = shifted(shown.centers, shown.counts, fitted)
    return merged(shown._replace(centers=points), k, rng, clustered)


def shifted(points: Floats, weights: Floats, fitted: Placed) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Points moved so that the weighted mean of those nearest to a fitted centre is that centre, and which centre that is: the
    steps of a fit know better where means are than the tree did."""
    has_rows = np.flatnonzero(fitted.counts > 0) if (fitted.counts > 0).any() else np.arange(len(fitted.counts))
    near = cdist(points, fitted.centers[has_rows], "sqeuclidean").argmin(axis=1)
    total = np.bincount(near, weights, minlength=len(has_rows))
    sums = np.stack([np.bincount(near, weights * column, minlength=len(has_rows)) for column in points.T], axis=1)
    moves = fitted.centers[has_rows] - sums / np.maximum(total, 1e-300)[:, None]
    return points + np.where(total > 0, 1.0, 0.0)[near, None] * moves[near], has_rows[near]
