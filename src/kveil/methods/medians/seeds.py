"""Where a private k-median starts: k places that rows are near to, found by the stages of the tree or by a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.methods.candidate_search import CandidateSearch
from kveil.methods.candidates import OF_CANDIDATES, OF_SWAPS
from kveil.methods.ground import Ground
from kveil.methods.steps import asked_means, number_of_rows
from kveil.methods.tree.growth import Grown
from kveil.methods.tree.kept import middle_of, of_leaves, of_recovered
from kveil.methods.tree.stages import FirstLook, Stages
from kveil.progress import step as progress
from kveil.questions.cells import Residuals
from kveil.questions.frame import Frame
from kveil.solve.shrink import within
from kveil.solve.synopsis import Synopsis, of_steps
from kveil.solve.wkmedian import owners, thorough_kmedian
from kveil.space.euclidean import Centers
from kveil.tuning import Candidates as CandidatesTuning
from kveil.tuning import Tree as TreeTuning

OF_ALL_COLUMNS = 0.8  # of what is left, for the first centres in all columns, if there is no budget for several rounds


class Seeds(NamedTuple):
    """Released centres (k, d), in steps from the centre of the domain; about how many rows are near each, and how near.

    One centre stands in place of k where the budget is too small for k.

    synopsis: what else was released on the way, if that is kept.
    """

    centers: Floats
    counts: Floats
    reach: float
    synopsis: Synopsis | None = None


def tree_seeds(ground: Ground, rng: np.random.Generator) -> Seeds:
    """Seeds by noisy counts of a public tree and an ordinary k-median of its leaves. Part of the budget is left."""
    return _Seeding(ground, TreeTuning(), rng).seeds()


def candidate_seeds(ground: Ground, rng: np.random.Generator) -> Seeds:
    """Seeds by private swaps among candidates in a projection, and one mean of each, in all columns, if there was one."""
    desk, k = ground.desk, ground.k
    n = ground.task.expected_rows or number_of_rows(ground.desk, 0.02)
    progress("looking for candidates", 1, 2)
    search = CandidateSearch(desk, ground.task, CandidatesTuning(), "k-median", rng)
    frame, places = search.found_in_projection(n, OF_CANDIDATES * desk.left, OF_SWAPS * desk.left)
    progress("first centres", 2, 2)
    if frame.axes is None:
        return Seeds(places.astype(np.float64), np.full(k, n / k), float(ground.reach))
    bases, radii = np.zeros((k, ground.d), dtype=np.int64), np.full(k, frame.radius, dtype=np.int64)
    question = Residuals(frame, Centers(places.astype(np.float64), None), "projected", "centred", bases, radii)
    found = asked_means(desk, question, 0.05 * desk.left / 3, 0.95 * desk.left / 3)
    centers = np.where(found.is_weak[:, None], 0.0, found.moves)
    return Seeds(within(centers, ground.reach), np.where(found.is_weak, 0.0, found.counts), float(ground.reach))


class _Seeding(Stages):
    """The stages of the tree for k-means, with distances in place of their squares where released points are clustered."""

    of_few_columns: ClassVar[Mapping[int, float]] = {1: 0.6, 2: 0.6, 3: 0.6}  # medians take several releases

    def seeds(self) -> Seeds:
        seen = self.look(always_middle=self.k == 1)
        if self.k == 1 or seen.n_centers < self.k:  # nothing to divide, or not enough to divide it by
            kept = of_steps(self.d, (), seen.n, seen.n_deviation, middle=middle_of(self.ground, seen), total=seen.total)
            return Seeds(seen.middle[None, :], np.array([seen.n]), seen.radius, kept)
        frame, grown = self.leaves(seen)
        progress("first centres", 4, 5)
        return self._in_all_columns(frame, grown, seen) if self.is_projected else self._of_leaves(grown, seen)

    def _of_leaves(self, grown: Grown, seen: FirstLook) -> Seeds:
        """The tree sees all columns, so medians of its leaves are centres already."""
        leaves, kept = grown.leaves, of_leaves(self.ground, seen, grown)
        weights = np.maximum(leaves.weights, 0.0)
        centers = thorough_kmedian(leaves.points, weights, self.k, self.rng)
        owner, apart = owners(leaves.points, centers)
        counts = np.bincount(owner, weights, minlength=self.k).astype(np.float64)
        reach = _weighted_median(apart + leaves.reaches, weights)
        return Seeds(seen.middle + centers, counts, reach, kept)

    def _in_all_columns(self, frame: Frame, grown: Grown, seen: FirstLook) -> Seeds:
        """Means, in all columns, of clusters found in the projection: more than k where noise allows, merged to k."""
        k, desk, n, radius = self.k, self.desk, seen.n, seen.radius
        rounds = (
            [3] if not self.is_pure else [t for t in (3, 2) if self._noise(radius, 0.9 * desk.left / t) * k / n <= 0.3 * radius]
        )
        share = desk.left * (1 / rounds[0] if rounds else OF_ALL_COLUMNS)
        found = self.recovered(frame, grown.leaves, seen, share, thorough_kmedian)
        kept = of_recovered(self.ground, seen, frame, grown, found, desk.deviation(0.05 * share))
        means, counts = found.moves, found.counts
        if len(counts) > k:
            centers = thorough_kmedian(means, counts, k, self.rng)
            means, counts = centers, np.bincount(owners(means, centers)[0], counts, minlength=k).astype(np.float64)
        return Seeds(within(seen.middle + means, self.ground.reach), counts, radius, kept)

    def _noise(self, radius: float, share: float) -> float:
        """Expected length of the noise on a sum over all columns."""
        return float(np.sqrt(self.desk.spread(self.d, radius, share)))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order[int(np.searchsorted(total, total[-1] / 2))]])
