"""Records that own as many places as they score, so that a secret pick of a place is a pick by score. Two passes a pick.

The first pass adds scores up by bucket, a keyed hash of what a row holds; the second gathers the rows of the buckets that
were hit. Within a bucket rows stand in the order of their codes, so the order and the partitions of a table do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.kernel.grid import Ball, Box
from kveil.questions import _kernels, saturating
from kveil.questions.frame import blocks as pieces
from kveil.questions.saturating import MOST
from kveil.source import Source
from kveil.space.euclidean import Centers, nearest

BUCKETS = 2**16
BLOCK_ROWS = 2**20  # more than a block of rows can have, whatever `max_rows` says


@dataclass(frozen=True, eq=False)
class Score:
    """What a row scores: 1, or its squared distance to the nearest of public centres, cut at `cap` and shifted down by whole
    bits. It depends on that row alone, and lies between 0 and `most`."""

    centers: Centers | None = None
    cap: int = 1
    shift: int = 0

    @property
    def most(self) -> int:
        return max(1, self.cap >> self.shift)

    def of(self, codes: Integers) -> Integers:
        if self.centers is None:
            return np.ones(len(codes), dtype=np.int64)
        return np.minimum(nearest(codes, self.centers)[1], self.cap) >> self.shift

    @staticmethod
    def shift_for(cap: int, max_rows: int) -> int:
        """So many bits that scores of `max_rows` rows, and of one block, cannot overflow, from public numbers."""
        return max(0, cap.bit_length() + max(int(max_rows), BLOCK_ROWS).bit_length() - MOST.bit_length())


@dataclass(frozen=True, eq=False)
class Hashed:
    """How rows score, the key that sends them to buckets, and which of these are wanted (None: all). The last two are secret."""

    score: Score
    key: NDArray[np.uint64]
    wanted: NDArray[np.bool_] | None = None

    def bucket(self, codes: Integers) -> Integers:
        found = np.empty(len(codes), dtype=np.int64)
        _kernels.find_blocks(codes, self.key, BUCKETS, found)
        return found


def bucket_scores(rows: Any, state: Hashed) -> tuple[Integers]:
    """The raw sum of scores in every bucket."""
    raw = np.zeros(BUCKETS, dtype=np.int64)
    for piece in pieces(rows):
        codes = np.ascontiguousarray(piece, dtype=np.int64)
        np.add.at(raw, state.bucket(codes), state.score.of(codes))
    return (raw,)


def bucket_rows(rows: Any, state: Hashed) -> tuple[Integers]:
    """The distinct rows of the wanted buckets, ascending, and how often each occurs, in one array (rows, d + 1)."""
    assert state.wanted is not None
    kept = [np.empty((0, rows.shape[1]), dtype=np.int64)]
    for piece in pieces(rows):
        codes = np.ascontiguousarray(piece, dtype=np.int64)
        kept.append(codes[state.wanted[state.bucket(codes)]])
    found, counts = np.unique(np.concatenate(kept), axis=0, return_counts=True)
    return (np.column_stack([found, counts]),)


def merge_rows(one: Integers, other: Integers) -> Integers:
    """Two results of `bucket_rows` as one; neither the order nor the grouping of merges matters."""
    both = np.concatenate([one, other])
    found, where = np.unique(both[:, :-1], axis=0, return_inverse=True)
    counts = np.zeros(len(found), dtype=np.int64)
    np.add.at(counts, where.ravel(), both[:, -1])
    return np.column_stack([found, counts])


class RowPlaces:
    """The places of a source's rows: what `kernel.choice.noisy_picks` draws from. All of it is secret."""

    def __init__(self, source: Source, domain: Box | Ball, score: Score, key: NDArray[np.uint64]) -> None:
        self.score, self._source, self._domain, self._hashed = score, source, domain, Hashed(score, key)

    @cached_property
    def _ends(self) -> Integers:
        """Where the places of every bucket end. With more rows than `max_rows` those past MOST own nothing."""
        (raw,) = self._source.map_reduce(bucket_scores, self._hashed, grid=self._domain, combine=saturating.add)
        return saturating.running(raw)

    @property
    def total(self) -> int:
        return int(self._ends[-1])

    def at(self, places: list[int]) -> Integers:
        """Codes of the rows that own these places, 0 where nobody does; the rows are read again in either case."""
        bucket_of = {place: int(np.searchsorted(self._ends, place, side="right")) for place in places if place < self.total}
        wanted = np.zeros(BUCKETS, dtype=np.bool_)
        wanted[list(bucket_of.values())] = True
        state = replace(self._hashed, wanted=wanted)
        (raw,) = self._source.map_reduce(bucket_rows, state, grid=self._domain, combine=merge_rows)
        codes, counts = np.ascontiguousarray(raw[:, :-1]), raw[:, -1]
        home = state.bucket(codes)
        order = np.argsort(home, kind="stable")  # by bucket, then by codes
        codes, home = codes[order], home[order]
        scores = saturating.product(counts[order], state.score.of(codes))
        found = np.zeros((len(places), self._domain.n_columns), dtype=np.int64)
        for i, place in enumerate(places):
            if place < self.total:
                bucket = bucket_of[place]
                begin, end = np.searchsorted(home, [bucket, bucket + 1])
                rest = place - (int(self._ends[bucket - 1]) if bucket else 0)
                found[i] = codes[begin + np.searchsorted(saturating.running(scores[begin:end]), rest, side="right")]
        return found
