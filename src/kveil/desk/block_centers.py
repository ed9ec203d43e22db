"""Sample and aggregate: the centres of many blocks of rows, added up and noised once."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.desk.base import Mechanism
from kveil.desk.pool import Pool
from kveil.kernel.grid import Ball, Box
from kveil.progress import step as progress
from kveil.questions import _kernels
from kveil.questions.base import Part
from kveil.questions.frame import blocks as pieces
from kveil.source.base import Source


@dataclass(frozen=True)
class BlockCenters(Mechanism):
    """The sum over blocks of each block's k centres, with noise. Divided by the number of blocks it is their average.

    Private:      the rows, which block each is in, and every block's centres.  Public: the parameters and the start.
    Neighbours:   those of the pool; a person has at most m rows.
    Sensitivity:  a row's block is a function of that row and a key alone, so adding or removing a row changes the rows of one
                  block, and thereby the result of that block alone: from some k points of the domain to some other k. They
                  are codes, so the k d numbers move by at most the diameter of the domain times sqrt(k) in L2. A person
                  with m rows changes at most m blocks, and replacing is removing and adding: m and 2 m times that.
    Cost:         that of one vector of the pool. It holds for every fixed key, hence also on average over keys: the guarantee
                  does not rest on the key's secrecy. It is secret so that nobody can choose rows that fill one block.
    Not covered:  running time. Equal rows share a block: few distinct rows make poor blocks, which costs accuracy alone.
    Reference:    "GUPT: Privacy Preserving Data Analysis Made Easy" (2012), with blocks that depend neither on n nor on the
                  order of rows; Nissim, Raskhodnikova, Smith (2007) for the idea.
    """

    domain: Box | Ball
    n_clusters: int
    n_steps: int
    ratio: Floats | None  # as in `Centers`
    start: Integers | None = None  # (k, d) codes
    n_blocks: int = 1

    def __post_init__(self) -> None:
        if self.start is not None and not self._holds(self.start):
            raise AssertionError("blocks start inside the domain: from farther out rows would move them by more than stated")

    def _holds(self, codes: Integers) -> bool:
        """Whether all codes are of points in the domain."""
        if isinstance(self.domain, Ball):
            return bool((codes.astype(np.int64) ** 2).sum(axis=1).max(initial=0) <= self.domain.top**2)
        return bool(np.abs(codes).max(initial=0) <= self.domain.top)

    @property
    def l2_sensitivity(self) -> int:
        """How far one block can move the sum, in grid steps: ceil(sqrt(k) times the diameter), exact in integers."""
        domain = self.domain
        square = domain.top**2 * (1 if isinstance(domain, Ball) else domain.n_columns)
        return isqrt(4 * self.n_clusters * square - 1) + 1

    def release(self, behind: Source, account: Pool) -> Floats:
        """The noisy sum (k, d) over blocks of their centres, for all that is left in the pool."""
        assert self.start is not None
        raw = self.raw_centers(behind, self.start, self.n_blocks, account.secret_words(2)).sum(axis=0)
        part = Part("sum of block centres", "vectors", self.l2_sensitivity)
        return account.release(part, raw.reshape(1, -1), account.left).reshape(raw.shape)

    def raw_centers(self, source: Source, start: Integers, n_blocks: int, key: NDArray[np.uint64]) -> Integers:
        """Where Lloyd steps take every block from one public start, all blocks in lockstep: (blocks, k, d), secret.

        Centre i of every block grew from start i. That order is common to all blocks, and sorting by coordinates is not: where
        two centres nearly tie in the first one, some blocks would have them the other way round.
        """
        centers = np.repeat(start[None], n_blocks, axis=0)
        for step in range(1, self.n_steps + 1):  # fixed before the data is seen
            progress("Lloyd step of all blocks", step, self.n_steps)
            raw_counts, raw_sums = source.map_reduce(block_sums, Blocks(centers, key, self.ratio), grid=self.domain)
            centers = block_means(raw_counts, raw_sums, centers)
        return centers


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


def block_means(raw_counts: Integers, raw_sums: Integers, centers: Integers) -> Integers:
    """The mean of every cluster of every block as codes, rounded towards 0, so that it stays in the domain.

    A cluster without rows keeps its centre. A box holds every number between its codes, and in a ball rounding towards 0 can
    only shorten a mean, which is no longer than the longest row.
    """
    counts = np.maximum(raw_counts, 1)[:, :, None]
    means = np.sign(raw_sums) * (np.abs(raw_sums) // counts)
    return np.asarray(np.where(raw_counts[:, :, None] > 0, means, centers))
