"""Answers of a round that are in memory: real reports, or the law of what they would add up to.

`Drawn` decodes reports that devices made. `FromLaw` holds the points themselves and draws what reports would say, far quicker: a
simulation, so nothing of it is private. Its laws are exact a key: the support of a key is Bin(people with it, own) + Bin(others,
other); a codeword's rank among all is drawn first, then its cosine with the vector by the law of order statistics, then the rest
of it uniformly. Between keys it draws support independently; real reports on different keys are nearly, not quite, so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.collect import hashing, oracles, vector
from kveil.collect.encoding import directions, keys_of, vectors_of
from kveil.collect.queries import Keys, Query, Sums
from kveil.kernel.loss import response_weights

BLOCK = 2**16  # reports decoded at once


class Drawn:
    """Reports of real devices: {query id: (seeds, reported values)}."""

    def __init__(self, reports: Mapping[int, tuple[Words, Integers]], n_columns: int) -> None:
        self._reports, self._n_columns = reports, n_columns

    def received(self, query: Query) -> int:
        return len(self._reports[query.id][0])

    def support(self, query: Query, keys: Keys) -> Integers:
        seeds, reported = self._reports[query.id]
        return oracles.support(query, seeds, reported, keys)

    def sums(self, query: Query, keys: Keys, start: int = 0) -> Sums:
        seeds, reported = self._reports[query.id]
        dim = query.length(self._n_columns)
        total = Sums(np.zeros((len(keys), dim - start), dtype=np.int64), np.zeros(dim - start, dtype=np.int64))
        for first in range(0, len(seeds), BLOCK):
            part = slice(first, first + BLOCK)
            told = vector.decoded(query, seeds[part], reported[part], keys, dim, start)
            total = Sums(total.sums + told.sums, total.squares + told.squares)
        return total


class FromLaw:
    """Points of the people who answer each query, {query id: points}; what they would report is drawn when it is asked for."""

    def __init__(self, points: Mapping[int, Floats], epsilon: Fraction, rng: np.random.Generator) -> None:
        self._points, self._epsilon, self._rng = points, epsilon, rng
        self._words: dict[int, tuple[Words, Integers]] = {}

    def received(self, query: Query) -> int:
        return len(self._points[query.id])

    def support(self, query: Query, keys: Keys) -> Integers:
        own, other = oracles.chances(query.kind, query.M, self._epsilon)
        held = keys_of(query, self._points[query.id])
        people = _occurrences(held, keys)
        supporting = self._rng.binomial(people, own) + self._rng.binomial(len(held) - people, other)
        return np.asarray(2 * supporting - len(held) if query.kind == "hrr" else supporting, dtype=np.int64)

    def sums(self, query: Query, keys: Keys, start: int = 0) -> Sums:
        if query.id not in self._words:
            self._words[query.id] = self._released(query)
        seeds, words = self._words[query.id]
        return vector.signed_sums(seeds, words[:, start:], keys)

    def _released(self, query: Query) -> tuple[Words, Integers]:
        """A seed and a codeword for every person."""
        points = self._points[query.id]
        seeds = self._rng.integers(0, 2**64, size=len(points), dtype=np.uint64)
        words = []
        for first in range(0, len(points), BLOCK):
            some, theirs = points[first : first + BLOCK], seeds[first : first + BLOCK]
            held = keys_of(query, some)
            signed = hashing.signs(theirs, held)[:, None] * vectors_of(query, some, held)
            words.append(foreseen_words(directions(signed, theirs), query.M, query.kappa, self._epsilon, self._rng))
        return seeds, np.vstack(words) if words else np.empty((0, query.length(points.shape[1])), dtype=np.int64)


def foreseen_words(units: Floats, M: int, kappa: int, epsilon: Fraction, rng: np.random.Generator) -> Integers:
    """Codewords with the law of those that devices with these directions would name."""
    a, b = response_weights(epsilon)
    n, dim = units.shape
    # A simulated device's choice, which no real one makes here: a fit that draws it says that its guarantee is not valid.
    is_preferred = rng.random(n) < kappa * a / (kappa * a + (M - kappa) * b)
    if dim == 1:
        return np.where(is_preferred == (units[:, 0] > 0), 1, -1).astype(np.int64)[:, None] << 24
    rank = np.where(is_preferred, rng.integers(1, kappa + 1, n), rng.integers(kappa + 1, M + 1, n))
    cosine = vector.cosine_quantile(dim, rng.beta(M - rank + 1, rank))
    across = rng.standard_normal((n, dim))  # simulated codewords, not noise for privacy
    across -= np.einsum("ij,ij->i", across, units)[:, None] * units
    across /= np.maximum(np.sqrt(np.einsum("ij,ij->i", across, across)), 1e-300)[:, None]
    words = cosine[:, None] * units + np.sqrt(np.maximum(0.0, 1 - cosine**2))[:, None] * across
    return np.asarray(np.rint(words * 2.0**24), dtype=np.int64)


def _occurrences(held: Keys, keys: Keys) -> Integers:
    """How many hold each key."""
    found, counts = np.unique(held, return_counts=True)
    if not len(found):
        return np.zeros(len(keys), dtype=np.int64)
    places = np.minimum(np.searchsorted(found, keys), len(found) - 1)
    return np.where(found[places] == keys, counts[places], 0)
