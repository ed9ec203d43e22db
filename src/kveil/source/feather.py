"""Rows in a Feather file (version 2, which is Arrow's file format), read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from kveil.source.base import RawRows
from kveil.source.guard import quietly
from kveil.source.intake import Choice
from kveil.source.options import Options
from kveil.source.parquet import check_schemas, rows_of_batch
from kveil.source.places import Place, Url

_TEXT = {"string": "binary", "large_string": "large_binary", "string_view": "binary_view"}  # the last is not in every pyarrow


class FeatherReader:
    """Reads the chosen columns of a Feather file. A part is a batch of it."""

    is_sparse = False

    def __init__(self, path: Place, n_batches: int, choice: Choice) -> None:
        self.choice, self.names = choice, choice.names
        self.n_columns = self.width = len(choice.features)
        self._path, self._n_batches = path, n_batches

    def parts(self, rows: int) -> Sequence[int]:
        return range(self._n_batches)

    def blocks(self, part: int, rows: int, with_ids: bool) -> Iterator[RawRows]:
        complaint = f"{self._path} is damaged: a part of it cannot be read. Write the file again."
        wanted = [*self.choice.features, *([self.choice.person] if with_ids else [])]
        batch = quietly(partial(_batch, self._path, part, wanted), complaint)
        for start in range(0, batch.num_rows, rows):
            yield rows_of_batch(batch.slice(start, rows), self.choice, with_ids)


def open_feather(path: Place, options: Options) -> FeatherReader:
    """A reader of a .feather or .arrow file. Only its footer is read now."""
    complaint = f"{path} is no readable Feather file of version 2. Write it again, with pyarrow or pandas."
    schema, n_batches = quietly(partial(_footer, path), complaint)
    return FeatherReader(path, n_batches, check_schemas([schema], options))


def _footer(path: Place) -> tuple[Any, int]:
    with _source(path) as source, pa.ipc.open_file(source) as file:
        return file.schema, file.num_record_batches


def _batch(path: Place, number: int, wanted: Sequence[str]) -> Any:
    """One batch, checked: an offset in a damaged file may point anywhere in memory."""
    with _source(path) as source, pa.ipc.open_file(source) as file:
        batch = file.get_batch(number).select(list(wanted))
        for column in batch.columns:
            _bytes_of(column).validate(full=True)
        return batch


def _bytes_of(column: Any) -> Any:
    """A column as bytes, where it is text or decimals: a cell that is no UTF-8, or too long a number, is what a row holds, and
    no damage of the file. So it must not raise."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _bytes_of(column.dictionary), safe=False)
    if str(kind) in _TEXT:
        return column.view(getattr(pa, _TEXT[str(kind)])())
    return column.view(pa.binary(kind.byte_width)) if pa.types.is_decimal(kind) else column


def _source(path: Place) -> Any:
    return pa.PythonFile(path.open("rb"), "r") if isinstance(path, Url) else pa.memory_map(str(path))
