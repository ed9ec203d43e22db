"""Starts that look at no data: centres spread or packed over the public domain. All randomness here is public."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kveil.arrays import Floats
from kveil.methods.task import Task
from kveil.solve.kmeans import weighted_kmeans
from kveil.space.euclidean import Centers, clip, evenly, nearest, units

AUTO = "packing"  # costs what "spread" does (2 % less, give or take 2 %, over nine sets), and is many times quicker to find
MOST_NUMBERS = 4_000_000  # drawn for a spread start, so that wide domains stay cheap
REJECTIONS = 100  # in a row, after which a distance counts as too large
FINEST = 64  # the distance is found to one part in this many


def resolved(task: Task) -> Task:
    """The task with "auto" replaced by the start it stands for."""
    return replace(task, init=AUTO) if isinstance(task.init, str) and task.init == "auto" else task


def start(task: Task, rng: np.random.Generator) -> Floats:
    """The starting centres that `task.init` asks for, inside the domain."""
    if not isinstance(task.init, str):
        return clip(task.domain, task.init)
    return packing(task, rng) if task.init == "packing" else spread(task, rng)


def spread(task: Task, rng: np.random.Generator) -> Floats:
    """Centres spread over the domain: k-means of points drawn evenly from it."""
    domain = task.domain
    unit = units(domain, task.scaling)
    n_points = max(4 * task.n_clusters, min(max(1000, 40 * task.n_clusters), MOST_NUMBERS // domain.n_columns))
    points = (evenly(domain, n_points, rng) - domain.center) / unit
    found = weighted_kmeans(points, np.ones(len(points)), task.n_clusters, rng, n_starts=1, max_steps=20)
    return domain.decode(domain.encode(domain.center + found * unit))  # on the grid: the last bits of a float sum may vary


def packing(task: Task, rng: np.random.Generator) -> Floats:
    """Random centres at least a from the wall and 2 a from each other, for the largest a that is found by bisection.

    In a box whose columns differ in width, a column narrower than 2 a stays in its middle. Distances are integers, in steps
    of the widest column, so the answer is the same on every machine.
    Reference: Su, Cao, Li, Bertino, Jin (2016), sphere packing.
    """
    domain = task.domain
    unit = units(domain, task.scaling)
    widest = (domain.half / unit).max() * unit
    reach = domain.top * domain.half / widest  # of every column, in steps
    low, high = 0, domain.top
    best = _packed(task, reach, 0, rng)
    while high - low > max(1, low // FINEST):
        middle = (low + high) // 2
        found = _packed(task, reach, middle, rng)
        low, high, best = (low, middle, best) if found is None else (middle, high, found)
    assert best is not None  # every point is at least 0 from the others
    return clip(domain, domain.center + best * (widest / domain.top))


def _packed(task: Task, reach: Floats, a: int, rng: np.random.Generator) -> Floats | None:
    """k points that far apart, in steps; None after too many rejections in a row."""
    found, n_found, rejected = np.empty((task.n_clusters, task.domain.n_columns)), 0, 0
    while True:
        batch = (evenly(task.domain, REJECTIONS, rng) - task.domain.center) / task.domain.half
        batch = np.rint(batch * np.maximum(reach - a, 0.0))
        apart = nearest(batch, Centers(found[:n_found], None))[1] if n_found else np.full(REJECTIONS, 4 * a * a)
        for i in range(REJECTIONS):
            if apart[i] < 4 * a * a:
                rejected += 1
            else:
                found[n_found], n_found, rejected = batch[i], n_found + 1, 0
                apart = np.minimum(apart, ((batch - batch[i]) ** 2).sum(axis=1).astype(np.int64))
            if n_found == task.n_clusters or rejected == REJECTIONS:
                return found if n_found == task.n_clusters else None
