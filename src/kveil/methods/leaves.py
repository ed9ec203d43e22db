"""From a table of leaves to centres: noisy counts of cells from coarse to fine, noisy means of what they hold, ordinary
clustering of those, and one step on all leaves. Every number that leaves the table goes through a `Pool`, which charges it.

Cells of a level are all counted, empty ones too. What is kept of a level is cut further; what is left of a kept cell beside its
kept children is a part of its own, so no row of a kept cell is lost. LeafParts are disjoint sets of leaves, and follow from
released counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats, Integers
from kveil.desk.base import Held
from kveil.methods.steps import means
from kveil.partition.midpoints import descendants
from kveil.progress import step as progress
from kveil.questions.leaves import LeafCounts, LeafSums, Leaves, squared_reaches
from kveil.solve.evidence import BLOCK, shows_rows
from kveil.solve.placed import Placed, merged
from kveil.solve.shrink import shrunk
from kveil.solve.sizing import wanted_cells, wanted_groups
from kveil.solve.wkmeans import thorough_kmeans

FEW = 3  # columns: one fine level then shows more than means of coarse cells
LENGTH = 2**22  # of a scaled deviation: sums of 2**40 rows are at most 2**62
OF_ROWS = 0.01  # of the budget: the number of rows
OF_FEW = 0.75  # the one level of few columns
LEVELS, OF_LEVELS = (3 / 8, 11 / 16, 1.0), (0.05, 0.1, 0.15)  # of more columns: how deep, as shares of all levels
OF_MEANS = 0.35
OF_COUNTS, OF_PROJECTED_COUNTS = 0.1, 0.05  # of the last step, for the counts of clusters
MIDMOST = 0.85  # of the rows lie within the radius of the last step


@dataclass(frozen=True, eq=False)
class LeafParts:
    """Disjoint sets of leaves that were told apart, part 0 being what is in no kept cell.

    of_leaf: (leaves,) the part of every leaf.  weights: (parts,) noisy counts.
    levels, codes: (parts,) the cell that each part is, or is left of.
    """

    of_leaf: Integers
    weights: Floats
    levels: Integers
    codes: Integers

    @classmethod
    def whole(cls, n_leaves: int, weight: float) -> LeafParts:
        zero = np.zeros(1, dtype=np.int64)
        return cls(np.zeros(n_leaves, dtype=np.int64), np.array([weight]), zero, zero)

    def with_cells(self, level: int, depth: int, codes: Integers, weights: Floats) -> LeafParts:
        """These cells of a level as parts of their own, taken out of the parts they lie in."""
        of_leaf, left = self.of_leaf.copy(), self.weights.copy()
        leaves = descendants(codes, depth - level).reshape(len(codes), -1)
        np.subtract.at(left, of_leaf[leaves[:, 0]], weights)
        of_leaf[leaves] = len(left) + np.arange(len(codes))[:, None]
        levels = np.append(self.levels, np.full(len(codes), level))
        return LeafParts(of_leaf, np.append(left, weights), levels, np.append(self.codes, codes))


class LeafReading:
    """One release of a table.

    Private:      the table, which is a sum over rows.  Public: the leaves, cut before any row was seen, and the budget.
    Neighbours:   add or remove one record.
    Sensitivity:  a row is in one leaf, so in one cell of a level, one part and one cluster: 1 in each count. A deviation in a
                  cell from its centre has an L2 norm of at most `Midpoints.reach`, or from the middle of the domain its
                  radius; in the last step at most the farthest corner of its leaf, and is scaled down, by a public factor of
                  that leaf, to the radius of the step. Scaled by whole numbers, all are at most `LENGTH` long.
    Cost:         that of the pool: the shares add up to the whole.
    """

    def __init__(self, leaves: Leaves, desk: Held, n_clusters: int, rng: np.random.Generator) -> None:
        self.desk, self.k, self.rng = desk, n_clusters, rng
        self.leaves, self.cells, self.d = leaves, leaves.cells, leaves.n_columns
        self.is_pure = desk.kind != "zcdp"

    def run(self) -> Placed:
        """Centres in steps of the grid, from the middle of the domain."""
        progress("looking at the whole", 1, 3)
        ((rows, _),) = self.desk.ask(LeafCounts("number of rows", 0, np.zeros(1, dtype=np.int64)), OF_ROWS)  # public, charged
        n = max(10.0, float(rows[0]))
        progress("counting cells", 2, 3)
        whole = LeafParts.whole(self.leaves.n_leaves, n)
        if self.d <= FEW:
            parts = self._cut(whole, [self._one_level(n)], [OF_FEW])
            centers = self._clustered(parts, self._centers(parts), first=1)  # nothing tells where part 0 is
            progress("one step", 3, 3)
            return self._stepped(centers, parts, self._leaf_centers())
        parts = self._cut(whole, sorted({ceil(share * self.cells.depth) for share in LEVELS}), OF_LEVELS)
        if self.leaves.is_projected:
            progress("recovering centres", 3, 3)
            return self._recovered(parts, n)
        points = self._means(parts)
        progress("one step", 3, 3)
        return self._stepped(self._clustered(parts, points, first=0), parts, points[parts.of_leaf])

    def _cut(self, parts: LeafParts, levels: Sequence[int], shares: Sequence[float]) -> LeafParts:
        """Level by level: count all cells in what was kept of the level above, and keep those that show rows."""
        kept, at = np.zeros(1, dtype=np.int64), 0
        for level, share in zip(levels, shares, strict=False):  # a shallow table has fewer levels
            codes = descendants(kept, level - at)
            ((counts, deviation),) = self.desk.ask(LeafCounts("cells", level, codes), share)
            is_only = 1 << (level - at) >= BLOCK
            is_kept = shows_rows(counts, deviation, is_pure=self.is_pure, is_only=is_only)
            kept, at = codes[is_kept], level
            if not len(kept):
                break
            parts = parts.with_cells(level, self.cells.depth, kept, counts[is_kept])
        return parts

    def _one_level(self, n: float) -> int:
        """The level of few columns: finer with more rows and budget; few cells are worth twice as many."""
        budget = OF_FEW * float(self.desk.total) if self.desk.kind != "none" else 1e6 / n
        bits = np.log2(wanted_cells(n * (budget if self.is_pure else 2 * np.sqrt(budget)), self.d))
        return int(np.clip(round(float(bits + np.clip(9.5 - bits, 0, 1))), min(4, self.cells.depth), self.cells.depth))

    def _means(self, parts: LeafParts) -> Floats:
        """The noisy mean of every part, shrunken towards the centre of its cell and kept inside it."""
        centers = self._centers(parts).astype(np.int64)
        reaches = np.array([self.cells.reach(int(level), "l2") for level in parts.levels])
        factors = LENGTH // reaches
        of = parts.of_leaf
        question = LeafSums(self.leaves, ("", "means of cells"), of, len(reaches), LENGTH, centers[of], factors[of])
        sums = self.desk.hold(question).show(1, OF_MEANS).values / factors[:, None]  # public, charged
        n = np.maximum(parts.weights, 1.0)
        errors = self.desk.spread(self.d, 1.0, OF_MEANS) * (LENGTH / factors / n) ** 2
        low, high = self._boxes(parts)
        return np.clip(centers + shrunk(sums / n[:, None], errors), low, high)

    def _clustered(self, parts: LeafParts, points: Floats, *, first: int) -> Floats:
        """Centres of the parts that show rows, from part number `first` on; of the whole if none does."""
        least = 2 * self.desk.deviation(OF_LEVELS[-1]) if first == 0 else 0.0
        shown = (np.arange(len(parts.weights)) >= first) & (parts.weights > least)
        if not shown.any():
            shown[0] = True
        return thorough_kmeans(points[shown], parts.weights[shown], self.k, self.rng)

    def _stepped(self, centers: Floats, parts: LeafParts, places: Floats) -> Placed:
        """One Lloyd step on all leaves, each wholly in the cluster that its place is nearest to."""
        share = self.desk.left
        bases = np.rint(centers).astype(np.int64)
        owner = cdist(places, bases, "sqeuclidean").argmin(axis=1)
        far = self._farthest(bases[owner])
        radius = self._radius(far, parts)
        full = LENGTH // radius
        factors = np.minimum(full, full * radius // far)  # of a leaf: far times it is at most full radius
        labels = ("clusters", "deviations")
        question = LeafSums(self.leaves, labels, owner, self.k, full * radius, bases[owner], factors)
        counts, sums = self.desk.ask(question, OF_COUNTS * share, (1 - OF_COUNTS) * share)  # public, charged
        found = means(counts, sums._replace(values=sums.values / full), np.full(self.k, radius))
        moved = bases.astype(np.float64) + np.where(found.is_weak[:, None], 0.0, found.moves)
        return Placed(moved, found.counts, np.where(found.is_weak, float(self.leaves.frame.radius), found.errors))

    def _recovered(self, parts: LeafParts, n: float) -> Placed:
        """Centres in all columns of clusters found in the projection: more than k, to be merged, where noise allows."""
        share, radius = self.desk.left, self.leaves.frame.radius
        of_counts, of_sums = OF_PROJECTED_COUNTS * share, (1 - OF_PROJECTED_COUNTS) * share
        noise = np.sqrt(self.desk.spread(self.d, radius, of_sums))
        most = max(self.k, min(4 * self.k, len(parts.weights) // 2))
        groups = wanted_groups(0.3, n, radius, noise, self.k, most)
        first = min(1, len(parts.weights) - 1)  # nothing tells where part 0 is
        seeds = thorough_kmeans(self._centers(parts)[first:], parts.weights[first:], groups, self.rng)
        owner = cdist(self._leaf_centers(), seeds, "sqeuclidean").argmin(axis=1)
        question = LeafSums(self.leaves, ("clusters", "sums"), owner, groups, radius)
        counts, sums = self.desk.ask(question, of_counts, of_sums)  # public, charged
        shown = means(counts, sums, np.full(groups, radius))
        found = Placed(
            np.where(shown.is_weak[:, None], 0.0, shown.moves), np.where(shown.is_weak, 0.0, shown.counts),
            np.where(shown.is_weak, float(radius), shown.errors),
        )  # fmt: skip
        return found if groups == self.k else merged(found, self.k, self.rng)

    def _radius(self, far: Integers, parts: LeafParts) -> int:
        """How far most rows may lie from their centre, by released counts spread evenly over the leaves of each part: free."""
        sizes = np.bincount(parts.of_leaf, minlength=len(parts.weights))
        weights = (np.maximum(parts.weights, 0.0) / np.maximum(sizes, 1))[parts.of_leaf]
        order = np.argsort(far, kind="stable")
        below = np.cumsum(weights[order])
        place = int(np.searchsorted(below, MIDMOST * below[-1])) if below[-1] > 0 else len(order) - 1
        return int(far[order[min(place, len(order) - 1)]])

    def _farthest(self, bases: Integers) -> Integers:
        """A bound, rounded up, on how far any row of a leaf lies from the leaf's base: its farthest corner."""
        return np.asarray(np.ceil(np.sqrt(squared_reaches(self.leaves, bases).astype(np.float64)))).astype(np.int64) + 1

    def _centers(self, parts: LeafParts) -> Floats:
        """Centres, in whole steps, of the cell that each part is, or is left of."""
        low, high = self._boxes(parts)
        return ((low + high) >> 1).astype(np.float64)

    def _boxes(self, parts: LeafParts) -> tuple[Integers, Integers]:
        """Least and greatest row of the cell that each part is, or is left of."""
        low, high = (np.empty((len(parts.codes), self.cells.n_axes), dtype=np.int64) for _ in range(2))
        for level in np.unique(parts.levels).tolist():
            at = parts.levels == level
            low[at], high[at] = self.cells.boxes(parts.codes[at], level)
        return low, high

    def _leaf_centers(self) -> Floats:
        return self.cells.centers(np.arange(self.leaves.n_leaves), self.cells.depth).astype(np.float64)
