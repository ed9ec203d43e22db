"""EUGkM: noisy counts of a uniform grid, then ordinary weighted k-means on its cells. For few columns."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.methods.base import Facts, Found, check_width, shares
from kveil.methods.lloyd import Lloyd, counts_share, mean_errors, means
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task
from kveil.progress import step as progress
from kveil.questions.cells import GridCells
from kveil.questions.cluster_sums import ClusterSums
from kveil.solve.choosing import CHOSE, chosen
from kveil.solve.sizing import wanted_cells
from kveil.solve.synopsis import Step, Synopsis, of_steps
from kveil.solve.wkmeans import thorough_kmeans
from kveil.space.euclidean import clip, farthest, units
from kveil.tuning import Grid as GridTuning

MOST_COLUMNS, MOST_CELLS = 3, 2**20
OF_ROWS = 0.05  # of the budget: the number of rows
STEP_SHARE = 0.5  # of the hybrid's budget: its Lloyd step


class UniformGrid:
    """Private k-means by one noisy histogram.

    Private:      the rows and their number.  Public: all parameters.
    Neighbours:   those of the plan.
    Sensitivity:  a row is in one cell, whose count moves by 1; a person with m rows moves m, and replacing twice that.
    Cost:         the whole budget as one charge: 5 % for the number of rows, unless `expected_rows` tells it, the rest for
                  the cells, empty ones too. Cells below 2 deviations (more, where there are many cells) count as empty.
                  The hybrid keeps half for one Lloyd step, whose counts and sums are those of `ClusterSums`.
    Reference:    Su, Cao, Li, Bertino, Jin (2016), with a threshold instead of clamping at 0, which is biased.
    """

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[GridTuning]] = GridTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        return Lloyd.bits(facts)

    def __init__(self, task: Task) -> None:
        if task.domain.n_columns > MOST_COLUMNS:
            raise InvalidValue(f'method="grid" takes at most {MOST_COLUMNS} features: its cells multiply. Use method="tree".')
        self.task = task
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=not task.is_zcdp)
        if task.tuning.hybrid:
            check_width(self.budget, task.domain.l2_sensitivity, STEP_SHARE / 2)

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        found = self._cells(desk, rng)
        return self._step(desk, found) if self.task.tuning.hybrid else found

    def _cells(self, desk: Curator, rng: np.random.Generator) -> Found:
        """k-means of the cells that stand out of the noise."""
        task, d = self.task, self.task.domain.n_columns
        progress("counting cells", 1, 1)
        n = task.expected_rows or number_of_rows(desk, OF_ROWS)
        share = desk.left - (STEP_SHARE if task.tuning.hybrid else 0.0)
        loss = float(desk.total) * share
        per_axis = cells_per_axis(n, 2 * np.sqrt(loss) if desk.kind == "zcdp" else loss, d)
        ((counts, deviation),) = desk.ask(GridCells(task.domain.top, per_axis), share)  # public, charged
        told = (n, desk.deviation(OF_ROWS)) if task.expected_rows is None else (counts.sum(), deviation * np.sqrt(len(counts)))
        least = 2 * deviation * np.sqrt(max(1.0, np.log(len(counts)) / 3))
        kept = np.flatnonzero(counts >= max(least, 0.5))
        if not len(kept):
            synopsis = of_steps(d, (), *told)
            k, notes = self._chosen(synopsis)
            unknown = np.full(k, farthest(task.domain))
            return Found(np.tile(task.domain.center, (k, 1)), shares(np.zeros(k)), notes, unknown, synopsis=synopsis)
        unit = units(task.domain, task.scaling)
        points = cell_middles(kept, per_axis, d) * task.domain.half / unit
        half, places = np.tile(task.domain.half / per_axis, (len(kept), 1)), task.domain.center + points * unit
        synopsis = Synopsis("cells", places, counts[kept], np.ones(len(kept), dtype=bool), half, deviation, *told)
        k, notes = self._chosen(synopsis)
        unknown = np.full(k, farthest(task.domain))  # the error of a centre without cells
        centers = thorough_kmeans(points, counts[kept], k, rng)
        owner = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)
        weights = np.bincount(owner, counts[kept], minlength=k).astype(np.float64)
        # A centre is sum c p / W over its cells, so noise in a count c moves it by (p - centre) / W. Of a small count all may be
        # noise: an empty cell that passed the threshold.
        noise = np.where(counts[kept] < 2 * least, counts[kept], deviation)
        arms = np.bincount(owner, noise**2 * (((points - centers[owner]) * unit) ** 2).sum(axis=1), minlength=k)
        errors = np.where(weights > 0, np.sqrt(arms) / np.maximum(weights, 1.0), unknown)
        errors = np.minimum(errors, unknown)
        places = clip(task.domain, task.domain.center + centers * unit)
        return Found(places, shares(weights), notes, errors, synopsis=synopsis)

    def _chosen(self, synopsis: Synopsis) -> tuple[int, tuple[str, ...]]:
        """How many centres: as many as asked for, or as released cells suggest, with a note that says why."""
        task = self.task
        if task.k_range is None:
            return task.n_clusters, ()
        best = chosen(synopsis, units(task.domain, task.scaling), task.k_range)
        return best.k, (f"{CHOSE}{best.why}.",)

    def _step(self, desk: Curator, found: Found) -> Found:
        """One DP-Lloyd step from the grid's centres, with what is left of the budget; a weak cluster stays where it was."""
        domain = self.task.domain
        assert found.errors is not None
        progress("Lloyd step", 1, 1)
        held = desk.hold(ClusterSums.of(found.centers, domain, self.task.scaling))
        of_counts = desk.left * float(counts_share(domain.n_columns, is_pure=desk.kind != "zcdp"))
        counts = held.show(0, of_counts).values  # public, charged
        of_sums = desk.left
        sums = held.show(1, of_sums).values
        weak = counts < max(1.0, 2 * desk.deviation(of_counts))
        centers = np.where(weak[:, None], found.centers, means(counts, sums, domain))
        deviation = np.sqrt(desk.spread(domain.n_columns, domain.l2_sensitivity, of_sums) / domain.n_columns)
        noise = (centers, counts, desk.deviation(of_counts), deviation, domain)
        errors = np.where(weak, found.errors, np.minimum(mean_errors(*noise), farthest(domain)))
        unit = units(domain, self.task.scaling)
        apart = np.where(weak, farthest(domain, unit), np.minimum(mean_errors(*noise, unit), farthest(domain, unit)))
        step = Step(counts, desk.deviation(of_counts), apart, found.centers, centers - found.centers)
        assert isinstance(found.synopsis, Synopsis)
        return replace(
            found, centers=centers, weights=shares(counts), errors=errors, synopsis=replace(found.synopsis, steps=(step,))
        )


def cells_per_axis(n: float, epsilon: float, d: int) -> int:
    """(n epsilon / 10)^(2 d / (d + 2)) cells in all, the same number along every axis."""
    cells = min(MOST_CELLS, wanted_cells(max(10.0, n * epsilon), d))
    return int(np.clip(round(cells ** (1 / d)), 2, int(MOST_CELLS ** (1 / d))))


def cell_middles(cells: NDArray[np.int64], per_axis: int, d: int) -> NDArray[np.float64]:
    """Middles of numbered cells, in half-widths of the domain: -1 to 1."""
    places = np.stack(np.unravel_index(cells, (per_axis,) * d), axis=1)
    return np.asarray((2 * places + 1) / per_axis - 1)
