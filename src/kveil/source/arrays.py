"""Rows in a NumPy array, whether in memory, in a memory-mapped file or in an archive that is loaded when first needed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats
from kveil.errors import InvalidType, SourceError
from kveil.source import ids
from kveil.source import numbers as cells
from kveil.source.base import RawRows
from kveil.source.guard import quietly
from kveil.source.intake import (
    Choice,
    check_columns,
    check_dimensions,
    check_levels,
    choose,
    refuse_complex,
    refuse_objects,
    with_ids_of,
)  # fmt: skip
from kveil.source.options import Options

LONGEST_ROW = 2**24  # bytes of a row in a file without rows
SMALLEST_PACKED = 1100  # bytes that one byte of an archive can stand for, rounded up


class ArrayReader:
    """Reads a 2-d array of numbers; `load` gives the array, once, when rows are first wanted."""

    is_sparse = False
    names: tuple[str, ...] | None = None

    def __init__(self, load: Callable[[], NDArray[Any]], choice: Choice) -> None:
        self.choice = choice
        self.n_columns = self.width = len(choice.features)
        self._load = load

    @cached_property
    def _array(self) -> NDArray[Any]:
        return self._load()

    def parts(self, rows: int) -> Sequence[tuple[int, int]]:
        return row_ranges(len(self._array), rows)

    def blocks(self, part: tuple[int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        block = self._array[part[0] : part[1]]
        features = self.choice.features
        chosen = block if features == tuple(range(block.shape[1])) else block[:, list(features)]
        people = ids.from_array(block[:, self.choice.person], self.choice.id_kind) if with_ids else None
        yield RawRows(_numbers(chosen, self.choice), people)


def _numbers(block: NDArray[Any], choice: Choice) -> Floats:
    values = cells.from_array(block)
    if not choice.levels:
        return values
    columns = [
        choice.levels[name].of_numbers(column) if name in choice.levels else column
        for name, column in zip(choice.features, values.T, strict=True)
    ]
    return np.column_stack(columns)


def row_ranges(n_rows: int, rows: int) -> list[tuple[int, int]]:
    """Ranges of at most `rows` rows, at least one; smaller ones if that leaves something to do for every thread."""
    rows = min(rows, max(2048, -(-n_rows // 8)))
    return [(start, min(start + rows, n_rows)) for start in range(0, max(1, n_rows), rows)]


def open_array(data: Any, options: Options) -> ArrayReader:
    """A reader of an array, a list of lists, or anything else that NumPy can make an array of."""
    if isinstance(data, list | tuple) and options.person is not None:
        raise SourceError(  # NumPy would choose one type for all rows: a single 0.5 would round the ids of everybody
            "Python lists have no type, so ids of people in them may be rounded. Pass a NumPy array with a dtype, or a data "
            "frame, in which columns have types of their own."
        )
    array = _as_array(data)
    choice = check_array(array.ndim, array.shape[-1:], array.dtype, options)
    if array.dtype.kind == "O":
        kind = cells.object_kinds(array)
        if kind == "complex":
            refuse_complex()
        if kind == "other":
            refuse_objects("an array")
        array = cells.from_objects(array)
    return ArrayReader(lambda: array, choice)


def open_npy(path: Path, options: Options) -> ArrayReader:
    """A reader of a .npy file, mapped into memory."""
    complaint = f"{path} cannot be read as a NumPy array: it is damaged, or saved with pickle. Save it again with numpy.save."
    with quietly(partial(path.open, "rb"), f"{path} cannot be opened. Check that it may be read.") as file:
        shape, dtype = quietly(lambda: _header(file, path.stat().st_size), complaint)
    choice = check_array(len(shape), shape[-1:], dtype, options)
    mode: Any = "r" if shape[0] else None  # an empty file cannot be mapped
    array = quietly(lambda: np.load(path, mmap_mode=mode, allow_pickle=False), complaint)
    return ArrayReader(lambda: array, choice)


def open_npz(path: Path, options: Options) -> ArrayReader:
    """A reader of the array `x` of a .npz archive. Only its header is read now; its rows come whole into memory later."""
    complaint = f"{path} cannot be read as a NumPy archive: it is damaged, or saved with pickle. Save it again with numpy.savez."
    with quietly(lambda: zipfile.ZipFile(path), complaint) as archive:
        names = archive.namelist()
        if "x.npy" not in names:
            if {"format.npy", "shape.npy"} <= set(names):
                raise SourceError(
                    f"{path} holds a sparse matrix, as scipy.sparse.save_npz writes it, and files are read as dense tables. "
                    "Pass scipy.sparse.load_npz(path) to fit in Python, or save the rows with numpy.savez(path, x=X.toarray())."
                )
            held = ", ".join(sorted(name.removesuffix(".npy") for name in names)[:50])
            raise SourceError(f"{path} has no array x, only: {held or 'nothing'}. Save the rows with numpy.savez(path, x=rows).")
        size = min(archive.getinfo("x.npy").file_size, SMALLEST_PACKED * path.stat().st_size)
        shape, dtype = quietly(lambda: _header(archive.open("x.npy"), size), complaint)
    choice = check_array(len(shape), shape[-1:], dtype, options)
    return ArrayReader(partial(quietly, partial(_load_x, path), complaint), choice)


def check_array(ndim: int, width: Sequence[int], dtype: np.dtype[Any], options: Options) -> Choice:
    """The chosen columns of an array, from its public side: dimensions, columns and type. The number of rows is not asked for."""
    if dtype.kind == "c":
        refuse_complex()
    if dtype.kind not in "biufO":
        if dtype.kind in "USV" and dtype.names is None:
            refuse_objects("a text array" if dtype.kind in "US" else "an array")
        raise InvalidType(f"an array of type {dtype} holds no numbers. Convert it, or pass a frame and choose columns=[...].")
    check_dimensions(ndim)
    check_columns(width[0])
    choice = choose(range(width[0]), options)
    check_levels(choice, dict.fromkeys(choice.levels, f"{dtype}"))
    if choice.person is None:
        return choice
    return with_ids_of(choice, ids.kind_of_number(dtype) if dtype.kind in "biuf" else None, str(dtype))


def _as_array(data: Any) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        return data  # its masked entries become NaN, block by block
    complaint = "the rows are not a table of numbers: all must have the same length. Pass one number a column."
    if isinstance(data, list | tuple):
        return quietly(lambda: np.asarray([_without_masks(row) for row in data]), complaint)
    return quietly(lambda: np.asarray(data), complaint)


def _without_masks(row: Any) -> Any:
    """The row with NaN for masked cells, of which NumPy would warn, or which it would unmask."""
    if isinstance(row, np.ma.MaskedArray):
        return cells.from_array(row) if row.dtype.kind in "biuf" else row.filled(np.nan)
    if isinstance(row, list | tuple) and type(np.ma.masked) in map(type, row):
        return [np.nan if cell is np.ma.masked else cell for cell in row]
    return row


def _header(file: Any, size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a file of so many bytes. A damaged header may claim any number of columns."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("would need pickle")
    if prod(max(1, n) for n in shape) * dtype.itemsize > max(size, LONGEST_ROW):
        raise ValueError("more than the file holds")
    return shape, dtype


def _load_x(path: Path) -> NDArray[Any]:
    with np.load(path, allow_pickle=False) as archive:
        array: NDArray[Any] = archive["x"]
        return array
