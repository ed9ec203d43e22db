"""Private swaps among the points of a universe. Costs stay behind the desk from one choice to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kveil.arrays import Integers, Steps
from kveil.desk.base import Mechanism
from kveil.desk.pool import Pool
from kveil.progress import step as progress
from kveil.questions.base import Part
from kveil.questions.saturating import MOST, add, total
from kveil.solve import _kernels
from kveil.solve.loss import Loss
from kveil.space.universe import Space

Choose = Callable[[str, Integers, int], int]  # label, raw costs, how much what a row adds to them may differ; the index chosen

BLOCK_PAIRS, MOST_PAIRS = 2**22, 2**25  # distances worked on, and kept, at once


@dataclass(frozen=True, eq=False)
class Walk(Mechanism):
    """Centres after `n_steps` swaps from public ones, each drawn by the exponential mechanism from all swaps, and a last choice.

    Private:      the demand.  Public: the universe, the candidates, the start, the number of steps.
    Neighbours:   those of the pool; a person has at most q rows.
    Sensitivity:  given centres F that are public by now, a row at p adds between 0 and loss(d2(p)) to the cost of any swap, d2
                  being the distance to the second nearest of F: one of the two nearest stays. So q rows move all costs one way,
                  by at most q R, R the largest loss(d2) over the whole universe (replace-one: 2 q R). In the last choice a row
                  adds loss(d(p, F_j)), which over j differs by at most the largest such difference over the universe.
    Cost:         `share` for every step and for the last choice. R follows from released centres: adaptive composition.
    """

    space: Space
    candidates: Integers
    loss: Loss
    start: Integers
    n_steps: int
    share: float
    rng: np.random.Generator

    def release(self, behind: tuple[Integers, ...], account: Pool) -> Integers:
        """Indices (k,) of the centres chosen last."""
        (raw_counts,) = behind

        def choose(label: str, raw_costs: Integers, differ: int) -> int:
            reason = "a row moves costs one way, within a public range"
            return account.choose(Part(label, "costs", differ, reason=reason), raw_costs, self.share)

        costs = PlaceCosts(self.space, raw_counts, self.candidates, self.loss)
        return walk(self.space, costs, self.start, self.n_steps, choose, self.rng)


def walk(space: Space, costs: PlaceCosts, start: Integers, n_steps: int, choose: Choose, rng: np.random.Generator) -> Integers:
    """`n_steps` private swaps from public centres, then a private choice among all sets on the way, the start too.

    Only the set chosen last is to be released. Where nobody in the universe could tell the choices apart, any will do and nothing
    is drawn; where no other point is left, the walk ends. Both show in public facts alone.
    """
    sets = [start]
    for step in range(n_steps):  # fixed before the data is seen
        progress("private swap", step + 2, n_steps + 2)
        centers = sets[-1]
        free = np.flatnonzero(~np.isin(costs.candidates, centers))
        if not len(free):
            break
        differ = int(costs.loss.of(space.nearest(centers)[2]).max())  # over the universe, never over the demand
        raw = costs.swaps(centers)[:, free].ravel()
        chosen = choose("swap", raw, differ) if differ else int(rng.integers(raw.size))
        x, y = divmod(chosen, len(free))
        sets.append(np.concatenate([np.delete(centers, x), costs.candidates[free[y : y + 1]]]))
    progress("last choice", n_steps + 2, n_steps + 2)
    losses = np.array([costs.loss.of(space.nearest(centers)[1]) for centers in sets])  # (sets, n)
    differ = int((losses.max(axis=0) - losses.min(axis=0)).max())
    last = choose("which centres", costs.sets(sets), differ) if differ else len(sets) - 1
    return sets[last]


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
