"""Sample and aggregate (as in GUPT): cluster many small blocks of rows, and release the noisy average of their centres."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from kveil.desk.base import Curator
from kveil.desk.block_centers import BlockCenters
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.methods.base import Facts, Found, check_width
from kveil.methods.lloyd import Lloyd
from kveil.methods.starts import resolved, start
from kveil.methods.steps import number_of_rows
from kveil.methods.task import Task, check_count
from kveil.space.euclidean import Centers, clip, farthest
from kveil.tuning import SampleAggregate as SampleAggregateTuning

MOST_NUMBERS = 2**22  # in the centres of all blocks: 32 MB
ROWS_SHARE = 0.05


class SampleAggregate:
    """Private k-means by averaging over blocks. A baseline: the noise covers a whole block's centres, wherever they may lie.

    Private, public, neighbours, sensitivity: those of `BlockCenters`.
    Cost:         the whole budget as one charge: 5 % for the number of rows, unless `expected_rows` or `blocks` spare it, the
                  rest for the sum of all blocks' centres.
    """

    takes_sparse: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"init"})
    tuning: ClassVar[type[SampleAggregateTuning]] = SampleAggregateTuning

    @staticmethod
    def bits(facts: Facts) -> int:
        return Lloyd.bits(facts)

    def __init__(self, task: Task) -> None:
        self.task = task = resolved(task)
        self.most_blocks = max(1, MOST_NUMBERS // (task.n_clusters * task.domain.n_columns))
        if task.tuning.blocks is not None and check_count("blocks", task.tuning.blocks) > self.most_blocks:
            raise InvalidValue(f"with these clusters and features at most {self.most_blocks} blocks fit into memory. Use fewer.")
        uneven = Centers.of(task.domain.center[None], task.domain, task.scaling).ratio
        self.blocks = BlockCenters(task.domain, task.n_clusters, check_count("n_steps", task.tuning.n_steps), uneven)
        pools = [Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=is_pure) for is_pure in self._kinds()]
        self.budget = min(pools, key=self._spread)
        check_width(self.budget, self.blocks.l2_sensitivity, 1 - ROWS_SHARE)

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        task, domain = self.task, self.task.domain
        n_blocks = self._n_blocks(desk)
        deviation = np.sqrt(self._spread(desk, desk.left) / (task.n_clusters * domain.n_columns)) / n_blocks
        begin = domain.encode(start(task, rng)).astype(np.int64)  # (k, d)  public
        noisy_sum = desk.perform(replace(self.blocks, start=begin, n_blocks=n_blocks))  # (k, d)  public, charged
        centers = clip(domain, domain.decode(noisy_sum / n_blocks))
        error = min(deviation * np.linalg.norm(domain.step), farthest(domain))
        note = f"average of {n_blocks} blocks of rows; the noise covers one block's centres, wherever in the domain they lie"
        return Found(centers, None, (note,), np.full(task.n_clusters, error))

    def _kinds(self) -> list[bool]:
        """Which kinds of noise may be used: pure or not."""
        return [True] if not self.task.delta else [False] if self.task.is_zcdp else [True, False]

    def _spread(self, pool: Pool | Curator, share: float = 1.0) -> float:
        return pool.spread(self.task.n_clusters * self.task.domain.n_columns, self.blocks.l2_sensitivity, share)

    def _n_blocks(self, desk: Curator) -> int:
        """N^0.4, from a public or a noisy N."""
        task = self.task
        if task.tuning.blocks is not None:
            return int(task.tuning.blocks)
        n = task.expected_rows or number_of_rows(desk, ROWS_SHARE, least=1.0)
        return int(np.clip(round(n**0.4), 1, self.most_blocks))
