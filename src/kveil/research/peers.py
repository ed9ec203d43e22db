"""Figure 3 of "k-variates++: more pluses in the k-means++" (ICML 2016), in shape: seeds of rows that lie at peers.

The rows are made up as the paper describes its own, so no number here is the paper's. Nothing is private in this figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.research.contest import cost
from kveil.solve.instances import kmeans_parallel, kmeans_plusplus
from kveil.solve.nodes import dkmeans_plusplus

OnStep = Callable[[str, int, int], None]

SEED = 2016  # of made-up rows and of public choices
RIVALS = ("k-means++", "k-means‖")
LOCAL_PICKS = ("uniform", "d2")


@dataclass(frozen=True)
class Crowd:
    """How many peers, rows and columns; the k and the shares of moved rows to try; data sets, and seeds of each."""

    peers: int = 40
    rows: int = 20_000
    columns: int = 50
    clusters: tuple[int, ...] = (5, 20, 40, 60)
    moved: tuple[float, ...] = (0.0, 0.05, 0.1, 0.25, 0.5)
    tables: int = 4
    seeds: int = 4


QUICK = Crowd(rows=4000, clusters=(5, 20), moved=(0.0, 0.1, 0.5), tables=2, seeds=2)


class Point(NamedTuple):
    """How much more seeds over nodes cost than a rival's: mean and standard error over data sets, in per cent."""

    local_pick: str
    rival: str
    k: int
    moved: float
    percent: float
    error: float
    scatter: float  # within peers, over that without moved rows


def figure_3(crowd: Crowd, on_step: OnStep) -> list[Point]:
    """Dk-means++ with either local pick against k-means++ and k-means‖, by the cost of the seeds alone."""
    points: list[Point] = []
    steps = list(product(crowd.clusters, crowd.moved))
    for number, (k, moved) in enumerate(steps, start=1):
        on_step(f"figure 3: k = {k}, {moved:.0%} moved", number, len(steps))
        parts = [peers(crowd, moved, table) for table in range(crowd.tables)]
        costs = np.array([_mean_costs(part, k, crowd.seeds, table) for table, part in enumerate(parts)])
        wider = float(np.mean([scatter(part) / scatter(peers(crowd, 0.0, table)) for table, part in enumerate(parts)]))
        for (own, local_pick), (other, rival) in product(enumerate(LOCAL_PICKS), enumerate(RIVALS, start=2)):
            percent = 100 * (costs[:, own] / costs[:, other] - 1)
            error = float(np.std(percent, ddof=1) / np.sqrt(len(percent))) if len(percent) > 1 else 0.0
            points.append(Point(local_pick, rival, k, moved, float(percent.mean()), error, wider))
    return points


def peers(crowd: Crowd, moved: float, table: int) -> list[Floats]:
    """Rows at peers, each even in a box of its own, of sides up to 0.3, in the unit cube; a share of them moved elsewhere."""
    rng = np.random.default_rng([SEED, table])
    shape = (crowd.peers, crowd.rows // crowd.peers, crowd.columns)
    middles, sides = rng.random((crowd.peers, 1, crowd.columns)), 0.3 * rng.random((crowd.peers, 1, crowd.columns))
    rows = (middles + sides * (rng.random(shape) - 0.5)).reshape(-1, crowd.columns)
    home = np.repeat(np.arange(crowd.peers), shape[1])
    leaves = rng.random(len(home)) < moved
    home[leaves] = (home[leaves] + rng.integers(1, max(2, crowd.peers), leaves.sum())) % crowd.peers
    return [rows[home == peer] for peer in range(crowd.peers)]


def scatter(parts: Sequence[Floats]) -> float:
    """Squared distances of rows to the mean of their peer: what the bound of Forgy nodes grows with."""
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts if len(part)))


def _mean_costs(parts: list[Floats], k: int, n_seeds: int, table: int) -> list[float]:
    """Of nodes that draw uniformly, of nodes that draw by distance, of k-means++, of k-means‖."""
    rows = np.concatenate(parts)
    ways: list[Callable[[np.random.Generator], Floats]] = [
        lambda rng: dkmeans_plusplus(parts, k, local_pick="uniform", random_state=rng),
        lambda rng: dkmeans_plusplus(parts, k, local_pick="d2", random_state=rng),
        lambda rng: kmeans_plusplus(rows, k, random_state=rng),
        lambda rng: kmeans_parallel(rows, k, random_state=rng),
    ]
    rngs = [np.random.default_rng([SEED, table, k, way, seed]) for way in range(len(ways)) for seed in range(n_seeds)]
    costs = [cost(rows, ways[place // n_seeds](rng)) for place, rng in enumerate(rngs)]
    return np.reshape(costs, (len(ways), n_seeds)).mean(axis=1).tolist()  # type: ignore[no-any-return]
