"""Which keywords the rows of each cluster have: rows come with their words, as columns after those of the centres."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from kveil.arrays import Integers
from kveil.kernel.grid import Ball, Box
from kveil.questions.base import Part, Question
from kveil.questions.frame import is_csr
from kveil.space.euclidean import Centers, assign

SQUARED = 2**10  # what a keyword counts as where a row's length is measured in L2, so that sqrt(m) is not rounded up by much

SIZES = Part("sizes", "counts", reason="a row is in one cluster")


@dataclass(frozen=True, eq=False)
class Worded:
    """Codes of rows, and after them 1 for every keyword that counts: the `most` columns of largest value, ties to the first ones.

    Values that are 0, negative, missing or infinite are no keyword. What becomes of a row depends on that row alone.
    is_dense: whether sparse rows have dense ones in their first columns, which are encoded as such.
    """

    domain: Box | Ball
    n_words: int
    most: int
    is_dense: bool = True

    @property
    def n_columns(self) -> int:
        return self.domain.n_columns + self.n_words

    @property
    def bits(self) -> int:
        return self.domain.bits

    @property
    def fills(self) -> bool:
        return bool(getattr(self.domain, "fills", False))

    def encode(self, rows: Any) -> NDArray[Any]:
        table, d = np.asarray(rows, dtype=np.float64), self.domain.n_columns
        flags = self._chosen(csr_array(table[:, d:])).toarray()
        return np.hstack([self.domain.encode(table[:, :d]), flags])

    def encode_sparse(self, rows: Any) -> Any:
        d = self.domain.n_columns
        own, words = csr_array(rows[:, :d]), csr_array(rows[:, d:])
        codes = csr_array(self.domain.encode(own.toarray())) if self.is_dense else self.domain.encode_sparse(own)
        return csr_array(hstack([codes, self._chosen(words)], format="csr"))

    def _chosen(self, words: Any) -> Any:
        """1 in the places that count."""
        with np.errstate(all="ignore"):
            counts = np.isfinite(words.data) & (words.data > 0)
        row = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))[counts]
        column, value = words.indices[counts], words.data[counts]
        order = np.lexsort((column, -value, row))
        row, column = row[order], column[order]
        kept = within(row, words.shape[0], self.most)
        return csr_array((np.ones(np.count_nonzero(kept), dtype=np.int64), (row[kept], column[kept])), shape=words.shape)


@dataclass(frozen=True, eq=False)
class Keywords(Question):
    """Counts (clusters times words,) of rows by their nearest centre and each of their keywords, and sizes (clusters,).

    Proof: a row is in one cluster, of the centre nearest to it, and adds 1 there for each of its keywords, of which at most
    `most` count: whatever the columns hold, entries after the first `most` are left out here. So it adds `most` ones at most:
    its L1 norm is at most `most` and its L2 norm sqrt(most). With is_squared each counts as SQUARED, and the length is SQUARED
    sqrt(most), rounded up. It adds 1 to one size. The centres and words are public: no row changes what another adds.
    """

    centers: Centers
    n_words: int
    most: int
    is_squared: bool = False
    is_dense: bool = True

    @property
    def parts(self) -> tuple[Part, ...]:
        return keyword_part(self.most, is_squared=self.is_squared), SIZES

    def raw(self, rows: Any) -> tuple[Integers, ...]:
        k, d = self.centers.codes.shape
        own, flags = rows[:, :d], csr_array(rows[:, d:])
        owner = assign(own.toarray() if is_csr(own) and self.is_dense else own, self.centers)
        row, word = flags.nonzero()
        kept = within(row, rows.shape[0], self.most)
        places = owner[row[kept]].astype(np.int64) * self.n_words + word[kept]
        raw_counts = np.bincount(places, minlength=k * self.n_words).astype(np.int64)
        sizes = np.bincount(owner, minlength=k).astype(np.int64)
        return raw_counts * (SQUARED if self.is_squared else 1), sizes


def keyword_part(most: int, *, is_squared: bool) -> Part:
    """What a row with at most so many keywords can do to their counts."""
    reason = f"a row has at most {most} keyword(s) that count"
    if not is_squared:
        return Part("keywords", "counts", most, reason=reason)
    return Part("keywords", "counts", isqrt(most * SQUARED**2 - 1) + 1, 1 / SQUARED, reason, in_l2=True)


def within(rows: Any, n_rows: int, most: int) -> Any:
    """Which entries, in ascending order of rows, are among the first `most` of their row."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return np.arange(len(rows)) - starts[rows] < most
