"""Rows in Parquet files, read row group by row group and batch by batch, so that memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kveil.arrays import Floats
from kveil.errors import SourceError
from kveil.source import ids
from kveil.source import numbers as cells
from kveil.source.base import RawRows
from kveil.source.guard import each_quietly, quietly
from kveil.source.intake import Choice, check_columns, check_levels, check_types, choose, with_ids_of
from kveil.source.levels import Levels
from kveil.source.options import Options
from kveil.source.places import Place, Url, files_in

_INDEX = ("__index_level_", "__null_dask_index__")  # the index of a frame, which pandas and Dask store as a column


class ParquetReader:
    """Reads the chosen columns of one or more Parquet files with the same columns. A part is a row group of a file."""

    is_sparse = False

    def __init__(self, groups: Sequence[tuple[Place, int, int]], choice: Choice) -> None:
        self.choice = choice
        self.names = choice.names
        self.n_columns = self.width = len(choice.features)
        self._groups = groups

    def parts(self, rows: int) -> Sequence[tuple[Place, int, int]]:
        return self._groups

    def sizes(self, parts: Sequence[tuple[Place, int, int]]) -> Sequence[int]:
        return [n_bytes for _, _, n_bytes in parts]

    def blocks(self, part: tuple[Place, int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        path, group, _ = part
        complaint = f"{path} is damaged: a part of it cannot be read. Write the file again."
        wanted = [*self.choice.features, *([self.choice.person] if with_ids else [])]
        with quietly(partial(_open, path), complaint) as file:
            batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=wanted, use_threads=False)
            for batch in each_quietly(batches, complaint):
                yield rows_of_batch(batch, self.choice, with_ids)


def rows_of_batch(batch: Any, choice: Choice, with_ids: bool) -> RawRows:
    """The chosen columns of an arrow batch as floats, and the ids of people."""
    values = np.empty((batch.num_rows, len(choice.features)), order="F")
    for place, name in enumerate(choice.features):
        values[:, place] = _numbers(batch.column(name), choice.levels.get(name))
    return RawRows(values, ids.from_arrow(batch.column(choice.person), choice.id_kind) if with_ids else None)


def open_parquet(path: Any, options: Options) -> ParquetReader:
    """A reader of a .parquet file, or of all those in a folder, by name. Only footers are read now."""
    files = files_in(path)
    schemas, groups = [], []
    for file in files:
        schema, sizes = quietly(partial(_footer, file), f"{file} is no readable Parquet file. Write it again.")
        schemas.append(schema)
        groups += [(file, group, n_bytes) for group, n_bytes in enumerate(sizes)]
    if any(schema.names != schemas[0].names for schema in schemas):
        raise SourceError(f"the Parquet files in {path} have different columns. All must have the same, in the same order.")
    return ParquetReader(groups, check_schemas(schemas, options))


def _footer(path: Place) -> tuple[Any, list[int]]:
    """The schema, and the bytes that each row group says it has."""
    with _open(path) as file:
        groups = range(file.num_row_groups)
        return file.schema_arrow, [max(0, int(file.metadata.row_group(group).total_byte_size)) for group in groups]


def _open(path: Place) -> Any:
    # A buffered stream a column: otherwise whole column chunks are held, and row groups may be as large as the file.
    import pyarrow.parquet as pq  # loads every file system that pyarrow knows, 10 MB, so only for who reads Parquet

    source = path.open("rb") if isinstance(path, Url) else path
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=2**20)


def check_schemas(schemas: Sequence[Any], options: Options) -> Choice:
    """The chosen columns of arrow tables, or a refusal by declared names and types."""
    names = [name for name in schemas[0].names if name in (options.columns or ()) or not name.startswith(_INDEX)]
    check_columns(len(names))
    choice = choose(names, options)
    for schema in schemas:
        held = {name: schema.field(name).type for name in choice.features}
        check_types({name: _refusal(kind) for name, kind in held.items() if not _is_text(name, choice)})
        check_levels(choice, {name: _text_refusal(held[name]) for name in choice.levels})
    if choice.person is None:
        return choice
    types = [schema.field(choice.person).type for schema in schemas]
    kinds = {ids.kind_of_arrow(type_) for type_ in types}
    return with_ids_of(choice, kinds.pop() if len(kinds) == 1 else None, " or ".join(sorted(set(map(str, types)))))


def _numbers(column: Any, levels: Levels | None) -> Floats:
    if levels is None:
        return cells.from_arrow(column)
    return levels.of_text(ids.from_arrow(column, ids.TEXT)) if levels.are_text else levels.of_numbers(cells.from_arrow(column))


def _is_text(name: Any, choice: Choice) -> bool:
    return name in choice.levels and choice.levels[name].are_text


def _text_refusal(kind: Any) -> str | None:
    return None if ids.kind_of_arrow(kind) == ids.TEXT or pa.types.is_null(kind) else str(kind)


def _refusal(kind: Any) -> str | None:
    known = pa.types
    is_number = known.is_floating(kind) or known.is_integer(kind) or known.is_boolean(kind) or known.is_decimal(kind)
    return None if is_number or known.is_null(kind) else str(kind)  # a column of nulls is all missing
