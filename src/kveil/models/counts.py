"""Private centres among the points of a universe: noisy counts of a public partition, then an ordinary search."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Plan, zcdp_rho
from kveil.models._method import Found
from kveil.models._task import check_choice, check_count
from kveil.models._universe import OnUniverse, UniverseTask, found_points
from kveil.partition.voronoi import Cells, voronoi
from kveil.privatise.cell_counts import NoisyCellCounts
from kveil.solve.denoise import Denoised, denoised
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.summary.demand import cell_counts, point_counts, row_count
from kveil.tuning import Counts as CountsTuning

Floats = NDArray[np.float64]

ROWS_PER_CELL = 4.0  # in scales of the noise: fewer and coarser cells see less, more and finer ones see mostly noise
CELLS_PER_CENTER, MOST_CELLS = 4, 4096


class Counts(OnUniverse):
    """Private centres by one noisy histogram of a public partition; the search that follows never meets a secret.

    Private:      the demand; its size, except under replace-one with one row a person.  Public: the universe, its partition,
                  all parameters. How many cells there are follows from a released, declared or public size.
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
        progress("counting the demand", 1, 3)
        size = self._size(source, ticket)  # public: declared, charged, or no secret under this relation
        progress("dividing the universe", 2, 3)
        cells = voronoi(task.universe, self._n_cells(size), rng)  # public
        (raw_counts,) = source.map_reduce(cell_counts, cells.owner, grid=task.domain)  # (m,)  secret
        counts = self.noise.release_counts(raw_counts, ticket).astype(np.float64)  # (m,)  public, charged
        masses = denoised(counts, cells.sizes, cells.groups, self.noise.scale)  # (m,)  public from here on
        progress("searching", 3, 3)
        return found_points(task, (masses.masses / cells.sizes)[cells.owner], rng, _notes(cells, masses))

    def _size(self, source: Source, ticket: Ticket) -> float:
        """The number of rows that the partition is made for."""
        assert self.noise is not None
        if self.task.tuning.cells is not None or self.task.expected_rows is not None:
            return self.task.expected_rows or 1.0
        (raw,) = source.map_reduce(row_count, None, grid=self.task.domain)  # (1,)  secret, but under replace-one
        return float(raw[0] if self.noise.size is None else self.noise.release_size(raw, ticket))

    def _n_cells(self, size: float) -> int:
        assert self.noise is not None
        if self.task.tuning.cells is not None:
            return int(self.task.tuning.cells)
        wanted = round(size / (ROWS_PER_CELL * self.noise.scale))
        return int(min(max(wanted, CELLS_PER_CENTER * self.task.n_clusters), MOST_CELLS))


def _noise(task: UniverseTask) -> NoisyCellCounts | None:
    """Laplace noise, which is smaller than Gaussian noise where a row is counted once; Gaussian for ledgers that add zCDP."""
    if task.epsilon is None:
        return None
    is_known = task.expected_rows is not None or task.tuning.cells is not None
    has_fixed_size = task.relation == "replace-one" and task.unit.max_rows_per_person == 1
    asks_size = not (is_known or has_fixed_size)
    if task.is_zcdp:
        return NoisyCellCounts.gaussian(zcdp_rho(task.epsilon, task.delta), task.relation, task.unit, asks_size=asks_size)
    return NoisyCellCounts.pure(task.epsilon, task.relation, task.unit, asks_size=asks_size)


def _notes(cells: Cells, masses: Denoised) -> tuple[str, ...]:
    counted = f"{len(cells.sites)} cells of the universe were counted"
    if masses.branch == "public":
        return (f"{counted}. {TOO_LITTLE}",)
    return (f"{counted}; noise could hide about {masses.hidden:.0%} of the demand.",)


TOO_LITTLE = (
    "Too little budget for this demand: its counts cannot be told from noise, so the centres are those of the universe, as if "
    "everybody were spread over it alike. Raise epsilon, or count more people."
)
