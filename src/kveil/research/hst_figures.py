"""Figures 2, 4, 5 and 6 of "k-Median Clustering via Metric Embedding" (NeurIPS 2023): everybody's runs, at every k and demand.

Those figures show costs of seeds and of final centres over k, and how private searches get there, on images and on graphs, for
balanced and imbalanced demands. Data are made as described, so no number is the paper's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kveil.research.median_cases import KINDS, Case, Kind
from kveil.research.median_methods import METHODS, STEPS, Method, Round, Run

OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Size:
    """How large a reproduction is: points of a universe, rows of a demand, runs and steps of every point, and what is timed."""

    points: int = 10_000
    vertices: int = 3000
    rows: int = 500
    runs: int = 10
    clusters: tuple[int, ...] = (2, 5, 10, 15, 20)
    timed_clusters: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    timed_points: tuple[int, ...] = (1000, 2000, 5000, 10_000)
    steps: int = STEPS

    def within(self, points: int | None, rows: int | None, runs: int | None, steps: int | None = None) -> Size:
        """The same with at most so many points and rows, and so many runs and steps of a search."""
        most = points or self.points
        timed = tuple(sorted({min(n, most) for n in self.timed_points}))
        timed_clusters = tuple(k for k in self.timed_clusters if k <= timed[0])
        few = replace(self, timed_points=timed, timed_clusters=timed_clusters, runs=runs or self.runs, steps=steps or self.steps)
        return replace(few, points=min(self.points, most), vertices=min(self.vertices, most), rows=min(rows or self.rows, most))


QUICK = Size(1000, 1000, 200, 2, (2, 10, 20), (2, 20, 100), (500, 1000))


@dataclass(frozen=True)
class Cell:
    """All runs of one method at one k."""

    method: Method
    k: int
    runs: tuple[Run, ...]

    def all(self, what: str) -> tuple[float, ...]:
        """A number of every run, by its name in `Run`; none where runs have none."""
        found = [getattr(run, what) for run in self.runs]
        return tuple(float(number) for number in found if number is not None)


@dataclass(frozen=True)
class Outcome:
    """What one demand on one universe showed."""

    name: str
    title: str
    kind: Kind
    points: int
    rows: int
    epsilon: float
    steps: int
    cells: tuple[Cell, ...]

    def costs(self, name: str, k: int, what: str) -> np.ndarray:
        return np.array(next(cell.all(what) for cell in self.cells if (cell.method.name, cell.k) == (name, k)))

    @property
    def clusters(self) -> list[int]:
        return list(dict.fromkeys(cell.k for cell in self.cells))


def play(case: Case, size: Size, epsilon: float, on_step: OnStep) -> list[Outcome]:
    """Everybody at every k, run by run, on both kinds of demand."""
    outcomes = []
    for kind in KINDS:
        demands = [case.demand(kind, size.rows, number) for number in range(size.runs)]
        runs: dict[tuple[str, int], list[Run]] = {}
        for number, rows in enumerate(demands):
            on_step(f"{case.name}, {kind}", number + 1, size.runs)
            demand = Round(case, rows, epsilon, number, size.steps)
            for method in METHODS:
                for k in size.clusters:
                    runs.setdefault((method.name, k), []).append(demand.run(method, k))
        cells = tuple(Cell(method, k, tuple(runs[method.name, k])) for method in METHODS for k in size.clusters)
        n_points, n_rows = case.space.n_points, len(demands[0])
        outcomes.append(Outcome(case.name, case.title, kind, n_points, n_rows, epsilon, size.steps, cells))
    return outcomes
