"""Eager local search: candidates one after another, each against all centres at once; a swap as soon as one lowers the cost.

It stops when no candidate has lowered it since the last swap: a local optimum, where the best swap of all would gain nothing
either. A pass over the candidates costs as much as one step of Algorithm 1 (`kveil.solve.local_search`), which makes one swap
in it; here every candidate may. Two engines do the same: `TableSearch` on rows of distances, `GraphSearch` on arcs of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Integers, Steps
from kveil.solve import _graph_kernels, _kernels
from kveil.solve.demand import Demand
from kveil.solve.local_search import BLOCK_PAIRS, MOST_PAIRS, Found, Near, two_nearest
from kveil.solve.loss import Loss
from kveil.space.graph import Graph
from kveil.space.matrix import Precomputed
from kveil.space.universe import Space, seal

Across = tuple[Steps, Integers]  # rows of distances to all points; which row is whose, demand by demand
Block = tuple[Steps, Integers, Integers]  # rows of distances; which of them are the candidates'; the candidates

ONE_BY_ONE = 4  # times as long to try a candidate by itself as with all others
NEXT, PART = 200, 20  # candidates at least, and of how many one, that are tried by themselves before all are valued again


class Search(Protocol):
    """An engine: improves any centres for one demand."""

    def improve(self, centers: ArrayLike, candidates: Integers, max_rounds: int) -> Found:
        """The centres after swaps with candidates, tried in this order, round after round until a full round brings none."""
        ...

    def settle(self, centers: ArrayLike, candidates: Integers, max_rounds: int) -> Found:
        """As `improve`, in the order that suits the engine: for many candidates and centres that are good already."""
        ...


class TableSearch:
    """The engine for universes whose distances are had by the row, and for small ones of any kind."""

    def __init__(self, space: Space, demand: Demand, loss: Loss, *, block_pairs: int = BLOCK_PAIRS) -> None:
        self.space, self.demand, self.loss = space, demand, loss
        self._block = max(1, block_pairs // max(1, len(demand.indices)))
        self.table: Steps | None = None
        self.across: Across | None = None
        if fits(space, demand):
            self.table, self.across = _table(space, demand.indices)

    def improve(self, centers: ArrayLike, candidates: Integers, max_rounds: int) -> Found:
        state = self._start(np.array(centers, dtype=np.int64))
        self._improve(state, candidates, max_rounds)
        return Found(state.centers, int(state.totals[0]))

    def settle(self, centers: ArrayLike, candidates: Integers, max_rounds: int) -> Found:
        """All candidates are valued at once and the most promising tried, the best first; then again, until none can lower the
        cost. Bounds (`kveil.solve._kernels.may_pay`) tell of most candidates that they need not be tried anew."""
        if self.across is None:
            return self.improve(centers, candidates, max_rounds)
        state = self._start(np.array(centers, dtype=np.int64))
        for _ in range(max_rounds):
            n_hopeful = _n_hopeful(state, candidates)
            if n_hopeful * ONE_BY_ONE > len(candidates):
                rows, places = self.across
                _kernels.try_all(rows, places, np.argsort(state.owner, kind="stable"), state)
                n_hopeful = _n_hopeful(state, candidates)
            if not n_hopeful:
                break
            others = candidates[~state.is_center[candidates]]
            others = others[np.argsort(state.bound[others], kind="stable")]  # the hopeful ones come first
            self._improve(state, others[: max(n_hopeful, NEXT, len(candidates) // PART)], max_rounds)
        return Found(state.centers, int(state.totals[0]))

    def _improve(self, state: _kernels.State, candidates: Integers, max_rounds: int) -> None:
        kept = [self._rows(candidates)] if self._is_small(candidates) else None
        idle = 0
        for _ in range(max_rounds):
            for rows, picks, points in kept or self._blocks(candidates):
                idle = _kernels.swap_eagerly(rows, picks, points, idle, len(candidates), state)
            if idle >= len(candidates):
                break

    def _start(self, centers: Integers) -> _kernels.State:
        rows, picks, _ = self._rows(centers)
        apart = np.ascontiguousarray(rows[picks].T)
        return _state(self.space, self.demand.weights, self.loss, centers, apart, two_nearest(apart, self.space.diameter))

    def _rows(self, points: Integers) -> Block:
        if self.table is not None:
            return self.table, points, points
        rows = self.space.distances(points, self.demand.indices)
        seal(rows)  # as a table is: to the compiler an array that may be written is another type
        return rows, np.arange(len(points)), points

    def _is_small(self, candidates: Integers) -> bool:
        return self.table is not None or len(candidates) * len(self.demand.indices) <= MOST_PAIRS

    def _blocks(self, candidates: Integers) -> Iterator[Block]:
        for start in range(0, len(candidates), self._block):
            yield self._rows(candidates[start : start + self._block])


class GraphSearch:
    """The engine for large graphs: a bounded search from every candidate instead of a row of distances."""

    def __init__(self, space: Graph, demand: Demand, loss: Loss) -> None:
        self.space, self.demand, self.loss = space, demand, loss
        self.graph = space.indptr, space.heads, space.lengths
        self._weights = np.zeros(space.n_points, dtype=np.int64)
        self._weights[demand.indices] = demand.weights
        most = len(space.heads) + space.n_points + 1
        self.room = _graph_kernels.Room(
            np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int32),
            np.full(space.n_points, _graph_kernels.FAR, dtype=np.int32), np.empty(space.n_points, dtype=np.int32),
        )  # fmt: skip

    def improve(self, centers: ArrayLike, candidates: Integers, max_rounds: int) -> Found:
        state = self.start(np.array(centers, dtype=np.int64))
        idle = 0
        for _ in range(max_rounds):
            idle = _graph_kernels.swap_eagerly(self.graph, candidates, idle, len(candidates), state, self.room)
            if idle >= len(candidates):
                break
        return Found(state.centers, int(state.totals[0]))

    settle = improve  # a search costs what is near a candidate, whatever the order

    def start(self, centers: Integers) -> _kernels.State:
        """The books of these centres, which a search then changes."""
        owner, first, second, runner = self.space.nearest(centers)
        runner[second >= self.space.diameter] = -1
        return _state(self.space, self._weights, self.loss, centers, np.empty((0, 0), np.int32), (owner, runner, first, second))


def search_for(space: Space, demand: Demand, loss: Loss, n_clusters: int, n_searches: int = 1) -> Search:
    """The engine that suits a universe and the number of searches to come.

    A table of a graph takes a full search for every demand; an eager search without one, of some four passes, about 4 n / k.
    """
    if isinstance(space, Graph):
        is_worth_it = len(demand.indices) * n_clusters < 4 * space.n_points * n_searches
        return TableSearch(space, demand, loss) if is_worth_it and fits(space, demand) else GraphSearch(space, demand, loss)
    return TableSearch(space, demand, loss)


def fits(space: Space, demand: Demand) -> bool:
    """Whether all points can be candidates: their distances to the demand may be kept, or are at hand anyway."""
    return isinstance(space, Precomputed) or space.n_points * len(demand.indices) <= MOST_PAIRS


def _table(space: Space, demand: Integers) -> tuple[Steps, Across]:
    """Distances (n, m) of all points to the demand, and the same by the demand, which on a graph takes a search each."""
    if isinstance(space, Precomputed):
        table = space.matrix if len(demand) == space.n_points else np.ascontiguousarray(space.matrix[demand].T)
        across = space.matrix, demand
    else:
        rows = space.distances(demand)
        table, across = np.ascontiguousarray(rows.T), (rows, np.arange(len(demand)))
    seal(table, across[0])
    return table, across


def _n_hopeful(state: _kernels.State, candidates: Integers) -> int:
    """Of how many candidates it is not known that no swap for them would lower the cost."""
    is_hopeful = (state.bound - state.totals[1] < state.totals[0]) & ~state.is_center
    return int(np.count_nonzero(is_hopeful[candidates]))


def _state(space: Space, weights: Integers, loss: Loss, centers: Integers, apart: Steps, near: Near) -> _kernels.State:
    is_center = np.zeros(space.n_points, dtype=np.bool_)
    is_center[centers] = True
    removal, totals = np.zeros(len(centers), dtype=np.int64), np.zeros(2, dtype=np.int64)
    bound = np.full(space.n_points, _kernels.UNTRIED)
    state = _kernels.State(
        weights, loss.is_squared, loss.shift, centers, is_center, space.diameter, apart, *near, removal, bound, totals
    )
    _kernels.take_stock(state)
    return state
