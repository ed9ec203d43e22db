"""Rows in a data frame: pandas, polars, pyarrow, Modin and whatever else narwhals understands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from kveil.errors import InvalidType
from kveil.source import cells, people
from kveil.source.arrays import row_ranges
from kveil.source.base import RawRows
from kveil.source.intake import Choice, check_columns, check_dimensions, check_id_type, check_types, choose, quietly
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
            values[:, place] = _floats(piece.get_column(name))
        yield RawRows(values, _ids(piece.get_column(self.choice.person)) if with_ids else None)


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
    check_types({name: _refusal(frame.get_column(name), may_look) for name in choice.features})
    if choice.person is not None:
        dtype = frame.schema[choice.person]
        check_id_type(choice.person, dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum), str(dtype))
    return choice


def _refusal(column: Any, may_look: bool) -> str | None:
    """Why a column cannot be a feature: its type, or None if it holds numbers."""
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return None
    if dtype == nw.Object and may_look:
        kind = cells.object_kinds(column.to_numpy())
        return {"numbers": None, "complex": "complex"}.get(kind, "objects that are not all numbers")
    return str(column.to_native().dtype) if dtype == nw.Unknown and column.implementation.is_pandas_like() else str(dtype)


def _floats(column: Any) -> cells.Floats:
    if not column.implementation.is_pandas_like():
        return cells.from_arrow(column.to_arrow())
    if column.dtype == nw.Object:
        return cells.from_objects(column.to_numpy())
    with np.errstate(all="ignore"):
        floats: cells.Floats = column.to_native().to_numpy(dtype=np.float64, na_value=np.nan)
    return floats


def _ids(column: Any) -> Any:
    if column.implementation.is_pandas_like() and column.to_native().dtype == object:
        # Older pandas keeps strings as objects, and only some were looked at: whatever is no string is a missing id.
        texts = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None for value in column.to_list()]
        return pa.array(texts, pa.large_binary())
    return people.exact_ids(column.to_arrow())
