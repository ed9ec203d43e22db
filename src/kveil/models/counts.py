"""Private centres among the points of a universe: noisy counts of a public partition, then an ordinary search."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Plan, zcdp_rho
from kveil.models._method import Found
from kveil.models._task import check_choice, check_count
from kveil.models._universe import OnUniverse, UniverseTask, found_points
from kveil.partition.hst import Hst
from kveil.partition.voronoi import Cells, voronoi
from kveil.privatise.cell_counts import NoisyCellCounts
from kveil.privatise.tree_counts import LEVELS, PATH, tree_weights
from kveil.solve.denoise import Denoised, denoised
from kveil.solve.pool_tree import consistent_counts, point_weights
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.summary.demand import cell_counts, point_counts, row_count
from kveil.tuning import Counts as CountsTuning

Counted = tuple[NDArray[np.float64], str]  # weights of the points, and how they were found

ROWS_PER_CELL = 4.0  # in scales of the noise: fewer and coarser cells see less, more and finer ones see mostly noise
CELLS_PER_CENTER, MOST_CELLS = 4, 4096


class Counts(OnUniverse):
    """Private centres by one noisy histogram of a public partition; the search that follows never meets a secret.

    Private:      the demand and its size, under replace-one too: a row that cannot be read is left out of a file, so that a
                  replaced one may be.  Public: the universe, its partition, all parameters. How many cells there are
                  follows from a released or declared size.
    Neighbours, sensitivity and cost: those of `NoisyCellCounts`; all after it is post-processing.
    Not covered:  running time; a universe that was made from the demand.
    """

    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[CountsTuning]] = CountsTuning

    def __init__(self, task: UniverseTask) -> None:
        check_choice("tuning.partition", task.tuning.partition, ("voronoi", "hst"))
        if task.tuning.cells is not None:
            check_count("tuning.cells", task.tuning.cells)
        self.task = task
        self.noise = _noise(task)

    def plan(self) -> Plan | None:
        if self.noise is None:
            return None
        return Plan(self.noise.charges, self.task.relation, self.task.unit, self.task.delta if self.task.is_zcdp else Fraction(0))

    def run(self, source: Source, ticket: Ticket | None, rng: np.random.Generator) -> Found:
        task = self.task
        if self.noise is None or ticket is None:
            (raw,) = source.map_reduce(point_counts, task.universe.n_points, grid=task.domain)
            return found_points(task, raw.astype(np.float64), rng)  # epsilon = infinity promises nothing
        progress("counting the demand", 1, 2)
        count = self._count_tree if task.tuning.partition == "hst" else self._count_cells
        weights, note = count(self.noise, source, ticket, rng)  # (n,)  public, charged
        progress("searching", 2, 2)
        return found_points(task, weights, rng, (note,))

    def _count_cells(self, noise: NoisyCellCounts, source: Source, ticket: Ticket, rng: np.random.Generator) -> Counted:
        """Weights of the points, from noisy counts of cells: a cell's mass is spread evenly over its points."""
        size = self._size(noise, source, ticket)  # public: declared or charged
        cells = voronoi(self.task.universe, self._n_cells(noise, size), rng)  # public
        (raw_counts,) = source.map_reduce(cell_counts, cells.owner, grid=self.task.domain)  # (m,)  secret
        counts = noise.release_counts(raw_counts, ticket).astype(np.float64)  # (m,)  public, charged
        clean = denoised(counts, cells.sizes, cells.groups, noise.scale)  # (m,)  public from here on
        return (clean.masses / cells.sizes)[cells.owner], _note(cells, clean)

    def _count_tree(self, noise: NoisyCellCounts, source: Source, ticket: Ticket, rng: np.random.Generator) -> Counted:
        """Weights of the points, from noisy counts of a random tree that are made to agree with each other."""
        task, tree = self.task, Hst.of(self.task.universe, levels=LEVELS, random_state=rng)  # public
        weights = tree_weights(tree, is_squared=task.is_zcdp)
        (raw_counts,) = source.map_reduce(point_counts, task.universe.n_points, grid=task.domain)  # (n,)  secret
        weighted = noise.release_counts((weights * tree.sums(raw_counts))[1:], ticket)  # (nodes - 1,)  public, charged
        shares = np.maximum(weights, 1) / noise.scale  # 1 / the scale of the noise in a node's count
        counts = np.concatenate([[0.0], weighted]) / np.maximum(weights, 1)
        return point_weights(tree, consistent_counts(tree, counts, 2 / shares**2), shares), f"{tree!r} was counted"

    def _size(self, noise: NoisyCellCounts, source: Source, ticket: Ticket) -> float:
        """The number of rows that the partition is made for."""
        if self.task.expected_rows is not None:
            return self.task.expected_rows
        if self.task.tuning.cells is not None:
            return 1.0  # not asked for
        (raw,) = source.map_reduce(row_count, None, grid=self.task.domain)  # (1,)  secret
        return float(noise.release_size(raw, ticket))

    def _n_cells(self, noise: NoisyCellCounts, size: float) -> int:
        if self.task.tuning.cells is not None:
            return int(self.task.tuning.cells)
        wanted = round(size / (ROWS_PER_CELL * noise.scale))
        return int(min(max(wanted, CELLS_PER_CENTER * self.task.n_clusters), MOST_CELLS))


def _noise(task: UniverseTask) -> NoisyCellCounts | None:
    """Laplace noise, which is smaller than Gaussian noise where a row is counted once; Gaussian for ledgers that add zCDP."""
    if task.epsilon is None:
        return None
    is_tree = task.tuning.partition == "hst"
    is_known = task.expected_rows is not None or task.tuning.cells is not None or is_tree
    terms: dict[str, Any] = {"asks_size": not is_known, "weight": PATH if is_tree else 1}
    if task.is_zcdp:
        return NoisyCellCounts.gaussian(zcdp_rho(task.epsilon, task.delta), task.relation, task.unit, **terms)
    return NoisyCellCounts.pure(task.epsilon, task.relation, task.unit, **terms)


def _note(cells: Cells, clean: Denoised) -> str:
    counted = f"{len(cells.sites)} cells of the universe were counted"
    if clean.branch == "public":
        return f"{counted}. {TOO_LITTLE}"
    return f"{counted}; noise could hide about {clean.hidden:.0%} of the demand."


TOO_LITTLE = (
    "Too little budget for this demand: its counts cannot be told from noise, so the centres are those of the universe, as if "
    "everybody were spread over it alike. Raise epsilon, or count more people."
)
