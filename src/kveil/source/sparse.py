"""Rows in a SciPy sparse matrix of any format, handed on as canonical CSR. The caller's matrix is never changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kveil.arrays import Floats
from kveil.errors import SourceError
from kveil.source import ids
from kveil.source import numbers as cells
from kveil.source.arrays import check_array, row_ranges
from kveil.source.base import RawRows
from kveil.source.guard import quietly
from kveil.source.intake import Choice, refuse_objects
from kveil.source.options import Options


class SparseReader:
    """Reads a sparse matrix block by block; blocks are copies."""

    is_sparse = True
    names: tuple[str, ...] | None = None

    def __init__(self, matrix: Any, choice: Choice) -> None:
        self.choice = choice
        self.n_columns = len(choice.features)
        self.width = min(self.n_columns, 16 + 2 * matrix.nnz // max(1, matrix.shape[0]))
        self._matrix = matrix

    @cached_property
    def _csr(self) -> Any:
        return _as_csr(self._matrix)

    def parts(self, rows: int) -> Sequence[tuple[int, int]]:
        return row_ranges(self._csr.shape[0], rows)

    def blocks(self, part: tuple[int, int], rows: int, with_ids: bool) -> Iterator[RawRows]:
        starts = self._csr.indptr[part[0] : part[1] + 1]
        stored = slice(starts[0], starts[-1])
        features = self.choice.features
        people = self._people(starts - starts[0], self._csr.data[stored], self._csr.indices[stored]) if with_ids else None
        values, columns = cells.from_array(self._csr.data[stored]).copy(), self._csr.indices[stored].copy()
        is_nowhere = (columns < 0) | (columns >= self._csr.shape[1])  # SciPy lets such an index through
        values[is_nowhere], columns[is_nowhere] = np.nan, features[0]  # its row counts as the centre, like any bad one
        block = _canonical(values, columns, starts - starts[0], self._csr.shape[1])
        yield RawRows(block if features == tuple(range(block.shape[1])) else _canonical_of(block[:, list(features)]), people)

    def _people(self, starts: NDArray[Any], values: NDArray[Any], columns: NDArray[Any]) -> Any:
        """Ids, in the type of the matrix. One that is not stored, is 0, or is stored twice is missing."""
        owner, is_id = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), columns == self.choice.person
        found = np.zeros(len(starts) - 1, dtype=values.dtype)
        found[owner[is_id]] = values[is_id]
        is_missing = (np.bincount(owner[is_id], minlength=len(found)) != 1) | (found == 0)
        return ids.from_array(np.ma.array(found, mask=is_missing), self.choice.id_kind)


def open_sparse(matrix: Any, options: Options) -> SparseReader:
    """A reader of a SciPy sparse matrix or array."""
    if options.categories or options.weight is not None or options.missing != "middle":
        raise SourceError(
            "categories, weight and missing are for dense tables: a sparse row has no cell of its own for every column. Prepare "
            "sparse rows beforehand, each by itself."
        )
    if matrix.dtype.kind == "O":
        refuse_objects("a sparse")
    if matrix.format == "csc":  # turning it into rows would read and write wherever its indices point
        quietly(lambda: matrix.check_format(full_check=True), "the sparse matrix is damaged: an index points outside of it.")
    return SparseReader(matrix, check_array(matrix.ndim, matrix.shape[-1:], matrix.dtype, options))


def _as_csr(matrix: Any) -> Any:
    """CSR with entries in the order of the original: duplicates are neither sorted nor summed yet.

    SciPy would do both, but by a sort of the whole matrix that keeps the order of equal entries or not depending on other
    rows; summed in another order, they might round differently, and one row would move another.
    """
    if matrix.format in ("csr", "csc"):
        return matrix.tocsr()
    triples = matrix.tocoo(copy=False)
    order = np.argsort(triples.row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(triples.row, minlength=matrix.shape[0]))])
    return csr_array((triples.data[order], triples.col[order], starts), shape=matrix.shape)


def _canonical(values: Floats, columns: NDArray[Any], starts: NDArray[Any], n_columns: int) -> Any:
    """CSR with sorted columns and no duplicates: those are added in the order in which they are stored."""
    n_rows = len(starts) - 1
    owner = np.repeat(np.arange(n_rows), np.diff(starts))
    rising = (np.diff(owner) > 0) | (np.diff(columns) > 0)
    if rising.all():
        return csr_array((values.copy(), columns.copy(), starts), shape=(n_rows, n_columns))
    order = np.lexsort((columns, owner))  # stable
    owner, columns = owner[order], columns[order]
    first = np.concatenate([[True], (np.diff(owner) > 0) | (np.diff(columns) > 0)])
    summed = np.zeros(np.count_nonzero(first))
    with np.errstate(all="ignore"):
        np.add.at(summed, np.cumsum(first) - 1, values[order])
    counts = np.bincount(owner[first], minlength=n_rows)
    return csr_array((summed, columns[first], np.concatenate([[0], np.cumsum(counts)])), shape=(n_rows, n_columns))


def _canonical_of(block: Any) -> Any:
    return _canonical(block.data, block.indices, block.indptr, block.shape[1])
