"""All swaps of one centre for one point of the universe, at once and exactly; and the local search that takes the best of them.

With d1, d2 the losses of demand o at its nearest and second nearest centre, and d its loss at candidate y:

    S[y]    = sum over all o of w_o min(d1, d)
    A[i, y] = sum over o whose nearest centre is i of w_o (min(d2, d) - min(d1, d))
    cost of the centres with y in the place of centre i = S[y] + A[i, y]

so all k n swaps take two additions for every pair of a demand and a candidate, whatever k is. Taking the best of all swaps is the
baseline of "k-Median Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy" (Algorithm 1);
`kveil.solve.eager` gets as far in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers, Steps
from kveil.solve import _kernels
from kveil.solve.demand import Demand
from kveil.solve.loss import Loss
from kveil.space.universe import Space

Near = tuple[Steps, Steps, Steps, Steps]  # owner, runner, first, second

MOST_PAIRS = 2**25  # distances kept at once: 128 MB
BLOCK_PAIRS = 2**22  # distances worked on at once by a thread


class Found(NamedTuple):
    """Centres (k,), as points of the universe, and their cost in units of loss times weight."""

    centers: Integers
    cost: int


class Swaps:
    """The costs of all swaps for one demand, again and again: distances are kept between calls where they fit."""

    def __init__(self, space: Space, demand: Demand, loss: Loss, *, block_pairs: int = BLOCK_PAIRS, n_threads: int = 1) -> None:
        self.space, self.demand, self.loss, self.n_threads = space, demand, loss, n_threads
        self._rows = max(1, block_pairs // space.n_points)
        self._kept = space.distances(demand.indices) if len(demand.indices) * space.n_points <= MOST_PAIRS else None

    def cost(self, centers: ArrayLike) -> int:
        """What the centres cost as they are."""
        near = [self.loss.of(rows[:, np.asarray(centers)].min(axis=1)) @ weights for rows, weights in self._blocks()]
        return int(sum(near))

    def costs(self, centers: ArrayLike) -> Integers:
        """What they cost after every swap, (k, n)."""
        places = np.asarray(centers, dtype=np.int64)
        if self.n_threads == 1:
            return self._part(places, self._blocks())
        with ThreadPoolExecutor(self.n_threads) as pool:
            parts = [pool.submit(self._part, places, self._blocks(t)) for t in range(self.n_threads)]
            return np.asarray(sum(part.result() for part in parts))

    def _part(self, centers: Integers, blocks: Iterator[tuple[Steps, Integers]]) -> Integers:
        stays = np.zeros(self.space.n_points, dtype=np.int64)
        moves = np.zeros((len(centers), self.space.n_points), dtype=np.int64)
        for rows, weights in blocks:
            owner, _, first, second = two_nearest(rows.take(centers, axis=1), self.space.diameter)
            near, far = self.loss.of(first), self.loss.of(second)
            _kernels.add_swaps(rows, weights, near, far, owner, (self.loss.is_squared, self.loss.shift), stays, moves)
        moves += stays
        return moves

    def _blocks(self, thread: int | None = None) -> Iterator[tuple[Steps, Integers]]:
        """Distances of a block of demands to all points, and the weights of those demands; of one thread's blocks, or of all."""
        starts = range(0, len(self.demand.indices), self._rows)
        for start in starts if thread is None else starts[thread :: self.n_threads]:
            block = slice(start, start + self._rows)
            rows = self.space.distances(self.demand.indices[block]) if self._kept is None else self._kept[block]
            yield rows, self.demand.weights[block]


def two_nearest(apart: Steps, diameter: int) -> Near:
    """From distances (m, k) to centres: positions of the nearest and second nearest, and distances to them."""
    owner, runner, first, second = np.empty((4, len(apart)), dtype=np.int32)
    _kernels.find_two_nearest(apart, diameter, owner, runner, first, second)
    return owner, runner, first, second


def best_swaps(swaps: Swaps, centers: ArrayLike, *, alpha: float = 1e-3, max_steps: int = 20) -> Found:
    """Algorithm 1: take the best swap of all while it lowers the cost by a part alpha / k. Ties: smallest place, then point."""
    places = np.array(centers, dtype=np.int64)
    cost, k = swaps.cost(places), len(places)
    for _ in range(max_steps if k < swaps.space.n_points else 0):
        costs = swaps.costs(places)
        costs[:, places] = np.iinfo(np.int64).max  # not in exchange for a centre
        x, y = divmod(int(costs.argmin()), swaps.space.n_points)
        if cost == 0 or costs[x, y] > (1 - alpha / k) * cost:
            break
        places[x], cost = y, int(costs[x, y])
    return Found(places, cost)
