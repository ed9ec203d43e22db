"""Private centres among the points of a universe: noisy counts of a public partition, then an ordinary search."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.desk.fixed import Fixed, FixedDesk
from kveil.desk.law import Law
from kveil.kernel.loss import floor_rho, zcdp_rho
from kveil.methods.base import Found
from kveil.methods.task import check_choice, check_count
from kveil.methods.universe.task import OnUniverse, UniverseTask, found_points
from kveil.partition.hst import Hst
from kveil.partition.voronoi import Cells, voronoi
from kveil.progress import step as progress
from kveil.questions.demand import LEVELS, DemandSize, PartitionCounts, PointCounts, TreeCounts, tree_part
from kveil.solve.denoise import Denoised, denoised
from kveil.solve.pool_tree import consistent_counts, point_weights
from kveil.solve.synopsis import UniverseSynopsis
from kveil.tuning import Counts as CountsTuning

Counted = tuple[NDArray[np.float64], str, UniverseSynopsis | None]  # weights of the points, how they were found, what is kept

ROWS_PER_CELL = 4.0  # in scales of the noise: fewer and coarser cells see less, more and finer ones see mostly noise
CELLS_PER_CENTER, MOST_CELLS = 4, 4096
OF_SIZE = Fraction(1, 20)  # of the budget, where the number of rows has to be paid for


class Counts(OnUniverse):
    """Private centres by one noisy histogram of a public partition; the search that follows never meets a secret.

    Private:      the demand and its size, under replace-one too: a row that cannot be read is left out of a file, so that a
                  replaced one may be.  Public: the universe, its partition, all parameters. How many cells there are
                  follows from a released or declared size.
    Neighbours, sensitivity and cost: those of the questions in `questions.demand` and of `Law`; all after it is post-processing.
    Not covered:  running time; a universe that was made from the demand.
    """

    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[CountsTuning]] = CountsTuning

    def __init__(self, task: UniverseTask) -> None:
        check_choice("tuning.partition", task.tuning.partition, ("voronoi", "hst"))
        if task.tuning.cells is not None:
            check_count("tuning.cells", task.tuning.cells)
        self.task = task
        self.budget, self.of_size, self.of_counts, self.scale = _funded(task)

    def run(self, desk: FixedDesk, rng: np.random.Generator) -> Found:
        task = self.task
        if task.epsilon is None:
            ((counts, _),) = desk.ask(PointCounts(task.universe.n_points))  # epsilon = infinity promises nothing
            return found_points(task, counts, rng)
        progress("counting the demand", 1, 2)
        count = self._count_tree if task.tuning.partition == "hst" else self._count_cells
        weights, note, kept = count(desk, rng)  # (n,)  public, charged
        progress("searching", 2, 2)
        return replace(found_points(task, weights, rng, (note,)), synopsis=kept)

    def _count_cells(self, desk: FixedDesk, rng: np.random.Generator) -> Counted:
        """Weights of the points, from noisy counts of cells: a cell's mass is spread evenly over its points."""
        cells = voronoi(self.task.universe, self._n_cells(desk), rng)  # public
        ((counts, _),) = desk.ask(PartitionCounts(cells.owner), self.of_counts)  # (m,)  public, charged
        clean = denoised(counts, cells.sizes, cells.groups, self.scale)  # (m,)
        kept = UniverseSynopsis(cells.sites, counts, cells.sizes, sqrt(2) * self.scale, clean.hidden, clean.branch)
        return (clean.masses / cells.sizes)[cells.owner], _note(cells, clean), kept

    def _count_tree(self, desk: FixedDesk, rng: np.random.Generator) -> Counted:
        """Weights of the points, from noisy counts of a random tree that are made to agree with each other."""
        tree = Hst.of(self.task.universe, levels=LEVELS, random_state=rng)  # public
        question = TreeCounts(tree, is_squared=self.task.is_zcdp)
        ((weighted, _),) = desk.ask(question, self.of_counts)  # (nodes - 1,)  public, charged
        weights = np.maximum(question.weights, 1)
        shares = weights / self.scale  # 1 / the scale of the noise in a node's count
        counts = np.concatenate([[0.0], weighted]) / weights
        return point_weights(tree, consistent_counts(tree, counts, 2 / shares**2), shares), f"{tree!r} was counted", None

    def _n_cells(self, desk: FixedDesk) -> int:
        """How many cells pay off for a declared or released number of rows."""
        if self.task.tuning.cells is not None:
            return int(self.task.tuning.cells)
        size = self.task.expected_rows
        if size is None:
            ((released, _),) = desk.ask(DemandSize(), self.of_size)  # (1,)  public, charged
            size = max(1.0, float(released[0]))
        wanted = round(size / (ROWS_PER_CELL * self.scale))
        return int(min(max(wanted, CELLS_PER_CENTER * self.task.n_clusters), MOST_CELLS))


def _funded(task: UniverseTask) -> tuple[Fixed, Fraction, Fraction, float]:
    """The plan, what the number of rows and the counts may spend, and the scale of the noise in a count: its standard deviation
    over sqrt(2). Laplace noise, which is smaller than Gaussian noise where a row is counted once; Gaussian for ledgers that add
    zCDP. The number of rows is asked for where nothing public tells how many cells to make."""
    if task.epsilon is None:
        return Fixed(None, ()), Fraction(0), Fraction(0), 0.0
    is_tree = task.tuning.partition == "hst"
    is_known = task.expected_rows is not None or task.tuning.cells is not None or is_tree
    law = Law("zcdp" if task.is_zcdp else "pure", task.relation, task.unit, says_one=True)
    whole = zcdp_rho(task.epsilon, task.delta) if task.is_zcdp else task.epsilon
    of_size = Fraction(0) if is_known else floor_rho(whole * OF_SIZE) if task.is_zcdp else whole * OF_SIZE
    counts, of_counts = tree_part(is_squared=task.is_zcdp) if is_tree else PartitionCounts.parts[0], whole - of_size
    asked = ((counts, of_counts),) if is_known else ((DemandSize.parts[0], of_size), (counts, of_counts))
    charges = law.charges(tuple(part for part, _ in asked), 1, tuple(budget for _, budget in asked))
    scale = law.moved(counts) / (2 * sqrt(of_counts) if task.is_zcdp else float(of_counts))
    return Fixed(law, charges, delta=task.delta), of_size, of_counts, scale


def _note(cells: Cells, clean: Denoised) -> str:
    counted = f"{len(cells.sites)} cells of the universe were counted"
    if clean.branch == "public":
        return f"{counted}. {TOO_LITTLE}"
    return f"{counted}; noise could hide about {100 * clean.hidden:.0f} % of the demand."


TOO_LITTLE = (
    "Too little budget for this demand: its counts cannot be told from noise. So the centres are those of the universe, as if "
    "everybody were spread over it alike. Raise epsilon, or count more people."
)
