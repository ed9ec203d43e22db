"""What the stages of a tree leave for a synopsis: cells, leaves or recovered centres. Nothing is drawn here."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.methods.ground import Ground
from kveil.methods.steps import Means
from kveil.methods.tree.growth import Grown
from kveil.methods.tree.stages import FirstLook
from kveil.partition.projection import AXIS_BITS
from kveil.questions.frame import Frame
from kveil.solve.histogram import Histogram
from kveil.solve.synopsis import Projected, Synopsis


def of_cells(ground: Ground, seen: FirstLook, cells: Histogram, half: Floats) -> Synopsis:
    """The grid over few columns."""
    is_kept = cells.weights > 0
    counts, points = np.where(is_kept, cells.weights, cells.counts), ground.positions(cells.points)
    return Synopsis("cells", points, counts, is_kept, half * ground.unit, cells.deviation, seen.n, seen.n_deviation)


def of_leaves(ground: Ground, seen: FirstLook, grown: Grown) -> Synopsis:
    """The leaves of a tree that saw all columns."""
    points, weights, _, halves = grown.leaves
    return Synopsis(
        "leaves", ground.positions(seen.middle + points), weights, np.ones(len(points), dtype=bool), halves * ground.unit,
        grown.deviation, seen.n, seen.n_deviation, middle_of(ground, seen), seen.total,
    )  # fmt: skip


def of_recovered(
    ground: Ground, seen: FirstLook, frame: Frame, grown: Grown, found: Means | None = None, deviation: float = 0.0
) -> Synopsis:
    """Means in all columns of clusters that were found in a projection, and the leaves there; or the leaves alone, before."""
    d = ground.d
    moves, counts, errors = (
        (np.zeros((0, d)), np.zeros(0), np.zeros(0)) if found is None else (found.moves, found.counts, found.errors)
    )
    return Synopsis(
        "centers", ground.positions(seen.middle + moves), counts, np.ones(len(counts), dtype=bool), np.zeros((len(counts), d)),
        deviation, seen.n, seen.n_deviation, middle_of(ground, seen), seen.total,
        errors=np.minimum(errors, ground.reach) * ground.length, projected=_projected(ground, seen, frame, grown),
        summed=ground.summed,
    )  # fmt: skip


def _projected(ground: Ground, seen: FirstLook, frame: Frame, grown: Grown) -> Projected:
    assert frame.axes is not None
    points, weights, _, halves = grown.leaves
    d, p = frame.axes.shape
    share = p / d if getattr(ground.task.tuning, "frame", "random") == "random" else 1.0  # principal axes see nearly all of it
    length, axes = ground.length, frame.axes / 2.0**AXIS_BITS
    return Projected(points * length, weights, halves * length, axes, seen.most, share, grown.deviation)


def middle_of(ground: Ground, seen: FirstLook) -> Floats | None:
    """The released mean of all rows, if there is one."""
    return None if seen.total is None else ground.positions(seen.middle)
