"""The tree for sparse rows of many columns. Rows stay as they are: about a middle or a centre they would be dense.

So nothing is spent on a middle, steps are not relative, and all that the tree leaves over goes into sums of rows in all columns,
of which those are kept that stand out from the noise: by clusters of the projection first, then by nearest centre.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.methods.base import Found, shares
from kveil.methods.steps import NO_SIGNAL, Means, Taken, distance, noted, number_of_rows
from kveil.methods.tree.growth import Leaves
from kveil.methods.tree.kept import of_recovered
from kveil.methods.tree.sparse_sums import SparseSums, standing_means, standing_out
from kveil.methods.tree.stages import MOST_CENTERS, FirstLook, Stages
from kveil.progress import step as progress
from kveil.questions.cells import TOP, Residuals
from kveil.questions.frame import Frame, whole_steps
from kveil.solve.placed import Placed
from kveil.solve.shrink import within
from kveil.solve.sizing import wanted_groups
from kveil.solve.synopsis import LARGEST, TOO_LARGE, of_steps
from kveil.solve.wkmeans import thorough_kmeans
from kveil.space.euclidean import Centers

OF_COUNTS = 0.05  # of recovery
LEAST = 0.3  # of the radius: what a cluster of average size may need in one column to stand out, or there is no signal
OVER = 0.1  # the same for one of the cells that are merged into clusters
MOST_NUMBERS = 2**24  # in sums of more cells than k: 128 MB


NOT_BETTER = (
    "k centres were found to be no better than one mean: all are one private mean. Use a larger epsilon or fewer centres."
)


class Total(NamedTuple):
    """A noisy sum of all rows (d,), and the variance of the noise in one number of it."""

    sums: Floats
    variance: float

    def with_more(self, sums: Floats, law: SparseSums) -> Total:
        """The same, averaged with the sum of other cells by inverse variance."""
        other = len(sums) * law.deviation**2
        trust = other / (self.variance + other)
        return Total(trust * self.sums + (1 - trust) * sums.sum(axis=0), trust * self.variance)


class SparseFit(Stages):
    """One fit of CSR rows that stay sparse."""

    def run(self) -> Found:
        seen = self.look()
        if not seen.has_signal:
            return self._one_mean(seen)
        frame, grown = self.leaves(seen)
        progress("recovering centres", 4, 5)
        has_two = self._needed(self.desk.left / 2, seen.n) <= LEAST
        share = self.desk.left / (2 if has_two else 1)
        placed, cells, whole = self._recovered(frame, grown.leaves, seen.n, share)
        notes: tuple[str, ...] = ()
        if has_two:
            placed, notes = self._again(frame, placed, whole, seen.n)
        if 2 * cells.centers.nbytes > LARGEST:  # not made at all: it would take memory for nothing
            return self.ground.found(placed.centers, shares(placed.counts), placed.errors, (*notes, TOO_LARGE))
        found = Means(cells.counts, cells.centers, cells.errors, cells.counts == 0)
        synopsis = of_recovered(self.ground, seen, frame, grown, found, self.desk.deviation(OF_COUNTS * share))
        return self.ground.found(placed.centers, shares(placed.counts), placed.errors, notes, synopsis)

    def look(self, *, always_middle: bool = False) -> FirstLook:
        """Rows and radius. There is no signal if not even a cluster on a few columns could pass the threshold."""
        ground, desk = self.ground, self.desk
        progress("looking at the whole", 1, 5)
        share = 0.05 if self.is_pure else 0.01
        n = number_of_rows(desk, share)
        radius, total = distance(ground, ground.whole, 0.95, 0.02, float(ground.reach))
        needed = self._needed(desk.left - self._tree_share(), n)
        most = min(MOST_CENTERS, self.k * LEAST / max(needed, 1e-300))
        return FirstLook(n, desk.deviation(share), np.zeros(self.d), radius, self.k if needed <= LEAST else 0, total, most)

    def _recovered(self, frame: Frame, leaves: Leaves, n: float, share: float) -> tuple[Placed, Placed, Total]:
        """Centres in all columns from clusters found in the projection: more than k where noise allows, merged to k; those
        clusters; and the sum of all rows."""
        law = self._sums((1 - OF_COUNTS) * share)
        most = max(self.k, min(4 * self.k, len(leaves.points) // 2, MOST_NUMBERS // self.d))
        k2 = wanted_groups(OVER, n, TOP, law.cutoff, self.k, most)
        seeds = whole_steps(thorough_kmeans(leaves.points, leaves.weights, k2, self.rng), frame.reach).astype(np.float64)
        bases, radii = np.zeros((k2, self.d), dtype=np.int64), np.full(k2, frame.radius, dtype=np.int64)
        question = Residuals(frame, Centers(seeds, None), "projected", "centred", bases, radii)
        counts, sums = self._release(question, OF_COUNTS * share, law)
        return (*self._placed(counts, sums, law, float(frame.radius)), Total(sums.sum(axis=0), k2 * law.deviation**2))

    def _again(self, frame: Frame, placed: Placed, whole: Total, n: float) -> tuple[Placed, tuple[str, ...]]:
        """Sums of the rows nearest to each centre, in all columns; a centre without rows stays. One mean, where these sums
        show that k centres are worse."""
        share = self.desk.left
        law = self._sums((1 - OF_COUNTS) * share)
        codes = whole_steps(placed.centers, self.ground.reach)
        radii = np.full(self.k, frame.radius, dtype=np.int64)
        question = Residuals(frame, Centers(codes.astype(np.float64), None), "measured", "centred", np.zeros_like(codes), radii)
        counts, sums = self._release(question, OF_COUNTS * share, law)
        found = standing_means(counts, sums, np.ones(self.k), law, float(frame.radius))
        if not self._pays(codes.astype(np.float64) * (TOP / frame.radius), counts, sums, law.deviation):
            return self._lone(whole.with_more(sums, law), law, float(frame.radius), n), (NOT_BETTER,)
        weak = counts == 0
        centers = np.where(weak[:, None], placed.centers, found.centers)
        return Placed(centers, counts, np.where(weak, placed.errors, found.errors)), ()

    def _pays(self, centers: Floats, counts: Floats, sums: Floats, deviation: float) -> bool:
        """Whether centres of the first release may save more than one mean of theirs does, by the sums of the second, whose noise
        is new: so it tells without bias. Lengths in radii divided by TOP.

        A centre c saves 2 <c, S> - n |c|**2 of the squared lengths of its n rows, whose sum is S. Where the difference is within
        one deviation of 0, k centres stay: the second release makes them better.
        """
        mean = counts @ centers / max(float(counts.sum()), 1.0)
        apart = centers - mean
        saved = 2 * float((apart * sums).sum()) - float(counts @ ((centers**2).sum(axis=1) - (mean**2).sum()))
        return deviation == 0 or saved > -2 * deviation * float(np.sqrt((apart**2).sum()))

    def _lone(self, whole: Total, law: SparseSums, radius: float, n: float) -> Placed:
        """One mean, k times, from the sum of all rows: what stands out of it, or all of it, shrunken, whichever saves more."""
        noise, energy = whole.variance, float((whole.sums**2).sum())
        kept = standing_out(whole.sums, law.cutoff / law.deviation * np.sqrt(noise))
        n_kept, factor = int(np.count_nonzero(kept)), max(0.0, 1 - self.d * noise / max(energy, 1e-300))
        if factor**2 * energy > float((kept**2).sum()) - 2 * noise * n_kept:
            kept, n_kept = factor * whole.sums, self.d
        unit = radius / TOP / n
        error = min(radius, np.sqrt(noise * n_kept) * unit) if kept.any() else radius
        return Placed(np.tile(within(kept[None, :] * unit, radius), (self.k, 1)), np.ones(self.k), np.full(self.k, error))

    def _one_mean(self, seen: FirstLook) -> Found:
        """No signal for k centres: one mean, k times."""
        frame, share, k = self.ground.frame(), self.desk.left, self.k
        law = self._sums(0.8 * share)
        base, radii = np.zeros((1, self.d), dtype=np.int64), np.array([max(1, int(np.ceil(seen.radius)))])
        question = Residuals(frame, Centers(base.astype(np.float64), None), "measured", "measured", base, radii)
        counts, sums = self._release(question, 0.2 * share, law)
        trust = np.array([1 / max(seen.n_deviation, 1e-9) ** 2, 1 / max(self.desk.deviation(0.2 * share), 1e-9) ** 2])
        n = np.array([max(1.0, float(trust @ [seen.n, counts[0] or seen.n] / trust.sum()))])  # a weak count says nothing
        mean = standing_means(n, sums, np.ones(1), law, float(radii[0]))
        how = Taken(base.astype(np.float64), self.desk.deviation(0.2 * share), mean.centers, float(radii[0]))
        step = noted(self.ground, mean._replace(counts=counts), how)
        kept = of_steps(self.d, (step,), seen.n, seen.n_deviation, middle=self.ground.positions(seen.middle), total=seen.total)
        return self.ground.found(np.tile(mean.centers, (k, 1)), np.full(k, 1 / k), np.tile(mean.errors, k), (NO_SIGNAL,), kept)

    def _release(self, question: Residuals, of_counts: float, law: SparseSums) -> tuple[Floats, Floats]:
        return law.ask(replace(question, labels=("cells", "sums")), of_counts)  # public, charged

    def _placed(self, counts: Floats, sums: Floats, law: SparseSums, radius: float) -> tuple[Placed, Placed]:
        """k centres of released cells, and the cells. Those that go together are added BEFORE the threshold: their rows then
        stand out more."""
        cells = standing_means(counts, sums, np.ones(len(counts)), law, radius)
        if len(counts) == self.k:
            return cells, cells
        points = cells.centers[:, np.flatnonzero(cells.centers.any(axis=0))] if cells.centers.any() else cells.centers[:, :1]
        centers = thorough_kmeans(points, counts, self.k, self.rng)
        owner = cdist(points, centers, "sqeuclidean").argmin(axis=1)
        owner[counts == 0] = -1  # a cell without rows is noise and nothing else
        belongs = (owner == np.arange(self.k)[:, None]).astype(np.float64)  # (k, cells)
        return standing_means(belongs @ counts, belongs @ sums, belongs.sum(axis=1), law, radius), cells

    def _needed(self, share: float, n: float) -> float:
        """How long, in one column and as a part of the radius, the mean of a cluster of average size must be to stand out."""
        return self._sums((1 - OF_COUNTS) * share).cutoff * self.k / n / TOP

    def _sums(self, share: float) -> SparseSums:
        return SparseSums(self.desk, TOP, self.d, int(self.tuning.nonzeros or self.d), share)
