"""Rows in a Dask array or data frame: one task a partition, integers merged in a tree, on whatever scheduler is active.

Tasks are pure functions of their partition, so after the loss of a worker they run again and the answer is the same.
Within a task blocks follow one another; the cores are busy with other partitions.

Types are those the collection announces (its meta). A partition that has others is brought to them cell by cell. A task
that fails all the same returns `Failed`: an error would be logged where it ran, with the rows it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from dask.base import compute
from dask.delayed import delayed

from kveil.errors import InvalidType, InvalidValue, KveilError, SourceError
from kveil.kernel.grid import check_products
from kveil.source.arrays import ArrayReader, check_array
from kveil.source.base import Combine, Encoding, IntArrays, Kernel, Reader, add, check_before_reading, encode, merge, no_codes
from kveil.source.frames import FrameReader, check_frame
from kveil.source.guard import quietly
from kveil.source.intake import Choice, check_dimensions, refuse_objects
from kveil.source.options import Options
from kveil.source.people import Fingerprints, kept_rows, matching_rows, row_hashes
from kveil.source.prepare import Plan
from kveil.source.prepare import plan as planned
from kveil.source.threads import one_blas_thread

_RETRIES = 5  # of a task that failed; losing a worker does not count as failing
_FAN_IN = 8
_COMPLAINT = (
    "the Dask collection could not be computed: a partition cannot be read, or the cluster failed. What was said about it is "
    "not told here, because it may quote rows. Compute the collection yourself to see it, and declare its types (dtype, meta)."
)

T = TypeVar("T")


class DaskSource:
    """A `Source` over the partitions of a Dask collection. `open_part` makes a reader of a computed partition."""

    def __init__(self, parts: Sequence[Any], open_part: Callable[[Any], Reader], choice: Choice, options: Options) -> None:
        plan = planned(choice, options)
        self.names, self.n_columns, self.blocks, self.missing = plan.names, plan.n_columns, plan.blocks, options.missing
        self.unit, self.max_rows, self.is_sparse, self.is_private = options.unit, options.most_rows, False, options.private
        self._parts = parts
        self._open_part = partial(_prepared_part, plan, open_part) if plan.preparation.is_needed else open_part
        self._block_rows = options.block_rows(self.n_columns)
        self._bounding = Lock()

    def partitions(self) -> Sequence[Any]:
        """The delayed partitions, in order."""
        return self._parts

    def check(self, grid: Encoding) -> None:
        """Refuse a grid that these columns cannot use. A fit asks before it reserves its budget."""
        check_before_reading(self, grid, is_sparse=False)

    def map_reduce(self, kernel: Kernel, state: Any, *, grid: Encoding, combine: Combine = add) -> IntArrays:
        """`kernel(block, state)` for every block of codes on the grid, merged by `combine`."""
        self.check(grid)
        empty = merge(None, kernel(no_codes(self, grid, is_sparse=False), state), combine)
        if not self._parts:
            return empty
        job = delayed(Job(self._open_part, self._block_rows, kernel, state, grid, combine), traverse=False)
        kept: Sequence[Any] = [None] * len(self._parts) if self._kept is None else self._kept
        task = delayed(guarded)
        results = [task(summarise, part, job, rows) for part, rows in zip(self._parts, kept, strict=True)]
        while len(results) > 1:
            results = [task(merge_all, results[i : i + _FAN_IN], combine) for i in range(0, len(results), _FAN_IN)]
        total: IntArrays | None = _compute(results)[0]
        return empty if total is None else total

    def raw_blocks(self) -> Iterator[Any]:
        """All rows in order, as float blocks: secret, unbounded, for whoever holds the table and asks about its rows."""
        for part in self._parts:
            reader = self._open_part(_compute([part])[0])
            for piece in reader.parts(self._block_rows):
                for block in reader.blocks(piece, self._block_rows, False):
                    yield block.values

    @property
    def _kept(self) -> list[Fingerprints] | None:
        if self.unit.kind == "record":
            return None
        with self._bounding:
            return self._kept_fingerprints

    @cached_property
    def _kept_fingerprints(self) -> list[Fingerprints]:
        """Which rows stay, a list for each partition: not by place, since a shuffle may order a partition anew each time."""
        task = delayed(guarded)
        tasks = [task(fingerprints, part, self._open_part, self._block_rows) for part in self._parts]
        found: list[Fingerprints] = _compute(tasks)
        masks = quietly(partial(kept_rows, found, self.unit.max_rows_per_person))
        return [
            Fingerprints(piece.ids.filter(pa.array(mask)), piece.hashes[mask]) for piece, mask in zip(found, masks, strict=True)
        ]


class Job(NamedTuple):
    """What every partition is told; sent once and shared by the tasks."""

    open_part: Callable[[Any], Reader]
    block_rows: int
    kernel: Kernel
    state: Any
    grid: Encoding
    combine: Combine


class Failed:
    """What a task returns in place of an error."""


def guarded(task: Callable[..., T], *arguments: Any) -> T | Failed:
    """What the task returns, or `Failed`, which tells nothing of why."""
    try:
        with np.errstate(all="ignore"):  # whatever the worker has set
            return quietly(partial(task, *arguments))
    except KveilError:
        return Failed()


def summarise(part: Any, job: Job, kept: Fingerprints | None) -> IntArrays | None:
    """The merged results of one partition; None if it has no rows."""
    check_products()  # of the machine that this worker runs on
    reader, total = job.open_part(part), None
    mask = None if kept is None else matching_rows(kept, fingerprints(part, job.open_part, job.block_rows))
    done = 0
    for piece in reader.parts(job.block_rows):
        for block in reader.blocks(piece, job.block_rows, False):
            n_rows = len(block.values)
            values = block.values if mask is None else block.values[mask[done : done + n_rows]]
            done += n_rows
            if len(values):
                total = merge(total, job.kernel(encode(job.grid, values), job.state), job.combine)
    return total


def fingerprints(part: Any, open_part: Callable[[Any], Reader], block_rows: int) -> Fingerprints:
    """Ids and hashes of the rows of one partition."""
    reader = open_part(part)
    blocks = [block for piece in reader.parts(block_rows) for block in reader.blocks(piece, block_rows, True)]
    return Fingerprints(pa.concat_arrays([block.ids for block in blocks]), np.concatenate([row_hashes(b.values) for b in blocks]))


def merge_all(results: Sequence[IntArrays | Failed | None], combine: Combine) -> IntArrays | Failed | None:
    total = None
    for result in results:
        if isinstance(result, Failed):
            return result
        total = total if result is None else merge(total, result, combine)
    return total


def open_dask(data: Any, options: Options) -> DaskSource:
    """A source over a Dask array or data frame; its rows stay where they are."""
    if hasattr(data, "to_delayed") and hasattr(data, "_meta"):
        check_dimensions(data.ndim)
        return _open_array(data, options) if hasattr(data, "rechunk") else _open_frame(data, options)
    raise InvalidType("of Dask's collections only arrays and data frames are tables of rows. Convert it to one of them.")


def _open_array(data: Any, options: Options) -> DaskSource:
    if not isinstance(data.shape[-1], int):
        raise InvalidValue("the number of columns of the Dask array is not known. Call compute_chunk_sizes() on it first.")
    choice = check_array(data.ndim, data.shape[-1:], data.dtype, options)
    if data.dtype.kind == "O" or not isinstance(data._meta, np.ndarray):
        refuse_objects("a Dask array")
    parts = data.rechunk({1: -1}).to_delayed().ravel().tolist()
    return DaskSource(parts, partial(_array_part, choice), choice, options)


def _open_frame(data: Any, options: Options) -> DaskSource:
    choice = check_frame(data._meta, options, may_look=False)
    wanted = [*choice.features, *([] if choice.person is None else [choice.person])]
    return DaskSource(data[wanted].to_delayed(), partial(_frame_part, choice), choice, options)


def _prepared_part(plan: Plan, open_part: Callable[[Any], Reader], part: Any) -> Reader:
    return plan.wrap(open_part(part))


def _array_part(choice: Choice, part: Any) -> Reader:
    return ArrayReader(lambda: part if isinstance(part, np.ndarray) else np.asarray(part), choice)


def _frame_part(choice: Choice, part: Any) -> Reader:
    return FrameReader(part, choice)


def _compute(tasks: Sequence[Any]) -> list[Any]:
    with one_blas_thread():
        results = quietly(lambda: list(compute(*tasks, retries=_RETRIES)), _COMPLAINT)  # type: ignore[no-untyped-call]
    if any(isinstance(result, Failed) for result in results):
        raise SourceError(_COMPLAINT)
    return results
