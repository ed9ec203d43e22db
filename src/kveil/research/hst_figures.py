"""Figures 2, 4, 5 and 6 of "k-Median Clustering via Metric Embedding" (NeurIPS 2023), drawn anew, and what becomes of claims.

Those figures show costs of seeds and of final centres over k, on images and on graphs, for balanced and imbalanced demands. Here
every pair of a universe and a kind of demand is one picture. Data are made as described, so no number is the paper's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from kveil.research.median_cases import KINDS, Case, Kind
from kveil.research.median_methods import METHODS, Method, Round, Run

OnStep = Callable[[str, int, int], None]

FALSE_ALARM = 0.05  # of a paired t-test, two-sided: how often a difference is seen where there is none


@dataclass(frozen=True)
class Size:
    """How large a reproduction is: points of a universe, rows of a demand, runs of every point, and what is timed."""

    points: int = 10_000
    vertices: int = 3000
    rows: int = 500
    runs: int = 10
    clusters: tuple[int, ...] = (2, 5, 10, 15, 20)
    timed_clusters: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    timed_points: tuple[int, ...] = (1000, 2000, 5000, 10_000)

    def within(self, points: int | None, rows: int | None, runs: int | None) -> Size:
        """The same with at most so many points and rows, and so many runs."""
        most = points or self.points
        timed = tuple(sorted({min(n, most) for n in self.timed_points}))
        few = (min(self.points, most), min(self.vertices, most), min(rows or self.rows, most), runs or self.runs)
        return Size(*few, self.clusters, tuple(k for k in self.timed_clusters if k <= timed[0]), timed)


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
    cells: tuple[Cell, ...]

    def costs(self, name: str, k: int, what: str) -> np.ndarray:
        return np.array(next(cell.all(what) for cell in self.cells if (cell.method.name, cell.k) == (name, k)))

    @property
    def clusters(self) -> list[int]:
        return list(dict.fromkeys(cell.k for cell in self.cells))


class Comparison(NamedTuple):
    """Of one method's number with another's, run by run."""

    claim: str
    one: str
    of_one: str
    other: str
    of_other: str


class Verdict(NamedTuple):
    """In how many cells (a k on a universe and demand) one was lower, higher, or neither by a paired t-test."""

    claim: str
    case: str
    lower: int
    higher: int
    level: int


COMPARISONS = (
    Comparison("seeds without privacy: HST under k-median++", "NDP-HST", "seeds", "NDP-k-median++", "seeds"),
    Comparison("final without privacy: HST under k-median++", "NDP-HST", "final", "NDP-k-median++", "final"),
    Comparison(
        "private seeds as printed: HST under k-median++",
        "DP-HST, as printed (invalid)", "seeds", "DP-k-median++, as printed", "seeds",
    ),
    Comparison(
        "private steps as printed, on average: HST under k-median++",
        "DP-HST, as printed (invalid)", "iterates", "DP-k-median++, as printed", "iterates",
    ),
    Comparison(
        "private final as printed: HST under k-median++",
        "DP-HST, as printed (invalid)", "final", "DP-k-median++, as printed", "final",
    ),
    Comparison(
        "as printed: steps, on average, under their HST seeds",
        "DP-HST, as printed (invalid)", "iterates", "DP-HST, as printed (invalid)", "seeds",
    ),
    Comparison(
        "private seeds, corrected: HST under k-median++",
        "DP-HST, corrected", "seeds", "DP-k-median++, corrected", "seeds",
    ),
    Comparison(
        "private final, corrected: HST under k-median++",
        "DP-HST, corrected", "final", "DP-k-median++, corrected", "final",
    ),
    Comparison("kveil's default under DP-HST, corrected", "kveil's default", "final", "DP-HST, corrected", "final"),
    Comparison("kveil's default under DP-k-median++, corrected", "kveil's default", "final", "DP-k-median++, corrected", "final"),
)  # fmt: skip


def play(case: Case, size: Size, epsilon: float, on_step: OnStep) -> list[Outcome]:
    """Everybody at every k, run by run, on both kinds of demand."""
    outcomes = []
    for kind in KINDS:
        demands = [case.demand(kind, size.rows, number) for number in range(size.runs)]
        runs: dict[tuple[str, int], list[Run]] = {}
        for number, rows in enumerate(demands):
            on_step(f"{case.name}, {kind}", number + 1, size.runs)
            demand = Round(case, rows, epsilon, number)
            for method in METHODS:
                for k in size.clusters:
                    runs.setdefault((method.name, k), []).append(demand.run(method, k))
        cells = tuple(Cell(method, k, tuple(runs[method.name, k])) for method in METHODS for k in size.clusters)
        n_points, n_rows = case.space.n_points, len(demands[0])
        outcomes.append(Outcome(case.name, case.title, kind, n_points, n_rows, epsilon, cells))
    return outcomes


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """What became of every claim, universe by universe."""
    found = []
    for comparison in COMPARISONS:
        for name in dict.fromkeys(outcome.name for outcome in outcomes):
            signs = [sign for outcome in outcomes if outcome.name == name for sign in _signs(outcome, comparison)]
            found.append(Verdict(comparison.claim, name, signs.count(-1), signs.count(1), signs.count(0)))
    return found


def farthest_apart(outcomes: Iterable[Outcome]) -> float:
    """The largest relative gap, over all cells, between mean final costs of the three starts without privacy."""
    gaps = []
    for outcome in outcomes:
        for k in outcome.clusters:
            means = [_mean(cell) for cell in outcome.cells if cell.k == k and cell.method.way == "not private"]
            gaps.append(max(means) / min(means) - 1 if min(means) else 0.0)
    return max(gaps)


def floor(outcome: Outcome, k: int) -> float:
    """The lowest mean cost without privacy."""
    return min(_mean(cell) for cell in outcome.cells if cell.k == k and cell.method.way == "not private")


def _mean(cell: Cell) -> float:
    return float(np.mean(cell.all("final")))


def _signs(outcome: Outcome, comparison: Comparison) -> list[int]:
    """For every k -1, 1 or 0; a single run has no spread, and decides nothing."""
    signs = []
    for k in outcome.clusters:
        apart = outcome.costs(comparison.one, k, comparison.of_one) - outcome.costs(comparison.other, k, comparison.of_other)
        error = np.std(apart, ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
        most = error * stats.t.ppf(1 - FALSE_ALARM / 2, max(1, len(apart) - 1))
        signs.append(int(np.sign(apart.mean())) if abs(apart.mean()) > most else 0)
    return signs
