"""Heavy cells by descent: a key is a path, so only children of cells that stand out are looked at, one depth after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from kveil.collect import oracles
from kveil.collect.queries import Answers, Floats, Keys, Query, Terms
from kveil.partition.cells import into_ball

SHRINKAGE = 2.0  # standard deviations
RESIDUAL = 2.0  # standard deviations that a parent must have left, once its children are taken off, to stay itself


@dataclass(frozen=True, eq=False)
class Proxy:
    """Points of the image, and about how many people are near each: what is clustered in the place of data."""

    points: Floats
    weights: Floats
    sd: float  # of one weight

    @property
    def shrunk(self) -> Floats:
        """Weights to cluster by. A cell that noise lifted over the cut weighs that much too much, and would draw a centre if
        it is far from all others; two deviations less hurt a real one little."""
        return np.maximum(self.weights - SHRINKAGE * self.sd, 0.1 * self.sd)


@dataclass(frozen=True, eq=False)
class Level:
    """Cells of one depth that were kept, ascending, with estimates in people."""

    depth: int
    keys: Keys
    people: Floats
    sd: float


def estimated(answers: Answers, query: Query, keys: Keys, terms: Terms) -> tuple[Floats, float]:
    """People of the whole campaign with each key, and the standard deviation for rare keys; infinite if nobody answered."""
    received = answers.received(query)
    if not received:
        return np.zeros(len(keys)), np.inf
    scale = terms.n / received
    people = scale * oracles.estimates(query, answers.support(query, keys), received, terms.epsilon)
    return people, scale * oracles.deviation(query, received, terms.epsilon)


def children(keys: Keys, bits: int) -> Keys:
    """All keys that are `bits` longer."""
    ends = np.arange(1 << bits, dtype=np.uint64)
    return ((keys[:, None] << np.uint64(bits)) | ends).ravel()


def threshold(z: float, sd: float, n_candidates: int) -> float:
    """What a cell must reach to stand out among so many."""
    return z * sd * max(1.0, sqrt(log(max(2, n_candidates)) / log(100)))


def descend(answers: Answers, queries: Sequence[Query], terms: Terms, *, z: float, cap: int) -> Proxy:
    """Leaves and residuals of the tree whose depths the queries ask for, as a proxy of the data.

    Children that exceed their parent are scaled down to it. Where nothing stands out, the cells above are the leaves.
    """
    one = queries[0].maps[0]
    above = Level(0, np.zeros(1, dtype=np.uint64), np.array([float(terms.n)]), 0.0)
    points, weights = [], []
    for number, query in enumerate(queries):
        found = _kept(answers, query, terms, above, z=z, cap=cap)
        if not len(found.keys):
            break
        left = above.people - _by_parent(found, above)
        is_left = (left >= RESIDUAL * found.sd) & (number > 0)
        points.append(one.middles(above.keys[is_left], above.depth))
        weights.append(left[is_left])
        above = found
    points.append(one.middles(above.keys, above.depth))
    weights.append(above.people)
    mass = np.concatenate(weights)
    return Proxy(into_ball(np.vstack(points)[mass > 0]), mass[mass > 0], above.sd)


def _kept(answers: Answers, query: Query, terms: Terms, above: Level, *, z: float, cap: int) -> Level:
    depth = query.depth or 0
    candidates = children(above.keys, depth - above.depth)
    people, sd = estimated(answers, query, candidates, terms)
    standing = np.flatnonzero(people >= threshold(z, sd, len(candidates)))
    largest = standing[np.lexsort((candidates[standing], -people[standing]))[:cap]]
    kept = np.sort(largest)  # candidates ascend, so this is by key
    found = Level(depth, candidates[kept], people[kept], sd)
    total = _by_parent(found, above)
    scale = np.where(total > above.people, above.people / np.where(total > 0, total, 1.0), 1.0)
    parent = np.searchsorted(above.keys, found.keys >> np.uint64(depth - above.depth))
    return Level(depth, found.keys, found.people * scale[parent], sd)


def _by_parent(found: Level, above: Level) -> Floats:
    """People of all kept children of each cell above."""
    parent = np.searchsorted(above.keys, found.keys >> np.uint64(found.depth - above.depth))
    return np.asarray(np.bincount(parent, found.people, minlength=len(above.keys)), dtype=np.float64)
