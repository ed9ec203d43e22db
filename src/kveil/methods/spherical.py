"""Cosine clustering of sparse rows: find columns that matter, take steps with more cells than asked for there, and merge them.

Four ideas carry it. Rows are made unit, so one row moves any table of sums by its own length, whatever the number of columns,
cells or entries. Columns are screened by one noisy total each, and rows are made unit again in those that are left, where noise
is small. Every entry of a sum is cut by the noise that is known to be in it. And cells that are left without rows, as most are
after two steps, get a half of a cell with many: which columns go together is told by the sums so far.
"""

from __future__ import annotations

from math import exp, inf, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from kveil.arrays import Floats, Integers
from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.ledger import UNIT
from kveil.methods.base import Facts, Found, check_width, shares
from kveil.methods.steps import NO_SIGNAL
from kveil.methods.task import Task, check_count
from kveil.methods.tree.method import LEAST_UNITS, Tree
from kveil.progress import step as progress
from kveil.questions.unit_rows import TOP, UnitRows, UnitSums, UnitTotals
from kveil.solve.directions import merged_groups, noise_length, own_parts, split, standing
from kveil.space.unit_ball import unit
from kveil.tuning import Spherical as SphericalTuning

OF_COUNTS, OF_CELLS = 0.01, 45 / 89  # of the budget, for the sizes of clusters; of what steps get, for those with more cells
FLOOR, PURE_FLOOR = 3.0, 3.9  # deviations that a column needs to matter
TYPICAL = 2.5  # deviations of a step: what a typical total must be, a cell, so that there are more cells than clusters
N_EARLY = 2  # steps in which a cell is what it has more of than others
ALONE = 1.5  # lengths of what noise alone leaves of a sum: a cell that is no longer may have no rows
LONE_CUT = 3.0  # of one direction for all rows
PURE_ENTRIES = 32  # of a row in kept columns where noise is pure: fewer mean less noise
MOST_NUMBERS = 2**24  # in a table of sums: 128 MB
FARTHEST = 2.0  # between two directions, as a chord


class Spherical:
    """Private cosine clustering by noisy sums of unit rows.

    Private:      the rows and their number.  Public: all parameters, the random start, and that a fit took place.
    Sensitivity:  of every sum that of `UnitTotals` or `UnitSums`: which columns are kept, how many cells there are and which of
                  them are merged follow from released sums, so each release has its own map of a row, and the same bound.
    Neighbours and cost: those of `Pool`; shares of the budget are fixed.
    Not covered:  running time.
    """

    takes_sparse: ClassVar[bool] = True
    options: ClassVar[frozenset[str]] = frozenset()
    tuning: ClassVar[type[SphericalTuning]] = SphericalTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        return Tree.bits(facts)

    def __init__(self, task: Task) -> None:
        self.task, self.budget = task, Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=not task.delta)
        shares_of = Shares.of(check_tuning(task.tuning))
        if self.budget.kind == "none":
            return
        check_width(
            self.budget, TOP * 2**8, min(shares_of)
        )  # L1 norms are longer than TOP; in the middle of a fit it is too late
        if self.budget.total * UNIT < LEAST_UNITS:
            raise InvalidValue("this budget is too small to be shared out in many draws. Raise epsilon.")

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        return _Fit(self.task, desk, rng).run()


class Shares(NamedTuple):
    """What every draw gets: totals of columns, a step with more cells, a step with k cells, the sizes of clusters."""

    totals: float
    cells: float
    centers: float
    counts: float = OF_COUNTS

    @classmethod
    def of(cls, tuning: SphericalTuning) -> Shares:
        left = 1 - tuning.of_totals - OF_COUNTS
        return cls(tuning.of_totals, OF_CELLS * left / tuning.steps[0], (1 - OF_CELLS) * left / tuning.steps[1])


class _Directions(NamedTuple):
    """Directions (cells, q) as whole numbers of length at most TOP, and the released sums that they come from."""

    codes: Integers
    kept: Floats


class _Fit:
    """One fit. Lengths are in unit rows."""

    def __init__(self, task: Task, desk: Curator, rng: np.random.Generator) -> None:
        self.desk, self.rng, self.tuning, self.k = desk, rng, task.tuning, task.n_clusters
        self.d, self.is_pure, self.shares = task.domain.n_columns, desk.kind == "pure", Shares.of(task.tuning)

    def run(self) -> Found:
        progress("totals of columns", 1, 4)
        totals, deviation = self._totals()
        if not self._has_signal(totals, deviation):
            return self._one_direction()
        columns = self._columns(totals, deviation)
        view = self._view(columns)
        share = self.shares.cells
        noise = self._deviation(view, share)
        borne = self._borne(totals[columns], deviation, noise)
        is_clear = borne >= self.tuning.cells  # beyond that noise would drown what the sums so far tell of each other
        placed = self._started(len(columns), self._n_cells(borne, len(columns)))
        progress("steps of many cells", 2, 4)
        history: list[Floats] = []
        for number in range(self.tuning.steps[0]):
            sums = self._sums(view, placed.codes, share)
            history.append(sums)
            is_early = is_clear and number < N_EARLY and not self.tuning.signed
            shown = self._own(sums, self.tuning.cuts[0] * noise, view) if is_early else sums
            placed = self._moved(placed, shown, self.tuning.cuts[0] * noise)
            if is_clear and 0 < number < self.tuning.steps[0] - 1:
                placed = self._split(placed, np.concatenate(history), noise, is_laplace=self._is_laplace(view))
        progress("merging cells", 3, 4)
        placed = self._merged(placed, sums, noise)
        return self._placed(view, placed)

    def _totals(self) -> tuple[Floats, float]:
        """A noisy total of every column, and the deviation of one of them. Public, charged."""
        view = UnitRows(self.d, np.arange(self.d), self.tuning.nonzeros, self.tuning.signed)
        question = UnitTotals(view, self._is_laplace(view))
        (shown,) = self.desk.ask(question, self.shares.totals)
        return shown.values[0], shown.noise / sqrt(self.d)

    def _has_signal(self, totals: Floats, deviation: float) -> bool:
        """Whether more columns pass the floor than noise alone would explain. All of them are more, however few they are."""
        by_chance = _chance(self._floor, is_laplace=self.is_pure) * self.d
        passing = int(np.count_nonzero(totals > self._floor * deviation))
        return self.desk.kind == "none" or passing > min(by_chance + 4 * sqrt(by_chance) + 4, self.d - 1)

    @property
    def _floor(self) -> float:
        return self.tuning.floor or (PURE_FLOOR if self.is_pure else FLOOR)

    def _columns(self, totals: Floats, deviation: float) -> Integers:
        """The columns that hold most of the energy and pass the floor, the largest total first."""
        order = np.argsort(-totals, kind="stable")
        energy = np.cumsum(totals[order] ** 2 - deviation**2)
        q = int(np.argmax(energy >= self.tuning.energy * energy.max())) + 1
        q = min(q, int(np.count_nonzero(totals > self._floor * deviation)))
        return order[: min(self.d, max(4 * self.k, q))]

    def _view(self, columns: Integers) -> UnitRows:
        most = self.tuning.nonzeros
        return UnitRows(self.d, columns, min(most, PURE_ENTRIES) if most and self.is_pure else most, self.tuning.signed)

    def _borne(self, totals: Floats, deviation: float, noise: float) -> float:
        """How many cells per cluster noise bears, by the total of a typical column that matters."""
        typical = float((totals**2 - deviation**2).sum()) / max(float(totals.sum()), 1e-300)
        return inf if noise == 0 else typical / (TYPICAL * noise)

    def _n_cells(self, borne: float, q: int) -> int:
        """How many cells noise and memory bear."""
        return max(self.k, min(round(self.k * float(np.clip(borne, 1.0, self.tuning.cells))), q, MOST_NUMBERS // q))

    def _started(self, q: int, cells: int) -> _Directions:
        """Columns in random order, dealt out to the cells in turn: public, and no cell is empty."""
        order, dealt = self.rng.permutation(q), np.arange(max(q, cells))
        start = np.zeros((cells, q))
        start[dealt % cells, order[dealt % q]] = 1.0
        return _Directions(_whole(start), start)

    def _sums(self, view: UnitRows, centers: Integers, share: float) -> Floats:
        """Noisy sums of the rows nearest to each centre. Public, charged."""
        return self.desk.hold(UnitSums(view, centers, self._is_laplace(view))).show(1, share).values

    def _moved(self, placed: _Directions, sums: Floats, cuts: Floats | float) -> _Directions:
        """Directions of what stands out of the sums; where nothing does, one stays as it was."""
        kept = standing(sums, cuts, self.tuning.least, signed=self.tuning.signed)
        return _Directions(np.where(np.any(kept, axis=1, keepdims=True), _whole(kept), placed.codes), kept)

    def _own(self, sums: Floats, cut: float, view: UnitRows) -> Floats:
        """What cells have more of than others, where it stands out: early steps would else make all cells alike."""
        return own_parts(sums, cut, _chance(self.tuning.cuts[0], is_laplace=self._is_laplace(view)))

    def _split(self, placed: _Directions, history: Floats, noise: float, *, is_laplace: bool) -> _Directions:
        """Halves of long sums in the place of cells that show no rows."""
        cut, least, signed = self.tuning.cuts[0], self.tuning.least, self.tuning.signed
        alone = noise_length(placed.kept.shape[1], cut, least, is_laplace=is_laplace, signed=signed)
        kept = split(placed.kept, history, ALONE * alone * noise)
        is_whole = np.all(kept == placed.kept, axis=1, keepdims=True)
        return _Directions(np.where(is_whole, placed.codes, _whole(kept)), kept)

    def _merged(self, placed: _Directions, sums: Floats, noise: float) -> _Directions:
        """k directions of groups of cells. Their sums are added BEFORE the cut: what they share then stands out more."""
        if len(sums) == self.k:
            return placed
        belongs = (merged_groups(placed.kept, self.k) == np.arange(self.k)[:, None]).astype(np.float64)  # (k, cells)
        lengths = np.linalg.norm(placed.kept, axis=1)
        longest = np.where(belongs > 0, lengths, -1.0).argmax(axis=1)
        cuts = self.tuning.cuts[0] * noise * np.sqrt(belongs.sum(axis=1))[:, None]
        return self._moved(_Directions(placed.codes[longest], placed.kept[longest]), belongs @ sums, cuts)

    def _placed(self, view: UnitRows, placed: _Directions) -> Found:
        """Steps with k cells, the last one with the sizes of its clusters, in all columns."""
        share, steps = self.shares.centers, self.tuning.steps[1]
        noise = self._deviation(view, share)
        for number in range(steps):
            progress("steps", 4, 4)
            held = self.desk.hold(UnitSums(view, placed.codes, self._is_laplace(view)))
            counts = held.show(0, self.shares.counts).values if number == steps - 1 else None
            placed = self._moved(placed, held.show(1, share).values, self.tuning.cuts[1] * noise)
        assert counts is not None
        centers = np.zeros((self.k, self.d))
        centers[:, view.columns] = unit(placed.codes.astype(np.float64))
        return Found(centers, shares(counts), errors=_errors(placed.kept, noise))

    def _one_direction(self) -> Found:
        """No signal for k centres: one direction, k times, with all that is left."""
        view, share = UnitRows(self.d, np.arange(self.d), self.tuning.nonzeros, self.tuning.signed), self.desk.left
        noise = self._deviation(view, share)
        sums = self._sums(view, np.zeros((1, self.d), dtype=np.int64), share)
        kept = standing(sums, LONE_CUT * noise, self.tuning.least, signed=self.tuning.signed)
        center = unit(kept if kept.any() else np.ones((1, self.d)))
        k = self.k
        return Found(np.tile(center, (k, 1)), np.full(k, 1 / k), (NO_DIRECTIONS,), np.tile(_errors(kept, noise), k))

    def _is_laplace(self, view: UnitRows) -> bool:
        """Whether Laplace noise on every coordinate is narrower than one K-norm vector."""
        return self.is_pure and 2 * view.l1_length**2 < (len(view.columns) + 1) * TOP**2

    def _deviation(self, view: UnitRows, share: float) -> float:
        """Of the noise in one number of a sum that gets `share`."""
        part = view.part("", by_coordinates=self._is_laplace(view), is_signed=self.tuning.signed)
        return self.desk.noise(part, len(view.columns), share) / sqrt(len(view.columns))


NO_DIRECTIONS = NO_SIGNAL.replace("private mean", "private direction").replace(", a smaller domain", "")


def check_tuning(tuning: SphericalTuning) -> SphericalTuning:
    """Refuse constants that no fit can have."""
    if not isinstance(tuning.steps, tuple) or len(tuning.steps) != 2:
        raise InvalidValue("tuning.steps must be two numbers: of steps with more cells, and of steps with k cells.")
    for name, value in (("steps", tuning.steps[0]), ("steps", tuning.steps[1]), ("least", tuning.least)):
        check_count(f"tuning.{name}", value)
    if max(tuning.steps) > 100:
        raise InvalidValue("tuning.steps must be at most 100 each: with more, each has too little budget to be drawn.")
    if tuning.nonzeros is not None:
        check_count("tuning.nonzeros", tuning.nonzeros)
    if not isinstance(tuning.cuts, tuple) or len(tuning.cuts) != 2:
        raise InvalidValue("tuning.cuts must be two numbers: deviations of noise, for either kind of steps.")
    floor = FLOOR if tuning.floor is None else tuning.floor
    ranges: dict[str, tuple[Any, float, float]] = {
        "cells": (tuning.cells, 1, 100), "energy": (tuning.energy, 0.01, 1), "floor": (floor, 0.1, 100),
        "of_totals": (tuning.of_totals, 0.001, 0.9), "cuts": (min(tuning.cuts), 0, 100),
    }  # fmt: skip
    for name, (value, low, high) in ranges.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise InvalidValue(f"tuning.{name} must be a number between {low:g} and {high:g}, got {value!r}.")
    if not isinstance(tuning.signed, bool):
        raise InvalidValue("tuning.signed must be True or False.")
    return tuning


def _chance(deviations: float, *, is_laplace: bool) -> float:
    """That noise alone passes so many deviations."""
    return 0.5 * exp(-sqrt(2) * deviations) if is_laplace else float(ndtr(-deviations))


def _whole(directions: Floats) -> Integers:
    """Directions as whole numbers of length at most TOP: rounding towards 0 makes none longer, and a sum of squares is whole."""
    return np.trunc(unit(directions) * TOP).astype(np.int64)


def _errors(kept: Floats, noise: float) -> Floats:
    """The noise in each direction, as a chord: of the entries that are left. What a cut has dropped is not in it."""
    lengths = np.linalg.norm(kept, axis=1)
    found = noise * np.sqrt(np.count_nonzero(kept, axis=1)) / np.maximum(lengths, 1e-300)
    return np.where(lengths > 0, np.minimum(found, FARTHEST), 0.0 if noise == 0 else FARTHEST)
