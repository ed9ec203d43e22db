"""Released points with weights and spreads, as ordinary clustering sees them: a synopsis in the distance of its model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.solve.synopsis import Synopsis, mean_cost

LEAST_SPREAD = 0.07  # of what even rows in the box of a leaf have


class Cloud(NamedTuple):
    """Points (m, p) of positive weight (m,), in the distance of the model.

    spreads: (m,) the mean squared distance of the rows behind a point from it.
    deviation: standard deviation of the noise in one weight.
    is_cells: whether these are middles of cells of one grid, not means of leaves of a tree.
    most: how many centres of equal size the budget tells apart; only a projection bounds it.
    """

    points: Floats
    weights: Floats
    spreads: Floats
    deviation: float
    is_cells: bool
    most: float = np.inf


def cloud(synopsis: Synopsis, unit: Floats | float) -> Cloud | None:
    """What a synopsis tells of where rows are; None if it has no points.

    unit: the length of 1 in every column: half-widths of the bounds where columns are scaled, else 1.

    Rows in a cell lie evenly, more or less. In a leaf of many columns they lie far closer than its box is wide: so the boxes are
    scaled until between leaves and within leaves add up to the cost of one mean, which the distances about the middle tell. Where
    clusters are tight, noise in that cost is larger than what is within leaves, so there is a least scale: with none, single
    leaves would pass for clusters.
    """
    whole, shown = mean_cost(synopsis.total), synopsis.projected
    if shown is not None:
        has_rows = shown.counts > 0
        points, weights, half = shown.points[has_rows], shown.counts[has_rows], shown.half[has_rows]
        inside = _fitted(points, weights, half, None if whole is None else whole.value * shown.share)
        return Cloud(points, weights, inside, shown.deviation, False, shown.most) if len(points) else None
    has_rows = synopsis.kept & (synopsis.counts > 0)
    if not has_rows.any():
        return None
    points, weights, half = synopsis.points[has_rows] / unit, synopsis.counts[has_rows], synopsis.half[has_rows] / unit
    if synopsis.kind == "cells" or synopsis.middle is None:
        return Cloud(points, weights, (half**2).sum(axis=1) / 3, synopsis.deviation, True)
    inside = _fitted(points - synopsis.middle / unit, weights, half, None if whole is None else whole.value)
    return Cloud(points, weights, inside, synopsis.deviation, False)


def _fitted(points: Floats, weights: Floats, half: Floats, whole: float | None) -> Floats:
    """Spreads of leaves about the middle, 0, whose rows have this mean squared distance from it; if it is None, of even rows."""
    even = (half**2).sum(axis=1) / 3
    if whole is None:
        return np.asarray(even)
    between = float(weights @ (points**2).sum(axis=1) / weights.sum())
    widest = float(weights @ even / weights.sum())
    return np.asarray(even * np.clip((whole - between) / max(widest, 1e-300), LEAST_SPREAD, 1.0))
