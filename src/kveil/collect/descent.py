"""Heavy cells by descent: a key is a path, so only children of cells that stand out are looked at, one depth after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from kveil.arrays import Floats
from kveil.collect import oracles
from kveil.collect.queries import Answers, Keys, Query, Terms
from kveil.partition.public_map import into_ball

SHRINKAGE = 2.0  # standard deviations
RESIDUAL = 2.0  # standard deviations that a parent must have left, once its children are taken off, to stay itself


@dataclass(frozen=True, eq=False)
class Proxy:
    """Points of the image, and about how many people are near each: what is clustered in the place of data."""

    points: Floats
    weights: Floats
    sd: float  # of the estimate of one cell
    shared: Floats  # cells that the estimate behind each weight was shared out to; 1 for one that stood out alone

    @property
    def shrunk(self) -> Floats:
        """Weights to cluster by. A cell that noise lifted over the cut weighs that much too much, and would draw a centre if
        it is far from all others; two deviations less hurt a real one little."""
        sd = self.sd / np.sqrt(self.shared)
        return np.maximum(self.weights - SHRINKAGE * sd, 0.1 * sd)


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


def descend(
    answers: Answers,
    queries: Sequence[Query],
    terms: Terms,
    *,
    z: float,
    cap: int,
    is_bounded: bool = True,
    is_gathered: bool = False,
) -> Proxy:
    """Leaves and residuals of the tree whose depths the queries ask for, as a proxy of the data.

    Children that exceed their parent are scaled down to it. Where nothing stands out, the cells above are the leaves.
    is_bounded: cells that the unit ball does not reach are left out; nobody can be there, only noise.
    is_gathered: cells of the last depth that do not stand out alone are put together in blocks that do.
    """
    one = queries[0].maps[0]
    above = Level(0, np.zeros(1, dtype=np.uint64), np.array([float(terms.n)]), 0.0)
    points, weights = [], []
    rest = Level(0, above.keys[:0], above.people[:0], 0.0)
    for number, query in enumerate(queries):
        candidates = _below(query, above, is_bounded)
        found, others = _parted(answers, query, terms, above, candidates, z=z, cap=cap)
        if not len(found.keys):
            break
        left = above.people - _by_parent(found, above)
        is_left = (left >= RESIDUAL * found.sd) & (number > 0)
        points.append(one.middles(above.keys[is_left], above.depth))
        weights.append(left[is_left])
        above, rest = found, others
    points.append(one.middles(above.keys, above.depth))
    weights.append(above.people)
    shared = [np.ones(len(some)) for some in weights]
    for level, cells in _gathered(rest, z) if is_gathered else ():
        points.append(one.middles(level.keys, level.depth))
        weights.append(level.people)
        shared.append(cells)
    mass = np.concatenate(weights)
    is_there = mass > 0
    return Proxy(into_ball(np.vstack(points)[is_there]), mass[is_there], above.sd, np.concatenate(shared)[is_there])


def _below(query: Query, above: Level, is_bounded: bool) -> Keys:
    """Cells of a query's depth within those above that anyone can be in."""
    depth = query.depth or 0
    keys = children(above.keys, depth - above.depth)
    return keys[query.maps[0].meets_ball(keys, depth)] if is_bounded else keys


def _parted(
    answers: Answers, query: Query, terms: Terms, above: Level, candidates: Keys, *, z: float, cap: int
) -> tuple[Level, Level]:
    """Candidates that stand out, at most as heavy as what is above them; and all others with their bare estimates."""
    depth = query.depth or 0
    people, sd = estimated(answers, query, candidates, terms)
    standing = np.flatnonzero(people >= threshold(z, sd, len(candidates)))
    largest = standing[np.lexsort((candidates[standing], -people[standing]))[:cap]]
    kept = np.sort(largest)  # candidates ascend, so this is by key
    found = Level(depth, candidates[kept], people[kept], sd)
    total = _by_parent(found, above)
    scale = np.where(total > above.people, above.people / np.where(total > 0, total, 1.0), 1.0)
    parent = np.searchsorted(above.keys, found.keys >> np.uint64(depth - above.depth))
    others = Level(depth, np.delete(candidates, kept), np.delete(people, kept), sd)
    return Level(depth, found.keys, found.people * scale[parent], sd), others


def _gathered(rest: Level, z: float) -> Iterator[tuple[Level, Floats]]:
    """Cells of blocks that stand out though none of them does, and how many share each block's people evenly.

    Blocks grow one halving at a time, and cells that have found theirs are left out of larger ones. Without them
    whoever lives where few others do would not count, and centres would lean towards the crowds.
    """
    keys, people = rest.keys, rest.people
    for bits in range(1, rest.depth + 1):
        if not len(keys):
            return
        _, block, cells = np.unique(keys >> np.uint64(bits), return_inverse=True, return_counts=True)
        together = np.bincount(block, people)
        stands_out = (together >= threshold(z, rest.sd, len(cells)) * np.sqrt(cells))[block]
        yield Level(rest.depth, keys[stands_out], (together / cells)[block][stands_out], rest.sd), 1.0 * cells[block][stands_out]
        keys, people = keys[~stands_out], people[~stands_out]


def _by_parent(found: Level, above: Level) -> Floats:
    """People of all kept children of each cell above."""
    parent = np.searchsorted(above.keys, found.keys >> np.uint64(found.depth - above.depth))
    return np.asarray(np.bincount(parent, found.people, minlength=len(above.keys)), dtype=np.float64)
