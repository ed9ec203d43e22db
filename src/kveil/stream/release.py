"""From a table of leaves to centres: noisy counts of cells from coarse to fine, noisy means of what they hold, ordinary
clustering of those, and one step on all leaves. Every number that leaves the table goes through a `Pool`, which charges it.

Cells of a level are all counted, empty ones too. What is kept of a level is cut further; what is left of a kept cell beside its
kept children is a part of its own, so no row of a kept cell is lost. Parts are disjoint sets of leaves, and follow from
released counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kveil.partition.midpoints import descendants
from kveil.privatise.pool import Pool
from kveil.solve.evidence import BLOCK, shows_rows
from kveil.solve.placed import Placed, merged
from kveil.solve.shrink import shrunk, within
from kveil.solve.wkmeans import thorough_kmeans
from kveil.source.progress import step as progress
from kveil.stream.table import LeafTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEW = 3  # columns: one fine level then shows more than means of coarse cells
LENGTH = 2**22  # of a scaled deviation: sums of 2**40 rows are at most 2**62
OF_ROWS = 0.01  # of the budget: the number of rows
OF_FEW = 0.75  # the one level of few columns
LEVELS, OF_LEVELS = (3 / 8, 11 / 16, 1.0), (0.05, 0.1, 0.15)  # of more columns: how deep, as shares of all levels
OF_MEANS = 0.35
OF_COUNTS, OF_PROJECTED_COUNTS = 0.1, 0.05  # of the last step, for the counts of clusters
MIDMOST = 0.85  # of the rows lie within the radius of the last step


@dataclass(frozen=True, eq=False)
class Parts:
    """Disjoint sets of leaves that were told apart, part 0 being what is in no kept cell.

    of_leaf: (leaves,) the part of every leaf.  weights: (parts,) noisy counts.
    levels, codes: (parts,) the cell that each part is, or is left of.
    """

    of_leaf: Integers
    weights: Floats
    levels: Integers
    codes: Integers

    @classmethod
    def whole(cls, n_leaves: int, weight: float) -> Parts:
        zero = np.zeros(1, dtype=np.int64)
        return cls(np.zeros(n_leaves, dtype=np.int64), np.array([weight]), zero, zero)

    def with_cells(self, level: int, depth: int, codes: Integers, weights: Floats) -> Parts:
        """These cells of a level as parts of their own, taken out of the parts they lie in."""
        of_leaf, left = self.of_leaf.copy(), self.weights.copy()
        leaves = descendants(codes, depth - level).reshape(len(codes), -1)
        np.subtract.at(left, of_leaf[leaves[:, 0]], weights)
        of_leaf[leaves] = len(left) + np.arange(len(codes))[:, None]
        levels = np.append(self.levels, np.full(len(codes), level))
        return Parts(of_leaf, np.append(left, weights), levels, np.append(self.codes, codes))


class Reading:
    """One release of a table.

    Private:      the table, which is a sum over rows.  Public: the leaves, cut before any row was seen, and the budget.
    Neighbours:   add or remove one record.
    Sensitivity:  a row is in one leaf, so in one cell of a level, one part and one cluster: 1 in each count. A deviation in a
                  cell from its centre has an L2 norm of at most `Midpoints.reach`, or from the middle of the domain its
                  radius; in the last step at most the farthest corner of its leaf, and is scaled down, by a public factor of
                  that leaf, to the radius of the step. Scaled by whole numbers, all are at most `LENGTH` long.
    Cost:         that of the pool: the shares add up to the whole.
    """

    def __init__(self, table: LeafTable, pool: Pool, n_clusters: int, rng: np.random.Generator) -> None:
        self.table, self.pool, self.k, self.rng = table, pool, n_clusters, rng
        self.leaves, self.cells, self.d = table.leaves, table.leaves.cells, table.domain.n_columns
        self.is_pure = pool.kind != "zcdp"

    def run(self) -> Placed:
        """Centres in steps of the grid, from the middle of the domain."""
        progress("looking at the whole", 1, 3)
        n = max(10.0, float(self.pool.counts("number of rows", self.table.raw_counts.sum(keepdims=True), OF_ROWS)[0]))
        progress("counting cells", 2, 3)
        whole = Parts.whole(self.leaves.n_leaves, n)
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

    def _cut(self, parts: Parts, levels: Sequence[int], shares: Sequence[float]) -> Parts:
        """Level by level: count all cells in what was kept of the level above, and keep those that show rows."""
        kept, at = np.zeros(1, dtype=np.int64), 0
        for level, share in zip(levels, shares, strict=False):  # a shallow table has fewer levels
            codes = descendants(kept, level - at)
            raw = self.table.raw_counts.reshape(1 << level, -1).sum(axis=1)[codes]
            counts = self.pool.counts("cells", raw, share)
            is_only = 1 << (level - at) >= BLOCK
            is_kept = shows_rows(counts, self.pool.deviation(share), is_pure=self.is_pure, is_only=is_only)
            kept, at = codes[is_kept], level
            if not len(kept):
                break
            parts = parts.with_cells(level, self.cells.depth, kept, counts[is_kept])
        return parts

    def _one_level(self, n: float) -> int:
        """The level of few columns: finer with more rows and budget; few cells are worth twice as many."""
        budget = OF_FEW * float(self.pool.total) if self.pool.kind != "none" else 1e6 / n
        bits = np.log2((n * (budget if self.is_pure else 2 * np.sqrt(budget)) / 10) ** (2 * self.d / (self.d + 2)))
        return int(np.clip(round(float(bits + np.clip(9.5 - bits, 0, 1))), min(4, self.cells.depth), self.cells.depth))

    def _means(self, parts: Parts) -> Floats:
        """The noisy mean of every part, shrunken towards the centre of its cell and kept inside it."""
        centers = self._centers(parts).astype(np.int64)
        reaches = np.array([self.cells.reach(int(level), "l2") for level in parts.levels])
        factors = LENGTH // reaches
        raw_counts, raw_sums = self._added(parts.of_leaf, len(reaches))
        raw = (raw_sums - raw_counts[:, None] * centers) * factors[:, None]  # every row adds at most LENGTH
        sums = self.pool.vectors("means of cells", raw, LENGTH, OF_MEANS) / factors[:, None]
        n = np.maximum(parts.weights, 1.0)
        errors = self.pool.spread(self.d, 1.0, OF_MEANS) * (LENGTH / factors / n) ** 2
        low, high = self._boxes(parts)
        return np.clip(centers + shrunk(sums / n[:, None], errors), low, high)

    def _clustered(self, parts: Parts, points: Floats, *, first: int) -> Floats:
        """Centres of the parts that show rows, from part number `first` on; of the whole if none does."""
        least = 2 * self.pool.deviation(OF_LEVELS[-1]) if first == 0 else 0.0
        shown = (np.arange(len(parts.weights)) >= first) & (parts.weights > least)
        if not shown.any():
            shown[0] = True
        return thorough_kmeans(points[shown], parts.weights[shown], self.k, self.rng)

    def _stepped(self, centers: Floats, parts: Parts, places: Floats) -> Placed:
        """One Lloyd step on all leaves, each wholly in the cluster that its place is nearest to."""
        share = self.pool.left
        bases = np.rint(centers).astype(np.int64)
        owner = cdist(places, bases, "sqeuclidean").argmin(axis=1)
        far = self._farthest(bases[owner])
        radius = self._radius(far, parts)
        full = LENGTH // radius
        factors = np.minimum(full, full * radius // far)  # of a leaf: far times it is at most full radius
        raw_counts, _ = self._added(owner, self.k)
        counts = self.pool.counts("clusters", raw_counts, OF_COUNTS * share)
        deviations = (self.table.raw_sums - self.table.raw_counts[:, None] * bases[owner]) * factors[:, None]
        raw = np.zeros((self.k, self.d), dtype=np.int64)
        np.add.at(raw, owner, deviations)
        of_sums = (1 - OF_COUNTS) * share
        sums = self.pool.vectors("deviations", raw, full * radius, of_sums) / full
        n = np.maximum(counts, 1.0)
        errors = np.sqrt(self.pool.spread(self.d, 1.0, of_sums)) * radius / n
        moves = within(shrunk(sums / n[:, None], errors**2), float(radius))
        is_weak = counts < max(2 * self.pool.deviation(OF_COUNTS * share), 0.5)
        reach = float(self.leaves.frame.radius)
        moved = bases.astype(np.float64) + np.where(is_weak[:, None], 0.0, moves)
        return Placed(moved, counts, np.where(is_weak, reach, errors))

    def _recovered(self, parts: Parts, n: float) -> Placed:
        """Centres in all columns of clusters found in the projection: more than k, to be merged, where noise allows."""
        share, radius = self.pool.left, self.leaves.frame.radius
        of_counts, of_sums = OF_PROJECTED_COUNTS * share, (1 - OF_PROJECTED_COUNTS) * share
        noise = np.sqrt(self.pool.spread(self.d, radius, of_sums))
        most = max(self.k, min(4 * self.k, len(parts.weights) // 2))
        groups = most if noise == 0 else int(np.clip(np.floor(0.3 * n * radius / noise), self.k, most))
        first = min(1, len(parts.weights) - 1)  # nothing tells where part 0 is
        seeds = thorough_kmeans(self._centers(parts)[first:], parts.weights[first:], groups, self.rng)
        owner = cdist(self._leaf_centers(), seeds, "sqeuclidean").argmin(axis=1)
        raw_counts, raw_sums = self._added(owner, groups)
        counts = self.pool.counts("clusters", raw_counts, of_counts)
        sums = self.pool.vectors("sums", raw_sums, radius, of_sums)
        is_weak = counts < max(2 * self.pool.deviation(of_counts), 0.5)
        rows = np.maximum(counts, 1.0)
        errors = noise / rows
        found = Placed(
            np.where(is_weak[:, None], 0.0, within(shrunk(sums / rows[:, None], errors**2), float(radius))),
            np.where(is_weak, 0.0, counts), np.where(is_weak, float(radius), errors),
        )  # fmt: skip
        return found if groups == self.k else merged(found, self.k, self.rng)

    def _radius(self, far: Integers, parts: Parts) -> int:
        """How far most rows may lie from their centre, by released counts spread evenly over the leaves of each part: free."""
        sizes = np.bincount(parts.of_leaf, minlength=len(parts.weights))
        weights = (np.maximum(parts.weights, 0.0) / np.maximum(sizes, 1))[parts.of_leaf]
        order = np.argsort(far, kind="stable")
        below = np.cumsum(weights[order])
        place = int(np.searchsorted(below, MIDMOST * below[-1])) if below[-1] > 0 else len(order) - 1
        return int(far[order[min(place, len(order) - 1)]])

    def _farthest(self, bases: Integers) -> Integers:
        """A bound, rounded up, on how far any row of a leaf lies from the leaf's base: its farthest corner."""
        low, high = self.cells.boxes(np.arange(self.leaves.n_leaves), self.cells.depth)
        corner = np.maximum(np.abs(low - bases), np.abs(high - bases)).astype(np.float64)
        return np.asarray(np.ceil(np.sqrt((corner**2).sum(axis=1)))).astype(np.int64) + 1

    def _added(self, owner: Integers, n_owners: int) -> tuple[Integers, Integers]:
        """Raw counts and raw sums of disjoint sets of leaves."""
        raw_counts, raw_sums = np.zeros(n_owners, dtype=np.int64), np.zeros((n_owners, self.d), dtype=np.int64)
        np.add.at(raw_counts, owner, self.table.raw_counts)
        np.add.at(raw_sums, owner, self.table.raw_sums)
        return raw_counts, raw_sums

    def _centers(self, parts: Parts) -> Floats:
        """Centres, in whole steps, of the cell that each part is, or is left of."""
        low, high = self._boxes(parts)
        return ((low + high) >> 1).astype(np.float64)

    def _boxes(self, parts: Parts) -> tuple[Integers, Integers]:
        """Least and greatest row of the cell that each part is, or is left of."""
        low, high = (np.empty((len(parts.codes), self.cells.n_axes), dtype=np.int64) for _ in range(2))
        for level in np.unique(parts.levels).tolist():
            at = parts.levels == level
            low[at], high[at] = self.cells.boxes(parts.codes[at], level)
        return low, high

    def _leaf_centers(self) -> Floats:
        return self.cells.centers(np.arange(self.leaves.n_leaves), self.cells.depth).astype(np.float64)
