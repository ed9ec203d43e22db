"""Rows on this machine: any reader, several threads, and one integer summary."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.progress import Reading, reading
from kveil.source.base import (
    Block,
    Combine,
    Encoding,
    IntArrays,
    Kernel,
    Reader,
    add,
    check_before_reading,
    encode,
    merge,
    no_codes,
    part_sizes,
)  # fmt: skip
from kveil.source.cache import Cache, Filling, Notes, Numbered
from kveil.source.guard import each_quietly, quietly
from kveil.source.options import Options
from kveil.source.people import Fingerprints, kept_rows, row_hashes, sparse_row_hashes
from kveil.source.threads import run

TINY = 2**12  # codes that are kept, of all blocks together


class LocalSource:
    """A `Source` over a `Reader`. Rows are first read by `map_reduce`: by then the budget has been reserved."""

    def __init__(self, reader: Reader, options: Options, blocks: tuple[Block, ...] = ()) -> None:
        self.names, self.n_columns = reader.names, reader.n_columns
        self.unit, self.max_rows = options.unit, options.most_rows
        self.is_sparse, self.is_private = reader.is_sparse, options.private
        self.blocks, self.missing = blocks, options.missing
        self._reader = reader
        self._block_rows = options.block_rows(reader.width)
        self._cache = Cache(options.memory // 2, of_notes=options.memory // 8)
        self._bounding = Lock()
        self._marks: dict[int, list[float]] = {}  # how much of a part was read after each of its blocks, where that is told

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._reader).__name__}, n_columns={self.n_columns}, unit={str(self.unit)!r})"

    def partitions(self) -> Sequence[Any]:
        """Pieces of the table that are read independently, in a stable order."""
        return self._parts

    def check(self, grid: Encoding) -> None:
        """Refuse a grid that these columns cannot use. A fit asks before it reserves its budget."""
        check_before_reading(self, grid, self._reader.is_sparse)

    def map_reduce(self, kernel: Kernel, state: Any, *, grid: Encoding, combine: Combine = add) -> IntArrays:
        """`kernel(block, state)` for every block of codes on the grid, merged by `combine`."""
        self.check(grid)
        blocks, notes = self._cache.blocks(grid), self._cache.notes(grid)
        kept: Sequence[Any] | None = self._kept if blocks is None else None  # which takes a pass of its own, the first time
        answer, news = _Answer(kernel, state, combine, notes), self._reading()
        if blocks is not None:
            results = run(lambda todo: answer(_told(todo, news)), blocks, is_tiny=sum(codes.size for _, codes in blocks) <= TINY)
        else:
            filling = self._cache.begin(grid)
            parts = list(enumerate(zip(self._parts, kept or [None] * len(self._parts), strict=True)))
            results = run(lambda todo: answer(self._encoded(todo, grid, filling, news)), parts)
            self._cache.finish(grid, filling)
        news.finish()
        total = None
        for result in results:
            total = total if result is None else merge(total, result, combine)
        # A table without rows has a summary too, of the same shape as any other.
        return total if total is not None else merge(None, kernel(no_codes(self, grid, self._reader.is_sparse), state), combine)

    def raw_blocks(self) -> Iterator[Any]:
        """All rows in order, as float blocks: secret, unbounded, for whoever holds the table and asks about its rows."""
        for part in self._parts:
            for block in self._reader.blocks(part, self._block_rows, False):
                yield block.values

    @cached_property
    def _parts(self) -> Sequence[Any]:
        return quietly(partial(self._reader.parts, self._block_rows))

    def _reading(self) -> Reading:
        """A pass begins: for whoever listens, in bytes or parts of the table as it lies there."""
        return reading(part_sizes(self._reader, self._parts), self._marks)

    @property
    def _kept(self) -> list[NDArray[np.bool_]] | None:
        """Which rows stay, a mask for each part; None if the unit is a record and all do."""
        if self.unit.kind == "record":
            return None
        with self._bounding:
            return self._masks

    @cached_property
    def _masks(self) -> list[NDArray[np.bool_]]:
        found: dict[int, list[Fingerprints]] = {}
        hashes, news = sparse_row_hashes if self.is_sparse else row_hashes, self._reading()

        def look(todo: Iterator[tuple[int, Any]]) -> None:
            for number, part in todo:
                blocks = each_quietly(self._reader.blocks(part, self._block_rows, True))
                found[number] = [Fingerprints(block.ids, quietly(partial(hashes, block.values))) for block in blocks]
                news.done(number)

        run(look, enumerate(self._parts))
        news.finish()
        in_order = [found[number] for number in range(len(found))]
        pieces_in_order = [piece for pieces in in_order for piece in pieces]
        masks = iter(quietly(partial(kept_rows, pieces_in_order, self.unit.max_rows_per_person)))
        return [np.concatenate([np.empty(0, dtype=np.bool_), *(next(masks) for _ in pieces)]) for pieces in in_order]

    def _encoded(self, parts: Iterator[Any], grid: Encoding, filling: Filling, news: Reading) -> Iterator[Numbered]:
        for number, (part, kept) in parts:
            done, marks = 0, list[float]()
            for block in each_quietly(self._reader.blocks(part, self._block_rows, False)):
                start, n_rows = done, block.values.shape[0]
                values = block.values if kept is None else block.values[kept[start : start + n_rows]]
                done += n_rows
                if block.read is not None:  # before rows are counted: news is the same whichever of them are kept
                    marks.append(min(block.read, 0.999))
                    news.done(number, marks[-1])
                if values.shape[0]:
                    codes = quietly(partial(encode, grid, values))
                    block_number = (number, start, codes.shape[0])  # a file that grew has other blocks: no note is of them
                    filling.add(block_number, codes)
                    yield block_number, codes
            self._marks[number] = marks
            news.done(number)


def _told(blocks: Iterator[Numbered], news: Reading) -> Iterator[Numbered]:
    """The blocks that were kept, in the order of their parts, about; a part without any is told of with the next one."""
    for number, codes in blocks:
        yield number, codes
        news.done(number[0])  # type: ignore[index]


@dataclass(frozen=True)
class _Answer:
    """What a pass makes of the blocks that one thread took."""

    kernel: Kernel
    state: Any
    combine: Combine
    notes: Notes

    def __call__(self, blocks: Iterator[Numbered]) -> IntArrays | None:
        """The merged results; None if it took none."""
        total = None
        with np.errstate(all="ignore"):  # what rows hold never raises or warns, whatever this process has set
            for number, block in blocks:  # encoded here, too
                total = merge(total, self._of(number, block), self.combine)
        return total

    def _of(self, number: Hashable, block: Any) -> tuple[NDArray[Any], ...]:
        if getattr(self.kernel, "takes_page", False):
            return self.kernel(block, self.state, self.notes.page(number))
        return self.kernel(block, self.state)
