"""The running time of the earlier version of the HST paper: seeds by a tree against seeds by k-median++, in CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from kveil.partition.hst import Hst
from kveil.research.hst_figures import OnStep, Size
from kveil.solve.hst import seeds_from_counts
from kveil.solve.metric_seeding import kmedian_plusplus
from kveil.space.universe import Space

FIXED = 20  # k, where the number of points is varied


class Timing(NamedTuple):
    """CPU seconds, the median of a few runs each. A tree can be kept: it serves every k and every demand on its universe."""

    universe: str
    points: int
    k: int
    plusplus: float
    tree: float
    search: float  # in a tree that is there


def timings(universes: Mapping[str, Callable[[int], Space]], size: Size, on_step: OnStep) -> list[Timing]:
    """Over k at the most points, and over points at k = 20."""
    found = []
    for name, universe in universes.items():
        spaces = list({space.n_points: space for space in map(universe, size.timed_points)}.values())  # there may be fewer images
        _timing(name, spaces[0], 2, 1)  # compiles
        tried = [(space, k) for space in spaces for k in size.timed_clusters if space is spaces[-1] or k == FIXED]
        for number, (space, k) in enumerate(tried, start=1):
            on_step(f"running time, {name}", number, len(tried))
            found.append(_timing(name, space, min(k, space.n_points), max(3, min(size.runs, 9))))
    return found


def _timing(name: str, space: Space, k: int, runs: int) -> Timing:
    everyone = np.ones(space.n_points, dtype=np.int64)
    seconds = []
    for number in range(runs):
        rng = np.random.default_rng(number)
        start = time.process_time()
        kmedian_plusplus(space, k, random_state=rng)
        drawn = time.process_time()
        tree = Hst.of(space, random_state=rng)
        planted = time.process_time()
        seeds_from_counts(tree, tree.sums(everyone), k, rng)
        seconds.append((drawn - start, planted - drawn, time.process_time() - planted))
    return Timing(name, space.n_points, k, *np.median(seconds, axis=0).tolist())
