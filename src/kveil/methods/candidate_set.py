"""Private candidates alone: places that many rows are near to, for whatever chooses among them afterwards."""

from __future__ import annotations

import numpy as np

from kveil.desk.base import Curator
from kveil.methods.candidate_search import CandidateSearch, Projected
from kveil.methods.candidates import OF_ROWS, check_tuning, pool_of
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task
from kveil.progress import step as progress


class CandidatePoints:
    """Middles of cubes that many rows share, of every level of some shifted partitions, in the space that rows are projected to.

    Private:      the rows and their number.  Public: all parameters, the projection, the shifts, that a search took place.
    Sensitivity, neighbours and cost: those of `Pool`, for every release: a row is in one child of one active cube of a level. The
                  number of rows is noisy (2 %) unless it is declared; the rest is for the cubes.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), Algorithms 1 and 2, as corrected in docs/errata.md.
    """

    def __init__(self, task: Task) -> None:
        check_tuning(task)
        self.task, self.budget = task, pool_of(task, 1, more_draws=1)

    def run(self, desk: Curator, rng: np.random.Generator) -> Projected:
        n_rows = self.task.expected_rows or number_of_rows(desk, OF_ROWS)
        progress("looking for candidates", 1, 1)
        return CandidateSearch(desk, self.task, self.task.tuning, "k-means", rng).candidates(n_rows, desk.left)
