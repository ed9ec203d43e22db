"""Lloyd steps of many blocks of rows at once: each block has its own centres, counts and sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.summary import _kernels
from kveil.summary.frame import blocks as pieces

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """The centres of every block, as codes, and how rows find their block. Both are secret once rows have moved a centre.

    key: two words. A row's block is a function of its codes and the key alone, so order and partitions do not matter, and
        no row moves another to another block. Equal rows share a block.
    ratio: turns codes into steps of equal length, as in `Centers`.
    """

    centers: Integers  # (blocks, k, d)
    key: NDArray[np.uint64]
    ratio: NDArray[np.float64] | None

    def measured(self, codes: Any) -> Integers:
        return np.asarray(codes if self.ratio is None else np.rint(codes * self.ratio)).astype(np.int64)


def block_sums(rows: Any, state: Blocks) -> tuple[Integers, Integers]:
    """Raw counts (blocks, k) and raw sums (blocks, k, d) of encoded rows; a row adds to one count and one sum of its block."""
    raw_counts = np.zeros(state.centers.shape[:2], dtype=np.int64)
    raw_sums = np.zeros(state.centers.shape, dtype=np.int64)
    centers = state.measured(state.centers)
    for piece in pieces(rows):
        codes, block = np.ascontiguousarray(piece, dtype=np.int64), np.empty(len(piece), dtype=np.int64)
        _kernels.find_blocks(codes, state.key, len(centers), block)
        _kernels.add_to_blocks(codes, state.measured(codes), block, centers, raw_counts, raw_sums)
    return raw_counts, raw_sums


def row_count(rows: Any, state: None) -> tuple[Integers]:
    """The raw number of rows, as one count."""
    return (np.array([rows.shape[0]], dtype=np.int64),)


def block_means(raw_counts: Integers, raw_sums: Integers, centers: Integers) -> Integers:
    """The mean of every cluster of every block as codes, rounded towards 0, so that it stays in the domain.

    A cluster without rows keeps its centre. A box holds every number between its codes, and in a ball rounding towards 0 can
    only shorten a mean, which is no longer than the longest row.
    """
    counts = np.maximum(raw_counts, 1)[:, :, None]
    means = np.sign(raw_sums) * (np.abs(raw_sums) // counts)
    return np.asarray(np.where(raw_counts[:, :, None] > 0, means, centers))
