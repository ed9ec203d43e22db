"""Encoded blocks kept between the passes of a fit, so that later passes neither read nor encode."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from kveil.source.base import Encoding


class Cache:
    """The blocks of the grid used last, if all of them fit in `limit` bytes. Grids are told apart by identity."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # One attribute, read and written once: fits in two threads never pair one's grid with the other's blocks.
        self._held: tuple[Encoding, Sequence[Any] | None] | None = None  # no blocks with a grid: they do not fit

    def blocks(self, grid: Encoding) -> Sequence[Any] | None:
        """The blocks of a whole pass over this grid, or None."""
        held = self._held
        return held[1] if held is not None and held[0] is grid else None

    def begin(self, grid: Encoding) -> Filling:
        """A place to put the blocks of a first pass; those of another grid are dropped now."""
        held = self._held
        if held is not None and held[0] is not grid:
            held = self._held = None
        return Filling(0 if held is not None and held[1] is None else self.limit)

    def finish(self, grid: Encoding, filling: Filling) -> None:
        """Take over the blocks. Call it only when the pass went through all rows."""
        self._held = (grid, filling.blocks)


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
