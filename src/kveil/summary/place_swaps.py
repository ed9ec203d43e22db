"""What centres cost a secret demand on a public universe, exactly and in whole units: after every swap, or set by set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kveil.solve import _kernels
from kveil.solve.loss import Loss
from kveil.space.universe import Space
from kveil.summary.saturating import MOST, add, total

Integers = NDArray[np.int64]
Steps = NDArray[np.int32]

BLOCK_PAIRS, MOST_PAIRS = 2**22, 2**25  # distances worked on, and kept, at once


class PlaceCosts:
    """Costs of a demand for one set of candidates, again and again. Everything it returns is secret.

    A row at point p adds loss(p) to a cost, the loss of the distance to its nearest centre: a function of p, the universe and the
    centres alone. `loss` comes from a public bound on the number of rows; should that be false, costs stop at 2**62.
    """

    def __init__(self, space: Space, raw_counts: Integers, candidates: Integers, loss: Loss) -> None:
        self.space, self.candidates, self.loss = space, candidates, loss
        self.occupied = np.flatnonzero(raw_counts)
        self.raw_weights = np.minimum(raw_counts[self.occupied], MOST // max(1, int(loss.of(space.diameter))))
        fits = len(self.occupied) * len(candidates) <= MOST_PAIRS
        self._kept = self._rows(slice(None)) if fits else None

    def swaps(self, centers: Integers) -> Integers:
        """Raw costs (k, c) of the centres with centre x replaced by candidate y, for all x and y.

        With a the nearest centre of a row, d1 <= d2 its losses there and at the second nearest, and d its loss at y: the row adds
        min(d1, d) unless x = a, and min(d2, d) if x = a.
        """
        owner, first, second, _ = self.space.nearest(centers)
        stays = np.zeros(len(self.candidates), dtype=np.int64)
        moves = np.zeros((len(centers), len(self.candidates)), dtype=np.int64)
        width = max(1, BLOCK_PAIRS // max(1, len(self.candidates)))
        for start in range(0, len(self.occupied), width):
            block = slice(start, start + width)
            here = self.occupied[block]
            near, far = self.loss.of(first[here]), self.loss.of(second[here])
            rows = self._rows(block) if self._kept is None else self._kept[block]
            terms = (self.loss.is_squared, self.loss.shift)
            _kernels.add_swaps(rows, self.raw_weights[block], near, far, owner[here], terms, stays, moves)
        return add(moves, stays)

    def sets(self, sets: list[Integers]) -> Integers:
        """Raw costs (sets,) of several sets of centres, each row's least among them taken off: no choice among them sees that,
        and a row then adds at most how much its costs differ, also where they stop."""
        near = np.array([self.loss.of(self.space.nearest(centers)[1][self.occupied]) for centers in sets])
        near -= near.min(axis=0)
        return np.array([total(self.raw_weights * losses) for losses in near], dtype=np.int64)

    def _rows(self, block: slice) -> Steps:
        """Distances of occupied points to the candidates, by whichever of them are fewer."""
        return np.ascontiguousarray(self.space.distances(self.occupied[block], self.candidates))
