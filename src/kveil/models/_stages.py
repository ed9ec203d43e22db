"""The stages that come before centres: how many rows, where, how far, and the leaves of a tree of noisy counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.models._growth import Leaves, grow, outposts, with_means
from kveil.models._histogram import Histogram, histogram
from kveil.models._principal import principal_axes
from kveil.models._view import Means, View
from kveil.partition.projection import random_axes
from kveil.solve.shrink import shrunk, within
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers
from kveil.summary.cells import MOMENT_TOP, Residuals, moments
from kveil.summary.frame import Frame, whole_steps
from kveil.tuning import Tree as TreeTuning

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clustering = Callable[[Floats, Floats, int, np.random.Generator], Floats]  # of released points with weights

OF_PCA = 0.15  # of the budget, for the moments that principal axes come from
CELLS_PER_CENTER = 200  # of a grid over few columns; with fewer it is made finer
MOST_LEAVES = 512  # with more, leaves are small, their middles will do, and looking for the nearest one takes too long


class Outlook(NamedTuple):
    """Released: the number of rows, its deviation, where rows are, how far out, and how many centres can be told apart."""

    n: float
    doubt: float
    middle: Floats
    radius: float
    n_centers: int

    @property
    def has_signal(self) -> bool:
        return self.n_centers > 0


class Stages:
    """What is shared out, in which order, and when it is better to stop at one centre. Lengths in steps of a `View`."""

    # For the one grid over few columns. What is left is for one step, which in three columns has coarser cells to mend.
    of_few_columns: ClassVar[Mapping[int, float]] = {1: 0.9, 2: 0.9, 3: 0.78}

    def __init__(self, view: View, tuning: TreeTuning, rng: np.random.Generator) -> None:
        self.view, self.pool, self.tuning, self.rng = view, view.pool, tuning, rng
        self.k, self.d = view.k, view.d
        self.is_pure = self.pool.kind == "pure"
        self.is_low = self.d <= 3
        self.p = self.d if self.d <= (12 if self.is_pure else 16) else 12
        self.is_projected = self.p < self.d

    def look(self, *, always_middle: bool = False) -> Outlook:
        """Rows, middle and radius; few columns need neither of the last two."""
        view, pool, d = self.view, self.pool, self.d
        progress("looking at the whole", 1, 5)
        share = 0.05 if self.is_pure and self.is_projected else 0.04 if self.is_low else 0.01
        n, raw_sum = view.rows(share)
        told_apart = self._told_apart(n, 1.4 * view.reach, np.sqrt(pool.spread(d, view.reach, 0.7)))
        first = Outlook(n, pool.deviation(share), np.zeros(d), float(view.reach), told_apart)
        if not told_apart or (self.is_low and not always_middle):
            return first
        middle = self._mean(raw_sum, n)
        cap = view.reach + float(np.linalg.norm(middle))
        radius = view.quantile(view.frame(middle), 0.95 if self.is_projected else 0.99, 0.02, cap)
        noise = np.sqrt(pool.spread(d, radius, 0.95 * (pool.left - 0.25)))
        return first._replace(middle=middle, radius=radius, n_centers=self._told_apart(n, radius, noise))

    def _told_apart(self, n: float, radius: float, noise: float) -> int:
        """How many clusters of equal size have a mean whose noise is shorter than the radius: k, or fewer with less noise, or
        0 where not even two have. Only a projection needs to ask: its recovery has noise in all columns."""
        if not self.is_projected or noise * self.k <= n * radius:
            return self.k
        fewer = int(0.5 * n * radius / noise)
        return fewer if fewer >= 2 else 0

    def leaves(self, outlook: Outlook) -> tuple[Frame, Leaves]:
        """Released points with weights, in the frame of the tree, about the middle."""
        frame, half, full = self._frame(outlook.middle, outlook.radius, outlook.n)
        progress("growing the tree", 2, 5)
        bits = self._stage_bits(outlook.n)
        leaves = grow(self.view, frame, half, bits, self._of_stages() / len(bits))
        if not self.is_low and len(leaves.points) <= MOST_LEAVES:
            progress("looking into the leaves", 3, 5)
            leaves = with_means(self.view, frame, leaves, outposts(half, full), 0.3 * self._tree_share())
        return frame, leaves

    def histogram(self, outlook: Outlook) -> Histogram:
        """Noisy counts of one grid over few columns."""
        frame, half, _ = self._frame(outlook.middle, outlook.radius, outlook.n)
        (bits,) = self._stage_bits(outlook.n)
        return histogram(self.view, frame, half, bits, self._of_stages())

    def recovered(self, frame: Frame, leaves: Leaves, outlook: Outlook, share: float, clustered: Clustering) -> Means:
        """Released means, about the middle, of clusters found in the projection: more than k, to be merged, if noise allows."""
        noise, n_leaves = np.sqrt(self.pool.spread(self.d, outlook.radius, 0.95 * share)), len(leaves.points)
        most = max(self.k, min(4 * self.k, 3 * n_leaves // 4))
        cells = most if noise == 0 else int(np.clip(np.floor(0.3 * outlook.n * outlook.radius / noise), self.k, most))
        seeds = whole_steps(clustered(leaves.points, leaves.weights, cells, self.rng), frame.reach).astype(np.float64)
        bases, radii = np.zeros((cells, self.d), dtype=np.int64), np.full(cells, frame.radius, dtype=np.int64)
        state = Residuals(frame, Centers(seeds, None), "projected", "centred", bases, radii)
        found = self.view.means(state, 0.05 * share, 0.95 * share)
        weak = found.is_weak
        return Means(
            np.where(weak, 0.0, found.counts), np.where(weak[:, None], 0.0, found.moves),
            np.where(weak, self.view.reach, found.errors), weak,
        )  # fmt: skip

    def _mean(self, raw_sum: Integers, n: float) -> Floats:
        share = 0.04
        if self.is_pure and self.is_projected:
            share = min(0.5, max(0.04, 10 * self.d / (n * float(self.pool.total))))
        reach = self.view.reach
        noisy = self.pool.vectors("sum of rows", raw_sum, reach, share)
        variance = np.array([self.pool.spread(self.d, reach, share) / n**2])
        return np.asarray(within(shrunk(noisy / n, variance), reach)[0])

    def _frame(self, middle: Floats, radius: float, n: float) -> tuple[Frame, Floats, Floats]:
        """The axes of the tree, how far cells reach along each, and how far rows may."""
        frame = self.view.frame(middle, radius)
        if self.is_projected and self.tuning.frame == "pca":
            axes, deviations = principal_axes(self.view, frame, self.p, n, OF_PCA)
            half = np.clip(3 * deviations, radius / np.sqrt(self.d), radius)
            return replace(frame, axes=axes, reach=frame.radius), half, half
        if self.is_projected:
            reach = int(np.ceil(min(radius, 1.5 * radius * np.sqrt(self.p / self.d))))
            half = np.full(self.p, min(radius, 2.5 * radius / np.sqrt(self.d)))
            return replace(frame, axes=random_axes(self.d, self.p, self.rng), reach=reach), half, half
        if self.is_low:
            return frame, self.view.half, self.view.half
        share = 0.08 if self.is_pure else 0.02
        (raw,) = self.view.source.map_reduce(moments, frame, grid=self.view.task.domain)
        r0, top = float(frame.radius), float(MOMENT_TOP**2)
        noisy = self.pool.vectors("squares", raw, MOMENT_TOP**2, share)[0] / top * r0**2 / n
        own = np.sqrt(self.pool.spread(self.d, 1.0, share) / self.d) * r0**2 / n
        variance = np.clip(noisy, max(own, 1e-6 * r0**2), r0**2)
        stage = self.pool.deviation(self._of_stages() / len(self._stage_bits(n)))
        factor = 4 if self.p <= 8 and stage <= (0.0002 if self.is_pure else 0.002) * n else 3
        full = self.view.half + np.abs(middle)
        half = np.minimum(np.minimum(factor * np.sqrt(variance), radius), full)
        return self.view.frame(middle, 2.0 * self.view.reach), half, full

    def _tree_share(self) -> float:
        return self.of_few_columns[self.d] if self.is_low else 0.4 if self.is_pure and self.p == self.d else 0.25

    def _of_stages(self) -> float:
        return self._tree_share() * (1.0 if self.is_low else 0.7)

    def _stage_bits(self, n: float) -> list[int]:
        e = float(self.pool.total) * self._of_stages() if self.pool.kind != "none" else 1e6 / n
        if self.is_low:
            e = 2 * np.sqrt(e) if self.pool.kind == "zcdp" else e
            bits = np.log2((n * e / 10) ** (2 * self.d / (self.d + 2)))
            finer = np.clip(np.log2(CELLS_PER_CENTER * self.k) - bits, 0, 1)  # few cells a centre are worth twice as many
            return [int(np.clip(round(bits + finer), 4, 20))]
        if self.is_pure:
            return [int(np.clip(np.floor(np.log2(n * e / 8)), 4, 16))]
        return [6, 5, 5] if self.is_projected else [6, 6, 6]
