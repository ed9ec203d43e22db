"""The default for private k-means: counts of a public binary tree, ordinary clustering of what they show, then relative steps.

Three ideas carry it. A stage of the tree releases several bits of a row's cell at once, since a row is in one child
whatever their number. More centres than asked for are recovered where the predicted noise allows, and merged. After the
first recovery everything is relative to released centres, with a clip radius measured before every step, and shrunken
towards what is known, so that steps average noise instead of adding it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT, Ticket
from kveil.kernel.loss import Plan
from kveil.models._growth import Leaves, grow, with_means
from kveil.models._method import Facts, Found, shares
from kveil.models._relative import Placed, one_mean, relative_steps
from kveil.models._task import Task
from kveil.models._view import View, shrunk, within
from kveil.partition.projection import random_axes
from kveil.privatise.pool import Pool
from kveil.solve.wkmeans import thorough_kmeans
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers
from kveil.summary.cells import MOMENT_TOP, Residuals, moments
from kveil.summary.frame import Frame
from kveil.tuning import Tree as TreeTuning

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_LEAVES = 512  # with more, leaves are small, their middles will do, and looking for the nearest one takes too long
LEAST_UNITS, WIDEST = 2**14, 2.0**49  # of a ledger's units, so that shares are not lost in rounding; of a deviation, in steps


class Tree:
    """Private k-means by a tree of noisy counts.

    Private:      the rows and their number.  Public: all parameters, the random frame, and that a fit took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release; shares of the budget follow from released values.
    """

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[TreeTuning]] = TreeTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        """As fine a grid as exact distances and exact sums allow: narrow columns beside wide ones stay readable."""
        return max(2, min(23, 63 - (facts.max_rows - 1).bit_length(), 1 + int((51 - np.log2(facts.n_features)) // 2)))

    def __init__(self, task: Task) -> None:
        self.task = task
        is_pure = not task.delta or (task.domain.n_columns <= 3 and not task.is_zcdp)
        self.pool = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure)
        # Judged here, from public parameters, so that no draw in the middle of a fit can be refused.
        widest = self.pool.spread(1, task.domain.n_columns**0.5 * task.domain.top + 2, 0.02) ** 0.5
        if self.pool.kind != "none" and (self.pool.total * UNIT < LEAST_UNITS or widest > WIDEST):
            raise InvalidValue(
                'this budget is too small for method="tree", which shares it out in many draws. Raise epsilon, or try "mean".'
            )

    def plan(self) -> Plan | None:
        return self.pool.plan()

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        self.pool.open(ticket)
        return _Fit(View(self.task, self.pool, source), self.task.tuning, rng).run()


class _Fit:
    """One fit, stage by stage: what is shared out, in which order, and when it is better to stop at one mean."""

    def __init__(self, view: View, tuning: TreeTuning, rng: np.random.Generator) -> None:
        self.view, self.pool, self.tuning, self.rng = view, view.pool, tuning, rng
        self.k, self.d = view.k, view.d
        self.is_pure = self.pool.kind == "pure"
        self.is_low = self.d <= 3
        self.p = self.d if self.d <= (12 if self.is_pure else 16) else 12

    def run(self) -> Found:
        view, pool, k, d = self.view, self.pool, self.k, self.d
        progress("looking at the whole", 1, 5)
        share = 0.05 if self.is_pure and self.p < d else 0.01
        n, raw_sum = view.rows(share)
        doubt = pool.deviation(share)
        if self.p < d and pool.spread(d, view.reach, 0.7) * (k / n) ** 2 > 2 * view.reach**2:
            return one_mean(view, np.zeros(d), float(view.reach), n, doubt)
        middle, radius = np.zeros(d), float(view.reach)
        if not self.is_low:
            middle = self._mean(raw_sum, n)
            cap = view.reach + float(np.linalg.norm(middle))
            radius = view.quantile(view.frame(middle), 0.95 if self.p < d else self.tuning.q, 0.02, cap)
            rest = 0.95 * (0.75 - (1 - pool.left))
            if self.p < d and pool.spread(d, radius, rest) * (k / n) ** 2 > radius**2:
                return one_mean(view, middle, radius, n, doubt)
        frame, half = self._frame(middle, radius, n)
        progress("growing the tree", 2, 5)
        leaves = grow(view, frame, half, self._stage_bits(n), self._of_stages() / len(self._stage_bits(n)))
        if not self.is_low and len(leaves.points) <= MOST_LEAVES:
            progress("looking into the leaves", 3, 5)
            leaves = with_means(view, frame, leaves, 0.3 * self._tree_share())
        progress("recovering centres", 4, 5)
        placed, n_steps = self._seeded(leaves, middle) if self.p == d else self._recovered(frame, leaves, middle, radius, n)
        placed = relative_steps(view, placed, n_steps)
        return view.found(placed.centers, shares(placed.counts), placed.errors)

    def _mean(self, raw_sum: Integers, n: float) -> Floats:
        share = 0.04
        if self.is_pure and self.p < self.d:
            share = min(0.5, max(0.04, 10 * self.d / (n * float(self.pool.total))))
        reach = self.view.reach
        noisy = self.pool.vectors("sum of rows", raw_sum, reach, share)
        variance = np.array([self.pool.spread(self.d, reach, share) / n**2])
        return np.asarray(within(shrunk(noisy / n, variance), reach)[0])

    def _frame(self, middle: Floats, radius: float, n: float) -> tuple[Frame, Floats]:
        """The axes of the tree, and how far cells reach along each."""
        frame = self.view.frame(middle, radius)
        if self.p < self.d:
            reach = int(np.ceil(min(radius, 1.5 * radius * np.sqrt(self.p / self.d))))
            axes = random_axes(self.d, self.p, self.rng)
            return replace(frame, axes=axes, reach=reach), np.full(self.p, min(radius, 2.5 * radius / np.sqrt(self.d)))
        if self.is_low:
            return frame, self.view.half
        share = 0.08 if self.is_pure else 0.02
        (raw,) = self.view.source.map_reduce(moments, frame, grid=self.view.task.domain)
        r0, top = float(frame.radius), float(MOMENT_TOP**2)
        noisy = self.pool.vectors("squares", raw, MOMENT_TOP**2, share)[0] / top * r0**2 / n
        own = np.sqrt(self.pool.spread(self.d, 1.0, share) / self.d) * r0**2 / n
        variance = np.clip(noisy, max(own, 1e-6 * r0**2), r0**2)
        stage = self.pool.deviation(self._of_stages() / len(self._stage_bits(n)))
        factor = self.tuning.a or 4 if self.p <= 8 and stage <= (0.0002 if self.is_pure else 0.002) * n else 3
        return frame, np.minimum(np.minimum(factor * np.sqrt(variance), radius), self.view.half + np.abs(middle))

    def _tree_share(self) -> float:
        return 0.6 if self.is_low else 0.4 if self.is_pure and self.p == self.d else 0.25

    def _of_stages(self) -> float:
        return self._tree_share() * (1.0 if self.is_low else 0.7)

    def _stage_bits(self, n: float) -> list[int]:
        e = float(self.pool.total) * self._of_stages() if self.pool.kind != "none" else 1e6 / n
        if self.is_low:
            e = 2 * np.sqrt(e) if self.pool.kind == "zcdp" else e
            return [int(np.clip(round(np.log2((n * e / 10) ** (2 * self.d / (self.d + 2)))), 4, 20))]
        if self.is_pure:
            return [int(np.clip(np.floor(np.log2(n * e / 8)), 4, 16))]
        return [6, 5, 5] if self.p < self.d else [6, 6, 6]

    def _seeded(self, leaves: Leaves, middle: Floats) -> tuple[Placed, int]:
        """Centres of the leaves themselves, where the tree sees all columns. Nothing tells yet how far off they are."""
        centers = middle + thorough_kmeans(leaves.points, leaves.weights, self.k, self.rng)
        return Placed(centers, np.ones(self.k), np.full(self.k, float(self.view.reach))), self.tuning.steps

    def _recovered(self, frame: Frame, leaves: Leaves, middle: Floats, radius: float, n: float) -> tuple[Placed, int]:
        """Centres in all columns from clusters found in the projection, and how many relative steps are left for them."""
        k, d, pool = self.k, self.d, self.pool
        rounds = 1 + self.tuning.steps
        if self.is_pure:
            fits = [t for t in (3, 2) if pool.spread(d, radius, 0.9 * pool.left / t) * (k / n) ** 2 <= 0.1 * radius**2]
            rounds = fits[0] if fits else 1
        share = pool.left / rounds
        noise = np.sqrt(pool.spread(d, radius, 0.95 * share))
        most = max(k, min(4 * k, len(leaves.points) // 2))
        k2 = most if noise == 0 else int(np.clip(np.floor(0.3 * n * radius / noise), k, most))
        seeds = np.rint(thorough_kmeans(leaves.points, leaves.weights, k2, self.rng))
        bases, radii = np.zeros((k2, d), dtype=np.int64), np.full(k2, frame.radius, dtype=np.int64)
        found = self.view.means(
            Residuals(frame, Centers(seeds, None), "projected", "centred", bases, radii), 0.05 * share, 0.95 * share
        )
        counts, means = np.where(found.is_weak, 0.0, found.counts), np.where(found.is_weak[:, None], 0.0, found.moves)
        merged = Placed(means, counts, np.where(found.is_weak, self.view.reach, found.errors))
        if k2 > k:
            merged = _merged(merged, k, self.rng)
        return merged._replace(centers=within(middle + merged.centers, self.view.reach)), rounds - 1


def _merged(cells: Placed, k: int, rng: np.random.Generator) -> Placed:
    """k centres of released cells: post-processing, and the noise of cells that go together is averaged."""
    strong = cells.counts > 0
    if not strong.any():
        return Placed(np.zeros((k, cells.centers.shape[1])), np.zeros(k), np.full(k, cells.errors.max()))
    points, counts, errors = cells.centers[strong], cells.counts[strong], cells.errors[strong]
    centers = thorough_kmeans(points, counts, k, rng)
    owner = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
    total = np.bincount(owner, counts, minlength=k).astype(np.float64)
    noise = np.sqrt(np.bincount(owner, (errors * counts) ** 2, minlength=k))
    return Placed(centers, total, np.where(total > 0, noise / np.maximum(total, 1.0), cells.errors.max()))
