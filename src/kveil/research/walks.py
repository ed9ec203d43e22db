"""Private searches on their way: costs after every step, and what Figures 5 and 6 of the HST paper measure of them.

Exact costs, so for figures alone: a model releases one set of centres of a walk and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from kveil.arrays import Integers
from kveil.desk.pool import Pool
from kveil.desk.walk import PlaceCosts, walk
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import PrivacyUnit, floor_epsilon
from kveil.questions.base import Part
from kveil.solve.loss import Loss
from kveil.space.universe import Space

WINDOW = 5  # steps that an average is taken over


def steps_to_least(costs: Sequence[float]) -> int | None:
    """How many steps it takes until the average of five costs in a row is least: 1 if the first five are those.

    None where there are fewer. To count the last of those five in place of the first adds 4 to everybody.
    """
    if len(costs) < WINDOW:
        return None
    averages = np.convolve(costs, np.ones(WINDOW) / WINDOW, mode="valid")
    return 1 + int(np.argmin(averages))


def pure_pool(epsilon: float) -> tuple[Pool, Ledger]:
    """A budget for rows added or removed, and a ledger that holds just that."""
    budget = floor_epsilon(epsilon)
    pool = Pool(budget, Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    return pool, Ledger.memory("this search", budget, relation="add-remove")


def corrected_walk(
    space: Space, raw_counts: Integers, start: Integers, rng: np.random.Generator, *, epsilon: float, n_steps: int
) -> list[int]:
    """Exact costs after each private swap of the corrected search, with `epsilon` for all of it and the last choice.

    The swaps are those of `PrivateKMedian(method="local-search")` with so many steps; the costs are what it never shows.
    """
    costs, found = PlaceCosts(space, raw_counts, np.arange(space.n_points), Loss(is_squared=False)), list[int]()
    pool, ledger = pure_pool(epsilon)
    plan = pool.plan()
    assert plan is not None

    def choose(label: str, raw_costs: Integers, differ: int) -> int:
        chosen = pool.choose(Part(label, "costs", differ), raw_costs, 1 / (n_steps + 1))
        if len(found) < n_steps:
            found.append(int(raw_costs[chosen]))
        return chosen

    with ledger.reserve(plan) as ticket:
        pool.begin(ticket)
        walk(space, costs, start, n_steps, choose, rng)
    return found


def aimless_sets(n_points: int, start: Integers, rng: np.random.Generator, n_steps: int) -> Iterable[Integers]:
    """Centres after each of `n_steps` swaps that are drawn uniformly from all: what a search does that sees no demand."""
    centers = np.array(start, dtype=np.int64)
    for _ in range(n_steps if len(centers) < n_points else 0):
        free = np.setdiff1d(np.arange(n_points), centers)
        centers = np.append(np.delete(centers, rng.integers(len(centers))), rng.choice(free))
        yield centers
