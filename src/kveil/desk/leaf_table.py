"""The state of a private stream: counts and sums of public leaves, in memory that no row changes. Secret until released."""

from __future__ import annotations

from copy import copy
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.desk.base import Held, read_rows
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.kernel.ledger import Ticket
from kveil.questions.leaves import LeafTotals, Leaves
from kveil.source.base import Source

DEEPEST = 16  # 65 536 leaves: with more, releasing them all would take longer than it is worth


class LeafTable:
    """Raw counts (2**H,) and raw sums (2**H, d) of rows in the leaves of a public partition.

    A sum over rows, so any order, split and merge of the same rows gives the same bytes. It takes 8 2**H (1 + d) bytes,
    whatever the rows are. `update` and `merge` change counts and sums one after the other: let nobody else see the table then.
    """

    def __init__(self, domain: Box, depth: int) -> None:
        self.domain, self.leaves = domain, Leaves.of(domain, depth)
        self._raw_counts = np.zeros(self.leaves.n_leaves, dtype=np.int64)
        self._raw_sums = np.zeros((self.leaves.n_leaves, domain.n_columns), dtype=np.int64)

    @property
    def header(self) -> dict[str, Any]:
        """What must be equal for two tables to be added up: everything that decides what a number in them means. Public."""
        domain, cells = self.domain, self.leaves.cells
        return {
            "columns": domain.n_columns,
            "bits": domain.bits,
            "lower": [low.hex() for low in domain.lower.tolist()],
            "upper": [high.hex() for high in domain.upper.tolist()],
            "depth": cells.depth,
            "half": list(cells.half),
            "order": list(cells.order),
            "projection": "signs" if self.leaves.is_projected else None,
        }

    @property
    def n_bytes(self) -> int:
        return self._raw_counts.nbytes + self._raw_sums.nbytes

    def copy(self) -> Self:
        """The same, apart."""
        return self._of(self._raw_counts.copy(), self._raw_sums.copy())

    def alone(self, source: Source) -> Self:
        """The rows of a source in the same cells, and no others."""
        return self._of(*read_rows(source, self.domain, LeafTotals(self.leaves)))

    def update(self, source: Source) -> None:
        """Add all rows of a source, or none if it cannot be read to its end."""
        self.merge(self.alone(source))

    def merge(self, other: LeafTable) -> None:
        """Add the rows of another table. `other` stays as it is."""
        if other.leaves is not self.leaves and other.header != self.header:
            differs = sorted(name for name, value in self.header.items() if other.header[name] != value)
            raise InvalidValue(
                f"these streams were cut into different cells ({', '.join(differs)} differ), so their counts cannot be added. "
                "Use the same bounds, columns and memory for both."
            )
        self._raw_counts += other._raw_counts
        self._raw_sums += other._raw_sums

    def open(self, pool: Pool, ticket: Ticket | None) -> Held:
        """The desk before the table, paying with what `ticket` has reserved: the plan of the pool, once."""
        pool.begin(ticket)
        return Held(LeafTotals(self.leaves), (self._raw_counts, self._raw_sums), pool)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All there is, for a file."""
        return {"counts": self._raw_counts, "sums": self._raw_sums}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], domain: Box, depth: int) -> Self:
        """What `arrays` gave; InvalidValue if they do not fit."""
        made = cls(domain, depth)
        for mine, theirs in ((made._raw_counts, arrays["counts"]), (made._raw_sums, arrays["sums"])):
            if theirs.dtype != np.int64 or theirs.shape != mine.shape:
                raise InvalidValue("these arrays are no table of leaves: their shapes or types do not fit.")
            mine[:] = theirs
        return made

    def _of(self, raw_counts: Integers, raw_sums: Integers) -> Self:
        made = copy(self)
        made._raw_counts, made._raw_sums = raw_counts, raw_sums
        return made


def table_bytes(depth: int, n_columns: int) -> int:
    """What a table takes, from public numbers."""
    return 8 * prod((2**depth, 1 + n_columns))


def depth_for(memory: int) -> int:
    """Levels of leaves that `memory` points allow: a leaf takes no more than a point does."""
    return min(DEEPEST, memory.bit_length() - 1)
