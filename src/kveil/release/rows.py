"""Rows handed to a release for an answer: arrays, sparse matrices or frames become numbers in the order of its features.

No message here quotes what a cell holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidType, InvalidValue

Floats = NDArray[np.float64]


def rows_of(X: Any, features: Sequence[str] | None, n_features: int) -> Any:
    """X as a float64 array (n, d), or canonical CSR if it is sparse. Frames are reordered by the names of the features."""
    rows = _from_sparse(X) if hasattr(X, "tocsr") else _from_table(X, features)
    if rows.ndim != 2:
        raise InvalidValue("X must have two dimensions, one row a record. Reshape it: X.reshape(-1, 1) for a single feature.")
    if rows.shape[1] != n_features:
        raise InvalidValue(f"X has {rows.shape[1]} columns and this release has {n_features} features. Pass exactly those.")
    return rows


def _from_sparse(X: Any) -> Any:
    rows = X.tocsr(copy=True).astype(np.float64)
    rows.sum_duplicates()  # and sorts
    return rows


def _from_table(X: Any, features: Sequence[str] | None) -> Floats:
    names = _column_names(X)
    if names is None:
        return _floats(X)
    wanted = names if features is None else list(features)
    if len(set(names)) < len(names):
        raise InvalidValue("the columns of X must have different names. Rename those that are called the same.")
    missing = [name for name in wanted if name not in names]
    if missing:
        shown = ", ".join(f'"{name}"' for name in missing[:10]) + (", ..." if len(missing) > 10 else "")
        raise InvalidValue(
            f"X has no column {shown}, which this release was made with. Rename the columns of X, or pass an array with its "
            "columns in the order of the features."
        )
    columns = [_floats(_column(X, name)) for name in wanted]
    return np.stack(columns, axis=1) if columns else np.empty((len(X), 0))


def _column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a pandas, polars or arrow table; None for anything else."""
    if hasattr(X, "column_names"):
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") and not isinstance(X, np.ndarray) else None


def _column(X: Any, name: Any) -> Any:
    column = X[name]
    if hasattr(column, "iloc") and hasattr(column, "to_numpy") and column.dtype.kind not in "OUSMmc":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)  # nullable integers with gaps have no other way to float
    return column


def _floats(values: Any) -> Floats:
    """Numbers as float64; a masked or missing one is NaN."""
    floats: Floats | None = None
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind not in "cmM":
            with np.errstate(all="ignore"):
                floats = np.ma.filled(array.astype(np.float64), np.nan)
    except (TypeError, ValueError):
        floats = None
    if floats is None:  # out here, so that numpy's message, which quotes a cell, is not kept as the context
        raise InvalidType("X must hold real numbers only. Convert text and dates to numbers, or leave those columns out.")
    return floats
