"""The centres as a table in a file: Parquet or CSV, the same numbers to the last bit."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kveil.release.place import attempt, damaged

if TYPE_CHECKING:
    from kveil.release.release import Release

FILES = {"parquet": "centers.parquet", "csv": "centers.csv"}

Table = list[NDArray[Any]]  # one array a column


def column_names(release: Release) -> tuple[str, ...]:
    """The names of the columns: the features (x0, x1, ... if unnamed) or `index`; then `weight`, if released.

    If a feature is called `weight` itself, the weights are called `kveil_weight`, with one more underscore while taken.
    """
    if release.n_features is None:
        names: tuple[str, ...] = ("index",)
    else:
        names = release.features or tuple(f"x{place}" for place in range(release.n_features))
    if release.weights is None:
        return names
    weight = "weight" if "weight" not in names else "kveil_weight"
    while weight in names:
        weight += "_"
    return (*names, weight)


def write_table(release: Release, format: str) -> bytes:
    """The file that holds the centres and weights of `release`."""
    columns: Table = [release.centers] if release.n_features is None else list(release.centers.T)
    if release.weights is not None:
        columns.append(release.weights)
    return _to_parquet(columns, column_names(release)) if format == "parquet" else _to_csv(columns, column_names(release))


def read_table(data: bytes, file: str, names: tuple[str, ...], shape: tuple[int, ...]) -> Table:
    """The columns of a file: float64 each, or int64 for an index; refused unless names, types and length are as stated."""
    types: list[np.dtype[Any]] = [np.dtype(np.float64)] * len(names)
    if len(shape) == 1:
        types[0] = np.dtype(np.int64)
    read = _from_parquet if file == FILES["parquet"] else _from_csv
    columns = attempt(lambda: read(data, names, shape[0], types), f"{file} does not hold the table that release.json describes")
    if not all(np.isfinite(column).all() for column in columns):
        raise damaged(f"{file} holds a number that is not finite")
    return columns


def _to_parquet(columns: Table, names: tuple[str, ...]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array(np.ascontiguousarray(column)) for column in columns], names=list(names))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", use_dictionary=False)  # noisy digits do not compress
    return sink.getvalue()


def _from_parquet(data: bytes, names: tuple[str, ...], k: int, types: list[np.dtype[Any]]) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data))
    fields = [(field.name, field.type) for field in file.schema_arrow]
    if file.metadata.num_rows != k or fields != [(n, pa.from_numpy_dtype(t)) for n, t in zip(names, types, strict=True)]:
        raise ValueError  # before it is unpacked to whatever size it claims
    table = file.read(use_threads=False)
    if table.num_rows != k or any(column.null_count for column in table.columns):
        raise ValueError
    return [column.to_numpy() for column in table.columns]


def _to_csv(columns: Table, names: tuple[str, ...]) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")  # names quoted, whatever they hold
    writer.writerow(names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))  # floats by repr, which reads back exactly
    return sink.getvalue().encode()


def _from_csv(data: bytes, names: tuple[str, ...], k: int, types: list[np.dtype[Any]]) -> Table:
    header, *rows = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    if tuple(header) != names or len(rows) != k:
        raise ValueError
    read = [int if kind == np.int64 else float for kind in types]
    cells = [[parse(text) for parse, text in zip(read, row, strict=True)] for row in rows]
    return [np.array(column, dtype=kind) for column, kind in zip(zip(*cells, strict=True), types, strict=True)]
