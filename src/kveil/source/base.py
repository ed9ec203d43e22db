"""What every source promises, what every reader supplies, and how integer summaries are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kveil.errors import InvalidValue
from kveil.kernel.grid import check_products, check_sums
from kveil.kernel.loss import PrivacyUnit

IntArrays = tuple[NDArray[np.int64], ...]
Kernel = Callable[..., tuple[NDArray[Any], ...]]
Combine = Callable[[Any, Any], Any]

add: Combine = np.add  # or any other module-level function of two arrays that minds neither order nor grouping


class Encoding(Protocol):
    """What turns rows into integers: the domains `Box` and `Ball`, or bins. A row's code depends on that row alone."""

    @property
    def n_columns(self) -> int: ...

    @property
    def bits(self) -> int: ...

    def encode(self, rows: Any) -> NDArray[Any]: ...

    def encode_sparse(self, rows: Any) -> Any: ...


@runtime_checkable
class Source(Protocol):
    """Rows that can be summarised but not looked at. `kveil.read` makes one.

    Attributes
    ----------
    names : tuple of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    unit : PrivacyUnit
        Whom a guarantee about these rows protects.
    max_rows : int
        A public bound on the number of rows.
    is_sparse : bool
        Whether rows are sparse.

    Notes
    -----
    `map_reduce` hands `kernel(block, state)` blocks of integer codes, at least one and possibly without rows, and merges
    what it returns. A merge that minds neither order nor grouping (integers by sum, least or greatest; histograms by code)
    gives one answer however the rows are divided.
    `raw_blocks` is for whoever holds the rows and asks about them (predict); never for a private path.
    A kernel is a pure module-level function: after a failure it may run twice, and its result counts once. One with
    `takes_page` may be handed a third argument, a `cache.Page` about the block, and must do without as well.
    """

    names: tuple[str, ...] | None
    n_columns: int
    unit: PrivacyUnit
    max_rows: int
    is_sparse: bool

    def partitions(self) -> Sequence[Any]: ...

    def check(self, grid: Encoding) -> None: ...

    def map_reduce(self, kernel: Kernel, state: Any, *, grid: Encoding, combine: Combine = add) -> IntArrays: ...

    def raw_blocks(self) -> Iterator[Any]: ...


class Block(NamedTuple):
    """Columns that stand for the levels of one category, side by side: `high` in that of a row's level, 0 in the others."""

    column: str
    levels: tuple[str, ...]
    first: int  # of its columns in the source
    high: float

    @property
    def stop(self) -> int:
        return self.first + len(self.levels)


def blocks_of(source: Any) -> tuple[Block, ...]:
    """The columns of a source that stand for levels of categories; none if it knows of none."""
    return getattr(source, "blocks", ())


def is_marked_private(source: Any) -> bool:
    """Whether the caller said that its rows must not be looked at: `kveil.read(..., private=True)`."""
    return getattr(source, "is_private", False)


def missing_of(source: Any) -> Any:
    """What becomes of the missing cells of a source, as `read` was told."""
    return getattr(source, "missing", "middle")


class RawRows(NamedTuple):
    """A block of rows as floats, dense or sparse, and the ids of the people behind them if they were asked for."""

    values: Any
    ids: Any = None  # a pyarrow array, null where the id is missing
    read: float | None = None  # how much of its part was read by now, from 0 to 1, where a reader can tell: for progress alone


class Reader(Protocol):
    """One way to get at rows. A source adds threads, the grid, the cache and the bound on people."""

    names: tuple[str, ...] | None
    n_columns: int
    width: int  # columns a row fills in memory: fewer than n_columns if rows are sparse
    is_sparse: bool

    def parts(self, rows: int) -> Sequence[Any]:
        """Pieces that can be read independently, in a stable order."""

    def blocks(self, part: Any, rows: int, with_ids: bool) -> Iterator[RawRows]:
        """The rows of one part, at most `rows` at a time, in the same order every time."""


def part_sizes(reader: Any, parts: Sequence[Any]) -> Sequence[int]:
    """How much there is to read of each part: bytes where the reader knows, else 1. Before any row is left out."""
    return reader.sizes(parts) if hasattr(reader, "sizes") else [1] * len(parts)


def check_before_reading(source: Source, grid: Encoding, is_sparse: bool) -> None:
    """Refuse what public facts already rule out; after this nothing that rows hold can raise."""
    if grid.n_columns != source.n_columns:
        raise InvalidValue(
            f"the domain has {grid.n_columns} feature(s) and the data has {source.n_columns}. Bounds are one pair per feature: "
            "pass as many as there are columns, or choose columns=[...]."
        )
    if missing_of(source) == "mean" and not getattr(grid, "fills", False):
        raise InvalidValue(
            'missing="mean" fills cells with means that were released, so it needs scaling="private", which releases some. Use '
            'missing="drop", or public values by column.'
        )
    check_sums(grid, source.max_rows)
    check_products()
    no_codes(source, grid, is_sparse)  # a domain that sparse rows cannot use is refused here


def no_codes(source: Source, grid: Encoding, is_sparse: bool) -> Any:
    """A block without rows: it gives a summary its shape when nothing else does."""
    return encode(grid, csr_array((0, source.n_columns)) if is_sparse else np.empty((0, source.n_columns)))


def encode(grid: Encoding, values: Any) -> Any:
    return grid.encode(values) if isinstance(values, np.ndarray) else grid.encode_sparse(values)


def merge(total: IntArrays | None, result: tuple[NDArray[Any], ...], combine: Combine) -> IntArrays:
    """`total` with one more result in it; int64 from the start, so that narrow results cannot overflow on the way.

    Sums are added to `total` itself, which is a copy from the start: a result may have a million cells, and there are many.
    """
    wide = tuple(np.asarray(array).astype(np.int64, casting="same_kind", copy=total is None) for array in result)
    if total is None:
        return wide
    pairs = zip(total, wide, strict=True)
    return tuple(np.add(a, b, out=a) for a, b in pairs) if combine is np.add else tuple(combine(a, b) for a, b in pairs)
