"""What is kept between the passes of a fit: encoded blocks, so that later passes neither read nor encode, and what a question
noted of their rows. All of it is secret, and goes when another grid is used."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

from kveil.source.base import Encoding

Numbered = tuple[Hashable, Any]  # a block of codes, after its number: the same block has the same number in every pass


class Cache:
    """The blocks of the grid used last, if all of them fit in `limit` bytes, and notes about them. Grids are told apart by
    identity."""

    def __init__(self, limit: int, of_notes: int = 0) -> None:
        self.limit, self._of_notes = limit, of_notes
        # One attribute, read and written once: fits in two threads never pair one's grid with the other's blocks.
        self._held: tuple[Encoding, Sequence[Numbered] | None] | None = None  # no blocks with a grid: they do not fit
        self._notes: tuple[Encoding, Notes] | None = None

    def notes(self, grid: Encoding) -> Notes:
        """The notes about the blocks of this grid; those of another one are dropped."""
        held = self._notes
        if held is None or held[0] is not grid:
            held = self._notes = (grid, Notes(self._of_notes))
        return held[1]

    def blocks(self, grid: Encoding) -> Sequence[Numbered] | None:
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
        self.blocks: list[Numbered] | None = []
        self._left = limit
        self._lock = Lock()

    def add(self, number: Hashable, block: Any) -> None:
        with self._lock:
            self._left -= _n_bytes(block)
            if self._left < 0:
                self.blocks = None
            if self.blocks is not None:
                self.blocks.append((number, block))


class Notes:
    """One page for every block, from any thread; none of them is written once all together would pass `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._pages: dict[Hashable, tuple[tuple[Hashable, ...], Any]] = {}
        self._left = limit
        self._lock = Lock()

    def page(self, number: Hashable) -> Page:
        return Page(self, number)

    def find(self, number: Hashable, key: tuple[Hashable, ...]) -> Any:
        held = self._pages.get(number)
        return held[1] if held is not None and held[0] == key else None

    def guess(self, number: Hashable, family: tuple[Hashable, ...]) -> Any:
        held = self._pages.get(number)
        return held[1] if held is not None and held[0][: len(family)] == family else None

    def keep(self, number: Hashable, key: tuple[Hashable, ...], note: Any) -> None:
        with self._lock:
            held = self._pages.pop(number, None)
            self._left += 0 if held is None else int(held[1].nbytes)
            if note.nbytes <= self._left:
                self._left -= int(note.nbytes)
                self._pages[number] = (key, note)


class Page:
    """What the last question that kept something found out about the rows of one block, such as their labels, for the next one:
    an array, or None if there is none for this key. Secret: it lies with the block, and a kernel writes it nowhere else."""

    def __init__(self, notes: Notes, number: Hashable) -> None:
        self._notes, self._number = notes, number

    def find(self, key: tuple[Hashable, ...]) -> Any:
        return self._notes.find(self._number, key)

    def guess(self, family: tuple[Hashable, ...]) -> Any:
        return self._notes.guess(self._number, family)

    def keep(self, key: tuple[Hashable, ...], note: Any) -> None:
        self._notes.keep(self._number, key, note)


def _n_bytes(block: Any) -> int:
    arrays = (block.data, block.indices, block.indptr) if hasattr(block, "indptr") else (block,)
    return sum(int(array.nbytes) for array in arrays)
