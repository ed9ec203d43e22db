"""Answers without noise: everyone answers every query, and the collector's statistics are their expectations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kveil.collect.encoding import keys_of, vectors_of
from kveil.collect.oracles import chances
from kveil.collect.queries import Sums
from kveil.collect.vector import codebook


class Exact:
    """`sizes`: how many people are at each of the points. `loudness`: what sums of vectors are multiplied by, as if noise had
    made them so long."""

    def __init__(self, points, sizes, epsilon=4, loudness=1.0):
        self.points, self.sizes, self.epsilon, self.loudness = points, np.asarray(sizes), Fraction(epsilon), loudness

    def received(self, query):
        return int(self.sizes.sum())

    def support(self, query, keys):
        n, held = self.sizes.sum(), keys_of(query, self.points)
        people = (held == keys[:, None]) @ self.sizes
        own, other = chances(query.kind, query.M, self.epsilon)
        supporting = people * own + (n - people) * other
        return 2 * supporting - n if query.kind == "hrr" else supporting

    def sums(self, query, keys, start=0):
        held = keys_of(query, self.points)
        vectors = vectors_of(query, self.points, held) * self.sizes[:, None]
        books = [codebook(vectors.shape[1], self.epsilon, hemisphere=half) for half in (False, True)]
        m = next(book.m for book in books if book.kappa == query.kappa)
        total = self.loudness * m * 2.0**24 * ((held == keys[:, None]) @ vectors)[:, start:]
        return Sums(np.rint(total).astype(np.int64), np.zeros(total.shape[1], dtype=np.int64))
