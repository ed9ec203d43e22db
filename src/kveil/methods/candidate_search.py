"""Private candidates and local swaps in a projection: k places that rows are near to, found without a noisy coordinate.

Shared by k-means and k-median, which differ in what a row costs and in how centres are recovered afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, isqrt, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.desk.base import Curator
from kveil.kernel.grid import Ball
from kveil.methods.task import Task
from kveil.partition.cubes import MOST_ACTIVE, MOST_AXES, MOST_LEVELS, Cubes
from kveil.partition.projection import random_axes
from kveil.questions.cubes import CubeCounts
from kveil.questions.frame import Frame, clipped, stays_sparse
from kveil.questions.swaps import Objective, SetCosts, SwapCosts
from kveil.space.euclidean import evenly
from kveil.tuning import Candidates as Tuning

MOST_UNPROJECTED = 5  # with so few columns cubes are small enough as they are
MOST_SWAPS = 20


class Projected(NamedTuple):
    """Points (n, p) in the projection of a frame, in whole steps and inside its ball. Public."""

    frame: Frame
    points: Integers


@dataclass(frozen=True)
class CandidateSearch:
    """Candidates are middles of cubes that many rows share; swaps among them lower the cost of k.

    Private:      the rows.  Public: the frame, the shifts, the first centres, and all counts of steps: random or parameters,
                  or functions of released values.
    Neighbours, sensitivity and cost: those of `Pool`: a row is in one child of one active cube of a level, and adds between
                  0 and `Loss.highest` to the cost of every swap, because candidates are clipped to the ball of the rows.
    Reference:    Balcan, Dick, Liang, Mou, Zhang (2017), Algorithms 1 to 3, as corrected in docs/errata.md.
    """

    desk: Curator
    task: Task
    tuning: Tuning
    objective: Objective
    rng: np.random.Generator

    def found_in_projection(self, n_rows: float, of_candidates: float, of_swaps: float) -> Projected:
        """k centres for about `n_rows` rows (released or public), for these two shares of the budget at most."""
        frame, candidates = self.candidates(n_rows, of_candidates)
        return Projected(frame, self._swapped(frame, candidates, of_swaps))

    def candidates(self, n_rows: float, share: float) -> Projected:
        """Places that many rows are near to, one at least, for this share of the budget at most."""
        frame = self._frame(n_rows)
        return Projected(frame, self._candidates(frame, n_rows, share))

    def _frame(self, n_rows: float) -> Frame:
        whole, d = whole_frame(self.task, self.tuning), self.task.domain.n_columns
        p = self.tuning.dimension or (d if d <= MOST_UNPROJECTED else min(MOST_AXES, max(2, floor(log(n_rows) / 2))))
        if self.task.is_sparse and stays_sparse(d, whole.nonzeros):
            p = min(p, d - 1)  # such rows become dense by a projection alone
        if p >= d:
            return whole
        axes = random_axes(d, p, self.rng, stretch=sqrt(d / p))
        return replace(whole, axes=axes, reach=whole.radius)  # stretched rows are clipped back: every bound below needs it

    def _candidates(self, frame: Frame, n_rows: float, share: float) -> Integers:
        """Distinct middles of active cubes, of every level of every shifted partition, inside the ball of the rows."""
        levels = self.tuning.levels or min(MOST_LEVELS, max(1, floor(log(n_rows))))
        p, half = self.task.domain.n_columns, self.task.domain.top
        if frame.axes is not None:
            p = frame.axes.shape[1]
            half = int(frame.radius * min(1.0, sqrt(2 * log(2 * n_rows * p) / p)))
        found = []
        for _ in range(self.tuning.repetitions):
            found += self._partition(frame, Cubes.shifted(half, p, self.rng), levels, share / self.tuning.repetitions / levels)
        points = np.unique(clipped(np.rint(np.concatenate(found)).astype(np.int64), frame.radius), axis=0)
        return points[self._some(len(points), max(self.tuning.most, 4 * self.task.n_clusters))]

    def _partition(self, frame: Frame, cubes: Cubes, levels: int, share: float) -> list[NDArray[np.float64]]:
        """Middles of active cubes, level by level; it ends early when a released level has none."""
        middles = [cubes.middles()]
        chance = self.tuning.kappa / 2**cubes.n_axes
        while len(cubes.levels) < levels and len(cubes.places):
            codes = self.desk.active(CubeCounts(frame, cubes), cubes.n_children, chance, share)  # public, charged
            cubes = cubes.grown(codes[self._some(len(codes), MOST_ACTIVE)])
            middles.append(cubes.middles())
        return middles

    def _swapped(self, frame: Frame, candidates: Integers, share: float) -> Integers:
        """The best set of k candidates met on a walk of private swaps; too few candidates are filled up, for no budget."""
        c, k = len(candidates), self.task.n_clusters
        if c <= k:
            extra = evenly(Ball(np.zeros(candidates.shape[1]), float(frame.radius), 2), k - c, self.rng)
            return np.concatenate([candidates, clipped(np.rint(extra).astype(np.int64), frame.radius)])
        steps = self.tuning.swaps or min(k, MOST_SWAPS)
        terms = (frame, self.objective, self.desk.max_rows)
        chosen = self.rng.choice(c, k, replace=False)
        sets = []
        for _ in range(steps):  # fixed beforehand: a stop when nothing improves would depend on rows
            others = np.setdiff1d(np.arange(c), chosen)
            swaps = SwapCosts(*terms, candidates[chosen], candidates, others)
            pick = self.desk.choose(swaps, share / (steps + 1))  # public, charged
            out, into = pick // len(others), others[pick % len(others)]
            chosen = np.where(np.arange(k) == out, into, chosen)
            sets.append(chosen)
        met = SetCosts(*terms, candidates[np.stack(sets)], "best of the swaps", in_projection=True)
        best = self.desk.choose(met, share / (steps + 1))  # public, charged
        return candidates[sets[best]]

    def _some(self, n: int, most: int) -> Integers:
        """Ascending indices of at most `most` of `n` released things, at random."""
        return np.arange(n) if n <= most else np.sort(self.rng.choice(n, most, replace=False))


def whole_frame(task: Task, tuning: Tuning) -> Frame:
    """All of the domain. No coordinate passes `top`, so a row of s entries lies in a ball of sqrt(s) top: nothing is clipped."""
    whole, s = Frame.of(task.domain, task.scaling), tuning.nonzeros
    return whole if s is None else replace(whole, nonzeros=s, radius=min(whole.radius, isqrt(s * task.domain.top**2) + 1))
