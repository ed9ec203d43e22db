"""Heavy keys of a domain that nobody could enumerate, found bit by bit: Bitstogram of "Practical Locally Private Heavy Hitters".

Keys are hashed to about sqrt(n) bins. In each bin the heaviest key decides, by majority, every one of its bits; a third of the
people is kept to check what was put together. Where keys are paths of a tree, descending it is better: this loses a factor of the
square root of the number of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2

import numpy as np

from kveil.arrays import Floats
from kveil.collect import hashing
from kveil.collect.descent import estimated
from kveil.collect.oracles import best_oracle
from kveil.collect.queries import Answers, Fold, Keys, Query, Terms

MOST_BINS = 2**12


def folded(base: Query, n_reports: float, terms: Terms, seed: int) -> list[Query]:
    """Queries for the bits of a key, one a bit, and one for the key itself with a third of all weight."""
    bins = min(MOST_BINS, 1 << ceil(log2(max(2.0, n_reports)) / 2))
    bits = max(1, (base.n_whole_keys - 1).bit_length())
    asked = best_oracle(2 * bins, terms.epsilon)
    pieces = [
        replace(base, id=base.id + bit, kind=asked.kind, M=asked.M, weight=2 * base.weight, fold=Fold(seed, bins, bit))
        for bit in range(bits)
    ]
    whole = best_oracle(base.n_whole_keys, terms.epsilon)
    return [*pieces, replace(base, id=base.id + bits, kind=whole.kind, M=whole.M, weight=bits * base.weight)]


def heavy_keys(answers: Answers, queries: Sequence[Query], terms: Terms, z: float) -> tuple[Keys, Floats, float]:
    """Keys that stand out, ascending; how many people have each; and the standard deviation of that."""
    *pieces, whole = queries
    fold = pieces[0].fold
    assert fold is not None
    pairs = np.arange(2 * fold.bins, dtype=np.uint64)
    put_together = np.zeros(fold.bins, dtype=np.uint64)
    for query in pieces:
        assert query.fold is not None
        people = estimated(answers, query, pairs, terms)[0].reshape(-1, 2)
        put_together |= (people[:, 1] > people[:, 0]).astype(np.uint64) << np.uint64(query.fold.bit)
    at_home = hashing.bins(fold.seed, put_together, fold.bins) == np.arange(fold.bins)
    keys = np.unique(put_together[at_home & (put_together < np.uint64(whole.n_whole_keys))])
    people, sd = estimated(answers, whole, keys, terms)
    stands_out = people >= z * sd
    return keys[stands_out], people[stands_out], sd
