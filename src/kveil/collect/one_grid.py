"""One round: everyone reports the cell of one fine grid, and the cells that stand out are clustered. For up to 3 columns."""

from __future__ import annotations

import numpy as np

from kveil.collect.centres import weighted_centres
from kveil.collect.descent import Proxy, descend, threshold
from kveil.collect.encoding import nearest
from kveil.collect.oracles import best_oracle, variance
from kveil.collect.queries import Answers, Outcome, Query, Round, Terms, public_generator
from kveil.errors import InvalidValue
from kveil.partition.public_map import PublicMap

CUT, MOST_LEAVES = 2.5, 400  # standard deviations that a cell must reach; cells that are clustered at most
DEPTHS = {1: 6, 2: 8, 3: 12}
FINE, FROM = 10, 20.0  # two columns: this depth, if a cluster of equal share then reaches the cut so many times
GATHERED_FROM = 40.0  # up to two columns, the same: blocks of cells count, too; in more noise they blur more than they add


class GridProtocol:
    """`depth`: bits of a cell; by default from the number of people, k and epsilon. `version`: 1 looks outside the ball, too."""

    name = "grid"
    shares: tuple[float, ...] = (1.0,)

    def __init__(self, terms: Terms, seed: bytes, depth: int | None = None, *, version: int = 2) -> None:
        if terms.n_columns > 3:
            raise InvalidValue('protocol="grid" is for at most 3 columns: beyond, its cells hold too few people. Use "refine".')
        self.terms, self.seed, self.depth, self.version = terms, seed, depth or best_depth(terms), version

    def first(self) -> Round:
        one = PublicMap.drawn(self.terms.n_columns, self.terms.n_columns, public_generator(self.seed, "round", 1))
        return Round(1, (cell_query(0, one, self.depth, self.terms),))

    def next(self, done: Round, answers: Answers, seed: bytes) -> Outcome:
        is_gathered = self.terms.n_columns <= 2 and detectability(self.terms, self.depth) >= GATHERED_FROM
        options = {"is_bounded": self.version > 1, "is_gathered": is_gathered}
        proxy = descend(answers, done.queries, self.terms, z=CUT, cap=MOST_LEAVES, **options)
        return clustered(proxy, self.terms.k, public_generator(seed, "solve"))


def clustered(proxy: Proxy, k: int, rng: np.random.Generator) -> Outcome:
    """k centres of a proxy that lies among the points themselves, with the people of their cells."""
    centres, padded = weighted_centres(proxy.points, proxy.shrunk, k, rng)
    owner = nearest(proxy.points, centres)
    cells = np.bincount(owner, minlength=k)
    return Outcome(
        centres,
        counts=np.asarray(np.bincount(owner, proxy.weights, minlength=k), dtype=np.float64),
        count_sd=float(proxy.sd * np.sqrt(max(1, cells.max()))),
        padded=padded,
    )


def cell_query(id: int, one: PublicMap, depth: int, terms: Terms, weight: int = 1) -> Query:
    """Which cell of a map, asked in the way that fits the number of cells."""
    oracle = best_oracle(1 << depth, terms.epsilon)
    return Query(
        id=id, kind=oracle.kind, M=oracle.M, kappa=1, key_rule="cell", weight=weight, maps=(one,), depth=depth
    )  # fmt: skip


def detectability(terms: Terms, depth: int, share: float = 1.0) -> float:
    """How many times a cluster of equal share reaches the cut of a grid, if all its people are in one cell."""
    oracle = best_oracle(1 << depth, terms.epsilon)
    sd = (variance(oracle.kind, oracle.M, terms.epsilon) / (share * terms.n)) ** 0.5
    return 1 / (terms.k * threshold(CUT, sd, 1 << depth))


def best_depth(terms: Terms) -> int:
    if terms.n_columns == 2 and detectability(terms, FINE) >= FROM:
        return FINE
    return DEPTHS[terms.n_columns]
