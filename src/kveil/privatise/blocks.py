"""Sample and aggregate: the centres of many blocks of rows, added up and noised once."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.grid import Ball, Box
from kveil.privatise.pool import Pool
from kveil.source import Source
from kveil.source.progress import step as progress
from kveil.summary.blocks import Blocks, block_means, block_sums

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockCenters:
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

    @property
    def l2_sensitivity(self) -> int:
        """How far one block can move the sum, in grid steps: ceil(sqrt(k) times the diameter), exact in integers."""
        domain = self.domain
        square = domain.top**2 * (1 if isinstance(domain, Ball) else domain.n_columns)
        return isqrt(4 * self.n_clusters * square - 1) + 1

    def release(self, source: Source, start: Integers, n_blocks: int, pool: Pool) -> Floats:
        """The noisy sum (k, d) over blocks of their centres, for all that is left in the pool."""
        raw = self.raw_centers(source, start, n_blocks, pool.secret_words(2)).sum(axis=0)
        return pool.vectors("sum of block centres", raw.reshape(1, -1), self.l2_sensitivity, pool.left).reshape(raw.shape)

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
