"""From k released centres to private medians of the rows nearest to each: noisy Weiszfeld steps, or draws from places around."""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.models._method import Found, shares
from kveil.models._seeds import Seeds
from kveil.models._view import View
from kveil.solve.shrink import shrunk, within
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers
from kveil.summary.medians import Places, Pulls, place_costs, pulls

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OF_SCALE, OF_SIZES = {"pure": 0.08, "zcdp": 0.04, "none": 0.04}, 0.04  # of what is left for medians
OF_PULLS = 0.9  # of a step; the rest is for its divisor
MOST_STEPS = {"pure": 4, "zcdp": 12, "none": 12}  # noise of averaged steps grows with the root of their number if pure, else not
MOST_NOISE = {"pure": 0.25, "zcdp": 0.5, "none": 1.0}  # of a step on an average cluster, as a share of the typical distance
SMOOTHING, WIDEST_SMOOTHING = 0.25, 2.0**40  # of the typical distance; in steps
LEAST_WEIGHT = 0.5  # the divisor is not below that of a cluster half of whose rows are at the typical distance
MOST_RELAXED = 1.8
MOST_COLUMNS_DRAWN, PLACES_PER_AXIS = 3, {1: 257, 2: 33, 3: 11}
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


def medians(view: View, seeds: Seeds) -> Found:
    """Private medians from released seeds, with all that is left of the budget; k copies of one if there was one seed.

    Private:      the rows.  Public: all parameters and the seeds; the number of steps, the smoothing and the places follow
                  from these and from released values.
    Neighbours, sensitivity and cost: those of `Pool`, for every release; `summary.medians` bounds what a row adds.
    """
    seeds = seeds._replace(centers=within(seeds.centers, view.reach))  # exact labels need centres in the ball of the rows
    scale = _scale(view, seeds)
    kept = OF_SIZES * view.pool.left
    recover = _drawn if view.task.tuning.recovery == "grid" else _stepped
    centers, errors = recover(view, np.rint(seeds.centers).astype(np.int64), scale, kept)
    sizes = view.pool.counts("rows near each centre", _raw_sizes(view, centers, scale), view.pool.left)  # public, charged
    if len(centers) == view.k:
        return view.found(centers, shares(sizes), errors)
    k = view.k
    return view.found(np.repeat(centers, k, axis=0), np.full(k, 1 / k), np.repeat(errors, k), (ONE_MEDIAN,))


def _scale(view: View, seeds: Seeds) -> Scale:
    codes = Centers(np.rint(seeds.centers), None)
    distance = view.quantile(view.frame(), 0.5, OF_SCALE[view.pool.kind] * view.pool.left, max(1.0, seeds.reach), codes)
    given = view.task.tuning.smoothing
    smoothing = SMOOTHING * distance if given is None else given / view.length
    top = 2 ** min(20, 61 - (view.source.max_rows - 1).bit_length())  # sums stay below 2**62
    return Scale(distance, min(max(1.0, smoothing), WIDEST_SMOOTHING), np.maximum(seeds.counts, 1.0), top)


def n_steps(view: View, scale: Scale, share: float) -> int:
    """As many as leave the noise of each below a share of the typical distance, on a cluster of average size."""
    if view.task.n_steps is not None:
        return view.task.n_steps
    kind, rows = view.pool.kind, scale.rows.sum() / len(scale.rows)
    noise = np.sqrt(view.pool.spread(view.d, 1.0, OF_PULLS * share)) / rows  # of one step with the whole share
    if noise == 0:
        return MOST_STEPS[kind]
    most = MOST_NOISE[kind] / noise
    return int(np.clip(floor(most if kind == "pure" else most**2), 1, MOST_STEPS[kind]))


def _stepped(view: View, centers: Integers, scale: Scale, kept: float) -> tuple[Floats, Floats]:
    """Weiszfeld steps on the smoothed cost; the average of the last half, and the noise in it.

    A step divides the pull by the weight of the cluster. In d columns that overshoots nothing and falls short by about 1/d,
    which relaxing makes up for. Shrinking lets small moves, that noise explains, be none.
    """
    pool, d = view.pool, view.d
    steps, trail = n_steps(view, scale, pool.left - kept), []
    relaxed = min(MOST_RELAXED, d / (d - 1)) if d > 1 else MOST_RELAXED
    widest, noise = np.hypot(scale.distance, scale.smoothing), np.zeros(len(centers))
    for step in range(steps):  # fixed by now: stopping early would depend on rows
        progress("Weiszfeld step", step + 1, steps)
        share = (pool.left - kept) / (steps - step)
        state = Pulls(view.frame(), centers, scale.smoothing, scale.top)
        _, raw_pulls, raw_weights = view.source.map_reduce(pulls, state, grid=view.task.domain)  # (k, d), (k,)  secret
        pulled = pool.vectors("pulls", raw_pulls, scale.top, OF_PULLS * share) / scale.top  # public, charged
        weights = pool.vectors("weights", raw_weights[:, None], scale.top, share - OF_PULLS * share)[:, 0]  # public, charged
        weights = np.clip(weights / scale.top / scale.smoothing, LEAST_WEIGHT * scale.rows / widest, scale.rows / scale.smoothing)
        noise = relaxed * np.sqrt(pool.spread(d, 1.0, OF_PULLS * share)) / weights
        moves = shrunk(relaxed * pulled / weights[:, None], noise**2)
        moves[noise > widest] = 0.0  # noise alone, of a cluster with few rows, if any
        trail.append(within(centers + moves, view.reach))
        centers = np.rint(trail[-1]).astype(np.int64)
    last = trail[steps // 2 :]
    return np.mean(last, axis=0), noise / np.sqrt(len(last))


def _drawn(view: View, centers: Integers, scale: Scale, kept: float) -> tuple[Floats, Floats]:
    """Each median drawn by the exponential mechanism from a grid of places around its centre, then from a finer one.

    A row is in one cell, where what it adds to the costs of places differs by at most 2 top: exactly what `choose_each` asks.
    The noise in a draw follows from a cost that rises by about rows / (2 distance) times half the squared distance.
    """
    variance = 0.0
    for number, zoom in enumerate(ZOOMS):
        progress("drawing medians", number + 1, len(ZOOMS))
        share = (view.pool.left - kept) / (len(ZOOMS) - number)
        axis = np.linspace(-1, 1, PLACES_PER_AXIS[view.d]) * max(zoom * scale.distance, 1.0)
        grid = np.rint(np.stack(np.meshgrid(*[axis] * view.d, indexing="ij"), axis=-1).reshape(-1, view.d)).astype(np.int64)
        places, radius = centers[:, None, :] + grid, float(np.sqrt((grid**2).sum(axis=1).max()))
        state = Places(view.frame(), centers, places, radius, scale.top)
        (raw,) = view.source.map_reduce(place_costs, state, grid=view.task.domain)  # (k, places)  secret
        chosen = view.pool.choose_each("medians", raw, 2 * scale.top, share)  # public, charged
        rate = view.pool.sharpness(2 * scale.top, share) * scale.top / radius
        variance = view.d * (2 * scale.distance / (rate * scale.rows) + (axis[1] - axis[0]) ** 2 / 12)
        centers = np.rint(within(places[np.arange(len(centers)), chosen].astype(np.float64), view.reach)).astype(np.int64)
    return centers.astype(np.float64), np.sqrt(variance)


def _raw_sizes(view: View, centers: Floats, scale: Scale) -> Integers:
    """Raw numbers of rows nearest to each centre."""
    state = Pulls(view.frame(), np.rint(centers).astype(np.int64), scale.smoothing, scale.top)
    return view.source.map_reduce(pulls, state, grid=view.task.domain)[0]
