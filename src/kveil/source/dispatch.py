"""`read`: from whatever the caller has to a source. It opens files and looks at schemas; rows are read later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from scipy.sparse import issparse

from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.source.arrays import open_array, open_npy, open_npz
from kveil.source.base import Reader, Source
from kveil.source.feather import open_feather
from kveil.source.frames import is_frame, open_frame
from kveil.source.intake import Choice
from kveil.source.local import LocalSource
from kveil.source.options import DEFAULT_MAX_ROWS, DEFAULT_MEMORY, Options, check_options
from kveil.source.parquet import open_parquet
from kveil.source.places import PASS, Url, is_place, kind_of, places
from kveil.source.prepare import plan as planned
from kveil.source.several import joined
from kveil.source.sparse import open_sparse
from kveil.source.text import open_csv


class OfColumns(Reader, Protocol):
    """A reader of chosen columns."""

    choice: Choice


_FILES: dict[str, Callable[[Any, Options], OfColumns]] = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), open_csv),
    **dict.fromkeys((".feather", ".arrow"), open_feather),
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
    categories: Mapping[Any, Sequence[Any]] | None = None,
    category_weight: float = 1.0,
    missing: str | Mapping[Any, Any] = "middle",
    weight: Any = None,
    private: bool = False,
    delimiter: str | None = None,
) -> Source:
    """A source of rows, from an array, a sparse matrix, a data frame, files, or a Dask collection.

    Parameters
    ----------
    data : table, path or Source
        A NumPy array or list of lists; a SciPy sparse matrix; a pandas, polars, pyarrow or Modin table; a Dask array or
        data frame; or files. A file is a .csv or .tsv with a header (.csv.gz and .tsv.gz too), .parquet, .feather or
        .arrow, .npy, or .npz (array x); a folder of Parquet files is one, too. A list of paths, or a pattern such as
        "2024-*.csv", is one table: in the order of the list, or by name. All files must be of one kind and have the same
        columns. A URL such as "s3://bucket/rows.parquet" is opened by fsspec, if it is installed; arrays are read from
        this machine only.
    columns : list, optional
        Names to use as features, in this order; numbers for arrays. Default: all.
    person : column, optional
        The column of ids of people. Then a person is protected, not a record: of each person at most
        `max_rows_per_person` rows are used, chosen by a hash of their content, and rows without an id are left out. This
        takes about 80 bytes per row, once, and more if ids are text. For arrays it is a column number; lists, which have
        no type, cannot have it. Ids are integers or text; what is neither, and a float from 2**53 on, is a missing id. In
        a sparse matrix an id of 0, which is not stored, is a missing one too.
    max_rows_per_person : int, default 1
        How many rows of a person are used at most. Noise is so many times as wide.
    memory : str or int, default "256MB"
        A limit for the blocks of rows in work and those kept between passes, such as "256MB". Tables that are in memory
        already, and the array of a .npz file, are not counted.
    max_rows : int, default 2**40
        A public bound on the number of rows, from which overflow is ruled out; rows are never counted.
    categories : dict, optional
        {column: (level, ...)}, public levels of columns of text, or of numbers. Such a column becomes one per level,
        called "sex=female", and two levels are `category_weight` apart, which no scaling changes. What is no level is the
        middle of all of them, and so is an empty cell unless `missing` says otherwise. Bounds are for the columns of
        numbers alone. Levels read off the rows are not public: give those that the column can hold. docs/categories.md
    category_weight : float, default 1.0
        How far apart two levels are.
    missing : str or dict, default 'middle'
        What becomes of a cell that is missing, infinite, or text in a column of numbers: "middle" (its row counts as the
        middle of the bounds), "drop" (its row is left out), {column: public value or level} (it is filled, cells of other
        columns as with "middle"), or "mean" (it is filled with a released mean; needs scaling="private"). Row by row, so
        free.
    weight : column, optional
        The column of weights of rows: a row of weight 3 is three equal rows. Weights are rounded down; a missing one, or
        one below 1, leaves the row out. It needs `person`, and all that a person's rows weigh together is at most
        `max_rows_per_person`, which is then at most 100.
    delimiter : str or None
        What stands between cells of a .csv or .tsv; by default a comma or a tab. A header that holds another one more
        often is refused, with a hint, because all its rows would count as missing.
    private : bool, default False
        A mark that these rows must not be looked at. `kveil.plan` and `kveil.compare`, which show what rows hold, refuse
        a marked source, as they refuse one with a person; a private fit takes it like any other. Not marking rows makes
        them no less private.

    Examples
    --------
    >>> source = read([[0.0, 1.0], [2.0, 3.0]], columns=[1])
    >>> source.n_columns
    1

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31.0, None], "sex": ["female", "male"]})
    >>> read(table, categories={"sex": ("female", "male")}, missing={"age": 40}).names
    ('age', 'sex=female', 'sex=male')
    """
    if isinstance(data, Source):
        given = (
            columns, person, max_rows_per_person, memory, max_rows, categories, category_weight, missing, weight, private,
            delimiter,
        )  # fmt: skip
        if given != (None, None, 1, DEFAULT_MEMORY, DEFAULT_MAX_ROWS, None, 1.0, "middle", None, False, None):
            raise InvalidValue("this is a source already, and its options were fixed when it was made. Pass the data itself.")
        return data
    options = check_options(
        columns, person, max_rows_per_person, memory, max_rows, categories, category_weight, missing, weight, private, delimiter
    )
    if type(data).__module__.split(".")[0] in _DASK:
        from kveil.source.dask_source import open_dask

        return open_dask(data, options)
    reader = _open(data, options)
    plan = planned(reader.choice, options)
    return LocalSource(plan.wrap(reader), options, plan.blocks)


AS_TABLE = ("to_arrow_table", "read_all")  # of relations of DuckDB; of streams of Arrow, which can be read once


def _open(data: Any, options: Options) -> OfColumns:
    if is_place(data):
        return _open_files(places(data), options)
    if options.delimiter is not None:
        raise InvalidValue("delimiter is for .csv and .tsv files, and this is a table already. Leave it out.")
    if issparse(data):
        return open_sparse(data, options)
    if is_frame(data):
        return open_frame(data, options)
    if isinstance(data, list | tuple) or hasattr(data, "__array__"):
        return open_array(data, options)
    hint = next((f" It has .{call}(): pass what that returns." for call in AS_TABLE if hasattr(data, call)), "")
    raise InvalidType(
        f"cannot read rows from an object of type {type(data).__name__}. Pass an array, sparse matrix, data frame or Dask "
        f"collection, or the path of a .csv, .tsv, .parquet, .feather, .npy or .npz file.{hint}"
    )


def _open_files(files: Sequence[Any], options: Options) -> OfColumns:
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise SourceError(f"the files are of several kinds: {', '.join(sorted(kinds))}. As one table all must be of one kind.")
    (kind,) = kinds
    if options.delimiter is not None and not kind.startswith((".csv", ".tsv")):
        raise InvalidValue(f"delimiter is for .csv and .tsv files, and this is {kind}. Leave it out.")
    reader: OfColumns = joined([_FILES[kind](file, options) for file in files])
    return reader


def _kind(file: Any) -> str:
    if not file.exists():
        raise SourceError(f"there is no file {file}. {PASS}, or the rows.")
    kind = ".parquet" if file.is_dir() else kind_of(file)
    if kind not in _FILES:
        raise SourceError(f"{file} is of no known kind. {PASS}, or a folder of Parquet files.")
    if isinstance(file, Url) and kind in (".npy", ".npz"):
        raise SourceError(f"{file} is an array, and arrays are read from this machine only. Copy it, or write Parquet.")
    return kind
