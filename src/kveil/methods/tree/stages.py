"""The stages that come before centres: how many rows, where, how far, and the leaves of a tree of noisy counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.desk.base import Held
from kveil.kernel.grid import Box
from kveil.methods.ground import Ground
from kveil.methods.steps import Means, asked_means, balanced_radius, distance, in_units
from kveil.methods.tree.counting import histogram
from kveil.methods.tree.growth import Grown, Leaves, grow, joined, outposts, with_means
from kveil.methods.tree.principal import principal_axes
from kveil.partition.projection import random_axes
from kveil.progress import step as progress
from kveil.questions.cells import MOMENT_TOP, Residuals, Squares, Whole
from kveil.questions.frame import Frame, whole_steps
from kveil.solve.histogram import Histogram
from kveil.solve.placed import Clustering
from kveil.solve.radius import kept_part
from kveil.solve.shrink import shrunk, within
from kveil.solve.sizing import grid_bits, telling_columns, wanted_groups
from kveil.solve.synopsis import Distances, mean_cost
from kveil.space.euclidean import Centers
from kveil.tuning import Tree as TreeTuning

OF_PCA = 0.15  # of the budget, for the moments that principal axes come from
LONG_NOISE = {False: 0.3, True: 0.5}  # in the mean of a recovered cluster, of the radius; if two steps follow, or more
TWO_STAGES, THREE_STAGES = [11, 5], [6, 5, 5]  # halvings of a tree in a projection, with Gaussian noise
LEAST_ROWS = 0.8  # deviations of a count, of rows in an average cell of the first of two stages
MOST_CENTERS = 1e15  # if there is no noise
OF_MEANS = 0.3  # of the tree's budget, for means of leaves, beside what the stages take
LONG_MEANS = 1.0  # noise in the mean of joined leaves that is too long, of how far their rows may lie from it
MOST_LEAVES = 512  # more are joined: looking for the nearest one takes too long, and their means would drown in noise


def n_axes(d: int, kind: str) -> int:
    """Directions that a tree over d columns sees: all of few."""
    return d if d <= (12 if kind == "pure" else 16) else 12


class FirstLook(NamedTuple):
    """Released: the number of rows, its deviation, where rows are, how far out, and how many centres can be told apart; with
    the counts that the radius was read from, if it was asked for.

    most: how many clusters of equal size would have a mean whose noise is shorter than the radius, if that many were asked for.
    """

    n: float
    n_deviation: float
    middle: Floats
    radius: float
    n_centers: int
    total: Distances | None = None
    most: float = MOST_CENTERS

    @property
    def has_signal(self) -> bool:
        return self.n_centers > 0


class Stages:
    """What the budget buys, in which order, and when it is better to stop at one centre. Lengths in steps of a `Ground`."""

    # For the one grid over few columns. What is left is for one step, which in three columns has coarser cells to mend.
    of_few_columns: ClassVar[Mapping[int, float]] = {1: 0.9, 2: 0.9, 3: 0.78}
    # Gaussian noise in the mean of a k-th of all rows, at most, of their radius, for k centres; and in that of fewer.
    short_noise: ClassVar[tuple[float, float]] = (1.0, 0.5)

    def __init__(self, ground: Ground, tuning: TreeTuning, rng: np.random.Generator) -> None:
        self.ground, self.desk, self.tuning, self.rng = ground, ground.desk, tuning, rng
        self.k, self.d = ground.k, ground.d
        self.is_pure = self.desk.kind == "pure"
        self.is_low = self.d <= 3
        self.p = n_axes(self.d, self.desk.kind)
        self.is_projected = self.p < self.d

    @property
    def narrows(self) -> bool:
        """Whether sums are asked for in some columns alone, where others hold little."""
        return False

    @property
    def saves_a_stage(self) -> bool:
        """Whether the tree does without its last stage where rows lie everywhere."""
        return False

    def look(self, *, always_middle: bool = False) -> FirstLook:
        """Rows, middle and radius; few columns need neither of the last two."""
        ground, desk, d = self.ground, self.desk, self.d
        progress("looking at the whole", 1, 5)
        share = 0.05 if self.is_pure and self.is_projected else 0.04 if self.is_low else 0.01
        whole = self.desk.hold(Whole(ground.whole))
        n = max(10.0, float(whole.show(0, share).values[0]))
        told_apart = self._told_apart(n, 1.4 * ground.reach, np.sqrt(desk.spread(d, ground.reach, 0.7)))
        first = FirstLook(n, desk.deviation(share), np.zeros(d), float(ground.reach), told_apart)
        if not told_apart or (self.is_low and not always_middle):
            return first
        middle = self._mean(whole, n)
        cap = ground.reach + float(np.linalg.norm(middle))
        radius, total = distance(ground, ground.frame(middle), 0.95 if self.is_projected else 0.99, 0.02, cap)
        seen = first._replace(middle=middle, radius=radius, total=total)
        if self.narrows:
            self.ground = self._narrowed(seen)
        return self.with_left(seen)

    def _narrowed(self, seen: FirstLook) -> Ground:
        """Sums of rows are asked for in columns that may tell more than their noise hides: pure noise is longer, in every column,
        the more of them there are. In a box the variance of a column is at most (mean - low) (high - mean), so where the released
        mean is at an end, rows are too. That costs nothing; in a ball no column is known to be narrow."""
        ground, domain = self.ground, self.ground.task.domain
        cost, share = mean_cost(seen.total), (self.desk.left - 0.25) / 2
        if not isinstance(domain, Box) or cost is None or share <= 0:
            return ground
        away = np.clip(ground.positions(seen.middle) - domain.center, -domain.half, domain.half)
        most = (domain.half**2 - away**2) / ground.unit**2
        columns = telling_columns(
            most, cost.value / ground.length**2, lambda m: self.desk.spread(m, 1.0, share) * (self.k / seen.n) ** 2
        )
        return ground if len(columns) == self.d else ground.narrowed(columns)

    def with_left(self, seen: FirstLook) -> FirstLook:
        """The same look, with as many centres as what is left of the budget tells apart."""
        if seen.total is None:  # it ended early, by the whole budget
            return seen
        noise = np.sqrt(self.desk.spread(self.ground.width, seen.radius, 0.95 * (self.desk.left - 0.25)))
        most = MOST_CENTERS if noise == 0 else seen.n * seen.radius / noise
        return seen._replace(n_centers=self._told_apart(seen.n, seen.radius, noise), most=most)

    def _told_apart(self, n: float, radius: float, noise: float) -> int:
        """k, or as many clusters of equal size as have a mean whose noise is short beside the radius, or 0 where not even two
        have: more cost more by their noise than they save. Only a projection needs to ask: its recovery has noise in all columns.
        """
        longest, short = (1.0, 0.5) if self.is_pure else self.short_noise
        if not self.is_projected or noise * self.k <= longest * n * radius:
            return self.k
        fewer = int(short * n * radius / noise)
        return fewer if fewer >= 2 else 0

    def leaves(self, seen: FirstLook) -> tuple[Frame, Grown]:
        """Released points with weights, in the frame of the tree, about the middle."""
        frame, half, full = self._frame(seen.middle, seen.radius, seen.n)
        progress("growing the tree", 2, 5)
        bits = self._stage_bits(seen.n)
        grown = grow(self.ground, frame, half, bits, self._of_stages() / len(bits), saves=self.saves_a_stage)
        if self.is_low:
            return frame, grown
        share = OF_MEANS * self._tree_share()
        if self.is_projected and self._hides_means(grown.leaves, seen, share):
            return frame, grown
        progress("looking into the leaves", 3, 5)
        leaves = joined(grown.leaves, MOST_LEAVES, self.rng)
        return frame, with_means(self.ground, frame, leaves, outposts(half, full), share)

    def _hides_means(self, leaves: Leaves, seen: FirstLook, share: float) -> bool:
        """Whether leaves are so many that they would be joined, and means of joined ones would say less than the leaves do: noise
        in the mean of an average one, for rows as far away as its farthest corner, is long beside that."""
        noise = float(np.sqrt(self.desk.spread(self.p, 1.0, 0.75 * share))) * MOST_LEAVES / seen.n
        return len(leaves.points) > MOST_LEAVES and noise > LONG_MEANS

    def histogram(self, seen: FirstLook) -> tuple[Histogram, Floats]:
        """Noisy counts of a grid over few columns, and the half-widths (cells, d) of its cells."""
        frame, half, _ = self._frame(seen.middle, seen.radius, seen.n)
        (bits,) = self._stage_bits(seen.n)
        return histogram(self.ground, frame, half, bits, self._of_stages(), seen.n)

    def recovered(
        self, frame: Frame, leaves: Leaves, seen: FirstLook, share: float, clustered: Clustering, n_steps: int | None = None
    ) -> Means:
        """Released means, about the middle, of clusters found in the projection: more than k, to be merged, if noise allows.

        n_steps: how many relative steps follow. Rows are then clipped as in a step, by the distances to the middle that are known
        already; None, before medians, clips them to the radius of all rows alone.
        """
        cells = self.n_groups(leaves, seen, share, n_steps or 0)
        seeds = whole_steps(clustered(leaves.points, leaves.weights, cells, self.rng), frame.reach).astype(np.float64)
        radius, kept = frame.radius, 1.0
        if n_steps is not None and seen.total is not None:
            bins = in_units(seen.total, 1 / self.ground.length)
            noise = float(np.sqrt(self.desk.spread(self.ground.width, 1.0, 0.95 * share)))
            radius = int(np.ceil(balanced_radius(bins, noise, self.k, radius, radius)))
            kept = kept_part(bins, radius)
        bases, radii = np.zeros((cells, self.d), dtype=np.int64), np.full(cells, radius, dtype=np.int64)
        question = Residuals(frame, Centers(seeds, None), "projected", "centred", bases, radii)
        found = asked_means(self.desk, question, 0.05 * share, 0.95 * share, by_column=n_steps is not None, kept=kept)
        weak = found.is_weak
        return Means(
            np.where(weak, 0.0, found.counts), np.where(weak[:, None], 0.0, found.moves),
            np.where(weak, self.ground.reach, found.errors), weak,
        )  # fmt: skip

    def n_groups(self, leaves: Leaves, seen: FirstLook, share: float, n_steps: int) -> int:
        """How many clusters of a projection have means that are told apart with this share of the budget; k at least."""
        return self.n_borne(seen, share, n_steps, max(self.k, min(4 * self.k, 3 * len(leaves.points) // 4)))

    def n_borne(self, seen: FirstLook, share: float, n_steps: int, most: int) -> int:
        """The same, by noise alone. More where several steps mend what noise does to them: a cluster that is lost stays lost."""
        noise = float(np.sqrt(self.desk.spread(self.ground.width, seen.radius, 0.95 * share)))
        return wanted_groups(LONG_NOISE[n_steps >= 2], seen.n, seen.radius, noise, self.k, most)

    def _mean(self, whole: Held, n: float) -> Floats:
        share = 0.04
        if self.is_pure and self.is_projected:
            most = 0.5 if self.ground.task.sample is None else 0.25  # the votes and the gate need their part
            share = min(most, max(0.04, 10 * self.d / (n * float(self.desk.total))))
        reach = self.ground.reach
        noisy = whole.show(1, share).values
        variance = np.array([self.desk.spread(self.d, reach, share) / n**2])
        return np.asarray(within(shrunk(noisy / n, variance), reach)[0])

    def _frame(self, middle: Floats, radius: float, n: float) -> tuple[Frame, Floats, Floats]:
        """The axes of the tree, how far cells reach along each, and how far rows may."""
        frame = self.ground.frame(middle, radius)
        if self.is_projected and self.tuning.frame == "pca":
            axes, deviations = principal_axes(self.ground, frame, self.p, n, OF_PCA)
            half = np.clip(3 * deviations, radius / np.sqrt(self.d), radius)
            return replace(frame, axes=axes, reach=frame.radius), half, half
        if self.is_projected:
            reach = int(np.ceil(min(radius, 1.5 * radius * np.sqrt(self.p / self.d))))
            half = np.full(self.p, min(radius, 2.5 * radius / np.sqrt(self.d)))
            return replace(frame, axes=random_axes(self.d, self.p, self.rng), reach=reach), half, half
        if self.is_low:
            return frame, self.ground.half, self.ground.half
        share = 0.08 if self.is_pure else 0.02
        r0, top = float(frame.radius), float(MOMENT_TOP**2)
        noisy = self.desk.ask(Squares(frame), share)[0].values[0] / top * r0**2 / n
        own = np.sqrt(self.desk.spread(self.d, 1.0, share) / self.d) * r0**2 / n
        variance = np.clip(noisy, max(own, 1e-6 * r0**2), r0**2)
        stage = self.desk.deviation(self._of_stages() / len(self._stage_bits(n)))
        factor = 4 if self.p <= 8 and stage <= (0.0002 if self.is_pure else 0.002) * n else 3
        full = self.ground.half + np.abs(middle)
        half = np.minimum(np.minimum(factor * np.sqrt(variance), radius), full)
        return self.ground.frame(middle, 2.0 * self.ground.reach), half, full

    def _tree_share(self) -> float:
        return self.of_few_columns[self.d] if self.is_low else 0.4 if self.is_pure and self.p == self.d else 0.25

    def _of_stages(self) -> float:
        return self._tree_share() * (1.0 if self.is_low else 0.7)

    def _stage_bits(self, n: float) -> list[int]:
        e = float(self.desk.total) * self._of_stages() if self.desk.kind != "none" else 1e6 / n
        if self.is_low:
            e = 2 * np.sqrt(e) if self.desk.kind == "zcdp" else e
            return [grid_bits(n * e, self.d, self.k, is_noisy=self.desk.kind != "none")]
        if self.is_pure:  # cells of a few deviations each, and one more stage below those that stand out
            return [int(np.clip(np.floor(np.log2(n * e / 2 / 8)), 4, 16)), 5]
        return self._projected_bits(n) if self.is_projected else [6, 6, 6]

    def _projected_bits(self, n: float) -> list[int]:
        """Where rows are many beside the noise, a first stage of few cells would keep nearly all of them and tell nothing: its
        budget is worth more in the finer cells. Else coarse cells stand out where fine ones do not."""
        deviation = self.desk.deviation(self._of_stages() / len(TWO_STAGES))
        return TWO_STAGES if n >= LEAST_ROWS * deviation * 2 ** TWO_STAGES[0] else THREE_STAGES
