"""The practical protocol: heavy cells of small images first, then means of residuals, round by round more precisely.

From 5 columns on there are four rounds. Two random images of 4 dimensions give k seeds each; the pair of nearest seeds is a
key, so that clusters which collide in one image are told apart by the other. Means of the points of each key, relative to where
the images place it, give 1.5 k centres; means of residuals move them, the best k are kept, and residuals move those once
more. The noise of a mean follows the length that reports are cut to, and that follows what is known: how far points can be from
where two images place them, then how long the vectors of the round before were, which their noise itself tells.

Up to two columns there are two rounds: cells give 1.5 k seeds, and residuals around those are merged to k means. More seeds than
centres tell clusters apart that are narrower than a cell.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, hypot, sqrt

import numpy as np

from kveil.arrays import Floats
from kveil.collect.centres import FEWEST, Moved, Seeds, counted, merged, moved, spread, weighted_centres
from kveil.collect.descent import Proxy, descend
from kveil.collect.encoding import nearest
from kveil.collect.one_grid import CUT, MOST_LEAVES, cell_query
from kveil.collect.queries import Answers, Outcome, Query, Round, Terms, public_generator
from kveil.collect.vector import codebook
from kveil.partition.public_map import PublicMap, joint_lift, random_frames, random_shift, side

IMAGE = 4  # dimensions of an image
DEPTH = 12
DEPTHS = {1: 6, 2: 8, 3: 9, 4: 12}
FEW_COLUMNS = {1: (0.7, 0.3), 2: (0.7, 0.3), 3: (0.7, 0.3), 4: (0.5, 0.25, 0.25)}
MANY_COLUMNS = (0.2, 0.3, 0.25, 0.25)
MERGED = 2  # columns up to which residuals around more seeds than centres are merged in the last round
OVERSEEDING = 1.5
LEAST_RHO, RHO_SPREADS = 0.15, 2.5  # before any vector was reported: by the spread of cells
SHORTEST_RHO, RHO_LENGTHS = 0.05, 1.25  # else: by the typical length of what will be reported


class Refine:
    """`version`: 1 looks for cells outside the unit ball, too, and never for more seeds than centres in few columns."""

    name = "refine"

    def __init__(self, terms: Terms, seed: bytes, *, version: int = 2) -> None:
        self.terms, self.seed, self.version = terms, seed, version
        self.shares = FEW_COLUMNS.get(terms.n_columns, MANY_COLUMNS)
        self.is_wide = terms.n_columns > IMAGE
        self.is_merged = terms.n_columns <= MERGED and version > 1

    def first(self) -> Round:
        rng, d = public_generator(self.seed, "round", 1), self.terms.n_columns
        if not self.is_wide:
            return Round(1, (cell_query(0, PublicMap.drawn(d, d, rng), DEPTHS[d], self.terms),))
        maps = [PublicMap(frame, random_shift(IMAGE, rng)) for frame in random_frames(d, IMAGE, 2, rng)]
        return Round(1, tuple(cell_query(i, one, DEPTH, self.terms) for i, one in enumerate(maps)))

    def next(self, done: Round, answers: Answers, seed: bytes) -> Round | Outcome:
        rng = public_generator(seed, "solve")
        if done.number == 1:
            return self._after_images(done, answers, rng)
        if done.number == 2 and self.is_wide:
            return self._after_product(done, answers, rng)
        if self.is_merged:
            return self._merged(done, answers, rng)
        found = moved(answers, done.queries[0], np.arange(done.queries[0].n_keys, dtype=np.uint64), self.terms)
        if done.number == len(self.shares):
            return self._outcome(found, done.queries[0].rho or 1.0, int(done.state.get("padded", 0)))
        centres, padded = found.places, int(done.state.get("padded", 0))
        if self.is_wide:  # late selection: of more centres than are wanted, those that residuals confirm
            weights = np.where(found.counts >= found.sd_count, found.counts, 0.0)
            weights = weights if (weights > 0).any() else np.ones(len(weights))
            centres, padded = weighted_centres(found.places, weights, self.terms.k, rng)
        return self._residuals(done.number + 1, centres, self._radius_after(found), padded)

    def _after_images(self, done: Round, answers: Answers, rng: np.random.Generator) -> Round:
        """Seeds in each image; in few columns these are centres already."""
        seeds, spreads, lengths, padded = [], [], [], 0
        for query in done.queries:
            proxy = descend(answers, [query], self.terms, z=CUT, cap=MOST_LEAVES, is_bounded=self.version > 1)
            if self.is_merged:
                return self._around_seeds(proxy, rng)
            centres, padded = weighted_centres(proxy.points, proxy.shrunk, self.terms.k, rng)
            seeds.append(centres)
            spreads.append(spread(proxy.points, proxy.shrunk, centres))
            lengths.append(spread(proxy.points, proxy.shrunk, np.zeros((1, centres.shape[1]))))
        r = float(np.mean(spreads))
        if not self.is_wide:
            return self._residuals(2, seeds[0], max(LEAST_RHO, RHO_SPREADS * r), padded)
        maps = tuple(query.maps[0] for query in done.queries)
        unseen = max(0.0, 1 - 2 * IMAGE / self.terms.n_columns) * float(np.mean(np.square(lengths)))  # by either image
        rho = _single(min(1.0, RHO_LENGTHS * sqrt(unseen + r**2 + IMAGE * side(DEPTH // IMAGE) ** 2 / 12)))
        query = self._vector(
            Query(
                id=0, kind="vec", M=2, kappa=1, key_rule="product", maps=maps, rho=rho,
                centres=tuple(some.astype(np.float32) for some in seeds), lift=joint_lift([one.axes for one in maps]),
            )
        )  # fmt: skip
        return Round(2, (query,))

    def _around_seeds(self, proxy: Proxy, rng: np.random.Generator) -> Round:
        """Residuals around more seeds than centres are wanted, each with the people of its cells."""
        wanted = max(self.terms.k, min(ceil(OVERSEEDING * self.terms.k), len(proxy.points)))
        seeds, padded = weighted_centres(proxy.points, proxy.shrunk, wanted, rng)
        owner = nearest(proxy.points, seeds)
        people = np.bincount(owner, proxy.weights, minlength=wanted)
        sd = proxy.sd * sqrt(max(1, np.bincount(owner, minlength=wanted).max()))
        rho = max(LEAST_RHO, RHO_SPREADS * spread(proxy.points, proxy.shrunk, seeds))
        asked = self._residuals(2, seeds, rho, padded)
        return replace(asked, state={**asked.state, "people": people.tolist(), "sd": sd})

    def _merged(self, done: Round, answers: Answers, rng: np.random.Generator) -> Outcome:
        query = done.queries[0]
        before = Seeds(np.asarray(done.state["people"], dtype=np.float64), float(done.state["sd"]))
        places, found, sd = merged(answers, query, before, self.terms, rng)
        return self._told(places, found.people, found.sd, sd, query.rho or 1.0, int(done.state["padded"]))

    def _after_product(self, done: Round, answers: Answers, rng: np.random.Generator) -> Round:
        """Centres from the keys that have people. All keys are counted; only those are decoded in full."""
        query, k = done.queries[0], self.terms.k
        keys = np.arange(query.n_keys, dtype=np.uint64)
        counts, sd = counted(answers, query, keys, self.terms)
        kept = np.flatnonzero(counts >= 2 * sd)
        if len(kept) < k:
            kept = np.sort(np.argsort(-counts, kind="stable")[:k])
        found = moved(answers, query, keys[kept], self.terms)
        weights = np.maximum(found.counts, 1e-9)
        wanted = min(ceil(OVERSEEDING * k), len(kept))
        centres, padded = weighted_centres(found.places, weights, max(wanted, k), rng)
        return self._residuals(3, centres, self._radius_after(found), padded)

    def _residuals(self, number: int, centres: Floats, rho: float, padded: int) -> Round:
        """A round of residuals around centres, cut to a radius: noise is as long as that."""
        some, radius = (centres.astype(np.float32),), _single(min(1.0, rho))
        query = Query(id=0, kind="vec", M=2, kappa=1, key_rule="nearest", centres=some, rho=radius)
        return Round(number, (self._vector(query),), {"padded": padded})

    def _radius_after(self, found: Moved) -> float:
        """Where people are around centres that were just moved: as far as they are left, and as the centres are off by noise."""
        return max(SHORTEST_RHO, RHO_LENGTHS * hypot(found.left, min(self._noise(found), found.left / 2)))

    def _vector(self, query: Query) -> Query:
        book = codebook(self.terms.n_columns + 1, self.terms.epsilon)
        return replace(query, M=book.M, kappa=book.kappa)

    def _noise(self, found: Moved) -> float:
        """Length of the noise in the mean of a cluster of equal share."""
        return found.sd_point * sqrt(self.terms.n_columns) * self.terms.k / max(1, found.received)

    def _outcome(self, found: Moved, rho: float, padded: int) -> Outcome:
        scale = self.terms.n / max(1, found.received)
        sd = found.sd_point / np.maximum(found.counts, max(1.0, FEWEST * found.received / self.terms.k))
        return self._told(found.places, scale * found.counts, scale * found.sd_count, sd, rho, padded)

    def _told(self, places: Floats, counts: Floats, count_sd: float, sd: Floats, rho: float, padded: int) -> Outcome:
        blurred = int((sd * sqrt(self.terms.n_columns) > rho / 2).sum())
        notes = (f"noise_dominated: {blurred} of the centres are mostly noise",) if blurred else ()
        return Outcome(places, counts=counts, count_sd=count_sd, sd=sd, padded=padded, notes=notes)


def _single(value: float) -> float:
    """As a manifest holds it."""
    return float(np.float32(value))
