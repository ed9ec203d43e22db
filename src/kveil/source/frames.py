"""Rows in a data frame: pandas, polars, pyarrow, Modin and whatever else narwhals understands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from kveil.arrays import Floats
from kveil.errors import InvalidType
from kveil.source import columns, ids
from kveil.source.arrays import row_ranges
from kveil.source.base import RawRows
from kveil.source.guard import quietly
from kveil.source.intake import Choice, check_columns, check_dimensions, check_levels, check_types, choose, with_ids_of
from kveil.source.levels import Levels
from kveil.source.options import Options


class FrameReader:
    """Reads the chosen columns of a data frame, a slice of rows at a time."""

    is_sparse = False

    def __init__(self, frame: Any, choice: Choice) -> None:
        self.choice = choice
        self.names = choice.names
        self.n_columns = self.width = len(choice.features)
        self._frame = nw.from_native(frame, eager_only=True)

    def parts(self, rows: int) -> Sequence[tuple[int, int]]:
        return row_ranges(len(self._frame), rows)

    def blocks(self, part: tuple[int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        piece = self._frame[part[0] : part[1]]
        values = np.empty((len(piece), self.n_columns), order="F")
        for place, name in enumerate(self.choice.features):
            values[:, place] = _numbers(piece.get_column(name), self.choice.levels.get(name))
        yield RawRows(values, columns.exact_ids(piece.get_column(self.choice.person), self.choice.id_kind) if with_ids else None)


def _numbers(column: Any, levels: Levels | None) -> Floats:
    if levels is None:
        return columns.floats(column)
    if levels.are_text:
        return levels.of_text(columns.exact_ids(column, ids.TEXT))
    return levels.of_numbers(columns.floats(column))


def is_frame(data: Any) -> bool:
    """Whether `data` is a table with named columns, or what is easily mistaken for one: a lazy table or a series."""
    known = nw.dependencies
    mistaken = known.is_polars_lazyframe(data) or known.is_into_series(data)
    return isinstance(data, pa.RecordBatch) or mistaken or known.is_into_dataframe(data)


def open_frame(data: Any, options: Options) -> FrameReader:
    """A reader of a data frame."""
    if nw.dependencies.is_into_series(data):
        check_dimensions(1)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not nw.dependencies.is_into_dataframe(data):
        raise InvalidType("a lazy table has no rows yet. Collect it first, or write it to Parquet and pass the path.")
    return FrameReader(data, check_frame(data, options))


def check_frame(data: Any, options: Options, *, may_look: bool = True) -> Choice:
    """The chosen columns of a frame, from its schema. Columns of Python objects are looked through, if that is allowed."""
    complaint = "the columns of the table must have different names. Rename those that are called the same."
    frame = quietly(lambda: nw.from_native(data, eager_only=True), complaint)
    check_columns(len(frame.columns))
    choice = choose(frame.columns, options)
    texts = [name for name, levels in choice.levels.items() if levels.are_text]
    check_types({name: columns.refusal(frame.get_column(name), may_look) for name in choice.features if name not in texts})
    check_levels(choice, {name: columns.text_refusal(frame.get_column(name)) for name in texts})
    if choice.person is None:
        return choice
    people = frame.get_column(choice.person)
    return with_ids_of(choice, columns.id_kind(people), columns.type_name(people))
