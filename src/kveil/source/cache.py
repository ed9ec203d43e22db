"""Encoded blocks kept between the passes of a fit, so that later passes neither read nor encode."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from kveil.source.base import Grid


class Cache:
    """The blocks of the grid used last, if all of them fit in `limit` bytes. Grids are told apart by identity."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._grid: Grid | None = None
        self._blocks: Sequence[Any] | None = None  # None with a grid: they do not fit

    def blocks(self, grid: Grid) -> Sequence[Any] | None:
        """The blocks of a whole pass over this grid, or None."""
        return self._blocks if self._grid is grid else None

    def begin(self, grid: Grid) -> Filling:
        """A place to put the blocks of a first pass; those of another grid are dropped now."""
        known_too_large = self._grid is grid and self._blocks is None
        if self._grid is not grid:
            self._grid = self._blocks = None
        return Filling(0 if known_too_large else self.limit)

    def finish(self, grid: Grid, filling: Filling) -> None:
        """Take over the blocks. Call it only when the pass went through all rows."""
        self._grid, self._blocks = grid, filling.blocks


class Filling:
    """Blocks of one pass, from any thread; given up for good, and let go, once they pass the limit."""

    def __init__(self, limit: int) -> None:
        self.blocks: list[Any] | None = []
        self._left = limit
        self._lock = Lock()

    def add(self, block: Any) -> None:
        with self._lock:
            self._left -= _n_bytes(block)
            if self._left < 0:
                self.blocks = None
            if self.blocks is not None:
                self.blocks.append(block)


def _n_bytes(block: Any) -> int:
    arrays = (block.data, block.indices, block.indptr) if hasattr(block, "indptr") else (block,)
    return sum(int(array.nbytes) for array in arrays)
