"""From k released centres to private medians of the rows nearest to each: noisy Weiszfeld steps, or draws from places around."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.methods import steps
from kveil.methods.base import Found, shares
from kveil.methods.ground import Ground
from kveil.methods.medians.seeds import Seeds
from kveil.progress import step as progress
from kveil.questions.medians import MedianCosts, Pulls
from kveil.solve.placed import Placed
from kveil.solve.shrink import shrunk, within
from kveil.solve.synopsis import Distances, Step, Synopsis, of_steps
from kveil.space.euclidean import Centers

OF_SCALE, OF_SIZES = {"pure": 0.08, "zcdp": 0.04, "none": 0.04}, 0.04  # of what is left for medians
OF_PULLS = 0.9  # of a step; the rest is for its divisor
MOST_STEPS = {"pure": 4, "zcdp": 12, "none": 12}  # noise of averaged steps grows with the root of their number if pure, else not
MOST_NOISE = {"pure": 0.25, "zcdp": 0.5, "none": 1.0}  # of a step on an average cluster, as a share of the typical distance
SMOOTHING, WIDEST_SMOOTHING = 0.25, 2.0**40  # of the typical distance; in steps
LEAST_WEIGHT = 0.5  # the divisor is not below that of a cluster half of whose rows are at the typical distance
MOST_RELAXED = 1.8
MOST_COLUMNS_DRAWN, PLACES_PER_AXIS, PLACES_OF_ALL = 3, {1: 257, 2: 33, 3: 11}, {1: 4097, 2: 101, 3: 31}
ZOOMS = (1.0, 0.25)  # half-widths of the grids of places, in typical distances

ONE_MEDIAN = (
    "too little budget for so many centres: all are one private median. Use delta > 0, a smaller domain or fewer centres."
)


class Scale(NamedTuple):
    """What steps are made for, in steps of the grid. Released or public."""

    distance: float  # typical, of a row to its nearest centre
    smoothing: float  # h
    rows: Floats  # about how many are near each centre
    top: int  # what 1 counts as in integer sums


def medians(ground: Ground, seeds: Seeds) -> Found:
    """Private medians from released seeds, with all that is left of the budget; k copies of one if there was one seed.

    Private:      the rows.  Public: all parameters and the seeds; the number of steps, the smoothing and the places follow
                  from these and from released values.
    Neighbours, sensitivity and cost: those of `Pool`, for every release; `questions.medians` bounds what a row adds.
    """
    seeds = seeds._replace(centers=within(seeds.centers, ground.reach))  # exact labels need centres in the ball of the rows
    scale, bins = _scale(ground, seeds)
    kept = OF_SIZES * ground.desk.left
    recover = {"grid": _drawn, "all": _drawn_from_all}.get(ground.task.tuning.recovery, _stepped)
    centers, errors, before = recover(ground, np.rint(seeds.centers).astype(np.int64), scale, kept)
    sizes, noise = ground.desk.hold(_near(ground, centers, scale)).show(0, ground.desk.left)  # public, charged
    how = steps.Taken(before, noise, centers - before, None)
    synopsis = _kept(ground, seeds, steps.noted(ground, Placed(centers, sizes, errors), how, bins))
    if len(centers) == ground.k:
        return ground.found(centers, shares(sizes), errors, (), synopsis)
    k = ground.k
    return ground.found(np.repeat(centers, k, axis=0), np.full(k, 1 / k), np.repeat(errors, k), (ONE_MEDIAN,), synopsis)


def _kept(ground: Ground, seeds: Seeds, last: Step) -> Synopsis:
    """What the seeds released, if they kept it, and the last step."""
    if seeds.synopsis is not None:
        return replace(seeds.synopsis, steps=(last,))
    rows = float(np.maximum(last.counts, 0.0).sum()), last.count_deviation * len(last.counts) ** 0.5
    return of_steps(ground.d, (last,), *rows)


def _scale(ground: Ground, seeds: Seeds) -> tuple[Scale, Distances]:
    """What steps are made for, and the counts of distances to the nearest seed that it was read from."""
    codes = Centers(np.rint(seeds.centers), None)
    share = OF_SCALE[ground.desk.kind] * ground.desk.left
    distance, bins = steps.distance(ground, ground.frame(), 0.5, share, max(1.0, seeds.reach), codes)
    given = ground.task.tuning.smoothing
    smoothing = SMOOTHING * distance if given is None else given / ground.length
    top = 2 ** min(20, 61 - (ground.desk.max_rows - 1).bit_length())  # sums stay below 2**62
    return Scale(distance, min(max(1.0, smoothing), WIDEST_SMOOTHING), np.maximum(seeds.counts, 1.0), top), bins


def n_steps(ground: Ground, scale: Scale, share: float) -> int:
    """As many as leave the noise of each below a share of the typical distance, on a cluster of average size."""
    if ground.task.n_steps is not None:
        return ground.task.n_steps
    kind, rows = ground.desk.kind, scale.rows.sum() / len(scale.rows)
    noise = np.sqrt(ground.desk.spread(ground.d, 1.0, OF_PULLS * share)) / rows  # of one step with the whole share
    if noise == 0:
        return MOST_STEPS[kind]
    most = MOST_NOISE[kind] / noise
    return int(np.clip(floor(most if kind == "pure" else most**2), 1, MOST_STEPS[kind]))


def _stepped(ground: Ground, centers: Integers, scale: Scale, kept: float) -> tuple[Floats, Floats, Floats]:
    """Weiszfeld steps on the smoothed cost; the average of the last half, the noise in it, and the place before the last step.

    A step divides the pull by the weight of the cluster. In d columns that overshoots nothing and falls short by about 1/d,
    which relaxing makes up for. Shrinking lets small moves, that noise explains, be none.
    """
    pool, d = ground.desk, ground.d
    steps, trail = n_steps(ground, scale, pool.left - kept), []
    relaxed = min(MOST_RELAXED, d / (d - 1)) if d > 1 else MOST_RELAXED
    widest, noise, before = np.hypot(scale.distance, scale.smoothing), np.zeros(len(centers)), centers.astype(np.float64)
    for step in range(steps):  # fixed by now: stopping early would depend on rows
        progress("Weiszfeld step", step + 1, steps)
        share, before = (pool.left - kept) / (steps - step), centers.astype(np.float64)
        state = Pulls(ground.frame(), centers, scale.smoothing, scale.top)
        held = pool.hold(state)
        pulled = held.show(1, OF_PULLS * share).values / scale.top  # public, charged
        weights = held.show(2, share - OF_PULLS * share).values[:, 0]  # public, charged
        weights = np.clip(weights / scale.top / scale.smoothing, LEAST_WEIGHT * scale.rows / widest, scale.rows / scale.smoothing)
        noise = relaxed * np.sqrt(pool.spread(d, 1.0, OF_PULLS * share)) / weights
        moves = shrunk(relaxed * pulled / weights[:, None], noise**2)
        moves[noise > widest] = 0.0  # noise alone, of a cluster with few rows, if any
        trail.append(within(centers + moves, ground.reach))
        centers = np.rint(trail[-1]).astype(np.int64)
    last = trail[steps // 2 :]
    return np.mean(last, axis=0), noise / np.sqrt(len(last)), before


def _drawn(ground: Ground, centers: Integers, scale: Scale, kept: float) -> tuple[Floats, Floats, Floats]:
    """Each median drawn by the exponential mechanism from a grid of places around its centre, then from a finer one; the noise in
    them, and the places before the last draw."""
    errors, before = np.zeros(len(centers)), centers.astype(np.float64)
    for number, zoom in enumerate(ZOOMS):
        progress("drawing medians", number + 1, len(ZOOMS))
        share, before = (ground.desk.left - kept) / (len(ZOOMS) - number), centers.astype(np.float64)
        grid, spacing = _grid(np.full(ground.d, max(zoom * scale.distance, 1.0)), PLACES_PER_AXIS[ground.d])
        radius = float(np.sqrt((grid**2).sum(axis=1).max()))
        costs = MedianCosts(ground.frame(), centers, centers[:, None, :] + grid, radius, scale.top)
        centers, errors = _chosen(ground, costs, scale, spacing, share)
    return centers.astype(np.float64), errors, before


def _drawn_from_all(ground: Ground, centers: Integers, scale: Scale, kept: float) -> tuple[Floats, Floats, Floats]:
    """Each median drawn from a grid over the whole domain, with a density ~ exp(-epsilon cost/(2 reach)); the noise in them, and
    the centres.

    The centres say whose rows count, and nothing else. Costs are relative to the middle of the domain, which lies within `reach`
    of every place: a row then adds between -reach and reach, and the same costs but for a constant.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), section 6.2, whose log-concave density this is, on a grid.
    """
    progress("drawing medians", 1, 1)
    grid, spacing = _grid(ground.half, PLACES_OF_ALL[ground.d])
    places = np.tile(grid[(grid**2).sum(axis=1) <= ground.reach**2], (len(centers), 1, 1))
    costs = MedianCosts(ground.frame(), centers, places, float(ground.reach), scale.top, bases=np.zeros_like(centers))
    found, errors = _chosen(ground, costs, scale, spacing, ground.desk.left - kept)
    return found.astype(np.float64), errors, centers.astype(np.float64)


def _grid(half: Floats, per_axis: int) -> tuple[Integers, float]:
    """Places (per_axis^d, d) in whole steps, evenly over a box about 0, and how far apart they are on its longest axis."""
    axes = [np.linspace(-1, 1, per_axis) * side for side in half]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(half))
    return np.rint(grid).astype(np.int64), float(2 * half.max() / (per_axis - 1))


def _chosen(ground: Ground, costs: MedianCosts, scale: Scale, spacing: float, share: float) -> tuple[Integers, Floats]:
    """A place for each centre, and the noise in it.

    A row is in one cell, where what it adds to the costs of places differs by at most 2 top: exactly what `choose_each` asks.
    The noise in a draw follows from a cost that rises by about rows / (2 distance) times half the squared distance.
    """
    chosen = ground.desk.choose_each(costs, share)  # public, charged
    rate = ground.desk.sharpness(2 * scale.top, share) * scale.top / costs.radius
    variance = ground.d * (2 * scale.distance / (rate * scale.rows) + spacing**2 / 12)
    places = costs.places[np.arange(len(chosen)), chosen].astype(np.float64)
    return np.rint(within(places, ground.reach)).astype(np.int64), np.sqrt(variance)


def _near(ground: Ground, centers: Floats, scale: Scale) -> Pulls:
    """Asks for the rows nearest to each centre."""
    return Pulls(ground.frame(), np.rint(centers).astype(np.int64), scale.smoothing, scale.top)
