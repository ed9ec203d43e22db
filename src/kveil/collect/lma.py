"""LMA: everything in one round. Cells of several depths at once, and, in many columns, sums of the points of coarse cells.

The paper outlines LMA: grids of log n scales in an image of O(log k/alpha**2) axes, of which the points that most people are near
become candidates. How it comes back from the image in one round is left to a supplement, which we do not have. Here there are
three or four depths and at most four axes, whatever n and k are. One round means that no device can know the centres, so means
come from sums per cell that were collected blindly: adding up the cells of a cluster adds up their noise, which is why this is
weak where the image has fewer dimensions than the data.
"""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats
from kveil.collect.centres import weighted_centres
from kveil.collect.descent import descend
from kveil.collect.encoding import nearest
from kveil.collect.one_grid import cell_query, clustered
from kveil.collect.queries import SHARE_OF_COUNT, SHARE_OF_POINT, Answers, Outcome, Query, Round, Terms, public_generator
from kveil.collect.vector import codebook, released
from kveil.partition.public_map import PublicMap, into_ball, lift

IMAGE = 4
CUT, LEAVES_PER_CENTRE = 3.0, 8
TREE_SHARE, SUM_SHARE = 60, 40
FEWEST = 0.1  # of an equal share of people


class Lma:
    name = "lma"
    shares: tuple[float, ...] = (1.0,)

    def __init__(self, terms: Terms, seed: bytes, *, version: int = 2) -> None:
        self.terms, self.seed, self.version = terms, seed, version
        self.n_axes = min(IMAGE, terms.n_columns)
        self.is_wide = terms.n_columns > IMAGE

    def first(self) -> Round:
        one = PublicMap.drawn(self.terms.n_columns, self.n_axes, public_generator(self.seed, "round", 1))
        depths = [level * self.n_axes for level in range(1, 4 if self.is_wide else 5)]
        weight = TREE_SHARE // len(depths)
        queries = [cell_query(i, one, depth, self.terms, weight) for i, depth in enumerate(depths)]
        if self.is_wide:
            book = codebook(self.terms.n_columns + 1, self.terms.epsilon)
            queries.append(
                Query(
                    id=len(depths), kind="vec", M=book.M, kappa=book.kappa, key_rule="cell", weight=SUM_SHARE,
                    maps=(one,), depth=depths[0], rho=1.0,
                )
            )  # fmt: skip
        return Round(1, tuple(queries))

    def next(self, done: Round, answers: Answers, seed: bytes) -> Outcome:
        k, rng = self.terms.k, public_generator(seed, "solve")
        cells = [query for query in done.queries if query.kind != "vec"]
        proxy = descend(answers, cells, self.terms, z=CUT, cap=LEAVES_PER_CENTRE * k, is_bounded=self.version > 1)
        if not self.is_wide:
            return clustered(proxy, k, rng)
        centres, padded = weighted_centres(proxy.points, proxy.shrunk, k, rng)
        means, counts, sd = self._means(answers, done.queries[-1], centres)
        return Outcome(means, counts=counts, count_sd=sd, padded=padded)

    def _means(self, answers: Answers, query: Query, centres: Floats) -> tuple[Floats, Floats, float]:
        """Means of the coarse cells that each centre of the image is nearest to; a centre without any is lifted back."""
        d, k, one = self.terms.n_columns, self.terms.k, query.maps[0]
        keys, received = np.arange(query.n_keys, dtype=np.uint64), answers.received(query)
        told = released(answers.sums(query, keys), codebook(d + 1, self.terms.epsilon))
        people, sd = told.sums[:, d] / SHARE_OF_COUNT**0.5, float(told.sd[d]) / SHARE_OF_COUNT**0.5
        found = np.flatnonzero(people > 2 * sd)
        owner = nearest(one.middles(keys[found], query.depth or 0), centres) if len(found) else np.empty(0, dtype=np.int64)
        counts = np.bincount(owner, people[found], minlength=k)
        sums = np.zeros((k, d))
        np.add.at(sums, owner, told.sums[found, :d] / SHARE_OF_POINT**0.5)
        means = sums / np.maximum(counts, max(FEWEST * received / k, 1e-9))[:, None]
        has_cells = np.bincount(owner, minlength=k) > 0
        scale = self.terms.n / max(1, received)
        places = into_ball(np.where(has_cells[:, None], means, centres @ lift(one.axes)))
        return places, np.asarray(scale * counts), float(scale * sd)
