"""`read`: from whatever the caller has to a source. It opens files and looks at schemas; rows are read later."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.source.arrays import open_array, open_npy, open_npz
from kveil.source.base import Reader, Source
from kveil.source.frames import is_frame, open_frame
from kveil.source.local import LocalSource
from kveil.source.options import DEFAULT_MAX_ROWS, DEFAULT_MEMORY, Options, check_options
from kveil.source.parquet import open_parquet
from kveil.source.sparse import open_sparse
from kveil.source.text import open_csv

_FILES: dict[str, Callable[[Path, Options], Reader]] = {
    ".csv": open_csv,
    ".npy": open_npy,
    ".npz": open_npz,
    ".parquet": open_parquet,
}
_DASK = ("dask", "dask_expr")


def read(
    data: Any,
    *,
    columns: Any = None,
    person: Any = None,
    max_rows_per_person: int = 1,
    memory: Any = DEFAULT_MEMORY,
    max_rows: int = DEFAULT_MAX_ROWS,
    private: bool = False,
) -> Source:
    """A source of rows, from an array, a sparse matrix, a data frame, a file, or a Dask collection.

    data: a NumPy array or list of lists; a SciPy sparse matrix; a pandas, polars, pyarrow or Modin table; the path of a .csv
        (with header), .npy, .npz (array x) or .parquet file, or of a folder of Parquet files; a Dask array or data frame.
    columns: names to use as features, in this order; numbers for arrays. Default: all.
    person: the column of ids of people. Then a person is protected, not a record: of each person at most
        `max_rows_per_person` rows are used, chosen by a hash of their content, and rows without an id are left out.
        This takes about 80 bytes per row, once, and more if ids are text. For arrays it is a column number; lists, which have
        no type, cannot have it. Ids are integers or text; what is neither, and a float from 2**53 on, is a missing id.
    memory: a limit for the blocks of rows in work and those kept between passes, such as "256MB". Tables that are in memory
        already, and the array of a .npz file, are not counted.
    max_rows: a public bound on the number of rows, from which overflow is ruled out; rows are never counted.
    private: a mark that these rows must not be looked at. `kveil.plan` and `kveil.compare`, which show what rows hold, refuse a
        marked source, as they refuse one with a person; a private fit takes it like any other. Not marking rows makes them no
        less private.

    >>> source = read([[0.0, 1.0], [2.0, 3.0]], columns=[1])
    >>> source.n_columns
    1
    """
    if isinstance(data, Source):
        given = (columns, person, max_rows_per_person, memory, max_rows, private)
        if given != (None, None, 1, DEFAULT_MEMORY, DEFAULT_MAX_ROWS, False):
            raise InvalidValue("this is a source already, and its options were fixed when it was made. Pass the data itself.")
        return data
    options = check_options(columns, person, max_rows_per_person, memory, max_rows, private)
    if type(data).__module__.split(".")[0] in _DASK:
        from kveil.source.dask_source import open_dask

        return open_dask(data, options)
    return LocalSource(_open(data, options), options)


def _open(data: Any, options: Options) -> Reader:
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data), options)
    if issparse(data):
        return open_sparse(data, options)
    if is_frame(data):
        return open_frame(data, options)
    if isinstance(data, list | tuple) or hasattr(data, "__array__"):
        return open_array(data, options)
    raise InvalidType(
        f"cannot read rows from an object of type {type(data).__name__}. Pass an array, a sparse matrix, a data frame, a Dask "
        "collection, or the path of a .csv, .npy, .npz or .parquet file."
    )


def _open_path(path: Path, options: Options) -> Reader:
    if not path.exists():
        raise SourceError(f"there is no file {path}. Pass the path of a .csv, .npy, .npz or .parquet file, or the rows.")
    open_file = open_parquet if path.is_dir() else _FILES.get(path.suffix.lower())
    if open_file is None:
        raise SourceError(f"{path} is of no known kind. Pass a .csv, .npy, .npz or .parquet file, or a folder of the last.")
    return open_file(path, options)
