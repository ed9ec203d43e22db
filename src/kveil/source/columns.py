"""A column of a data frame: what its type allows, its cells as floats, and its ids. Of rows no type is inferred.

A pandas column of objects says nothing about what it holds, and narwhals calls it by its first rows; here it is asked for
its own type. Cells are taken by whatever type a column has, since a partition of a Dask frame need not keep to the one
that was announced.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from kveil.arrays import Floats
from kveil.source import ids
from kveil.source import numbers as cells

_TOO_WIDE = (nw.Int128, nw.UInt128)  # for arrow, and for exact ids
_OBJECT = np.dtype(object)


def refusal(column: Any, may_look: bool) -> str | None:
    """Why a column cannot be a feature: its type, or None if it holds numbers. Objects are looked through, if allowed."""
    if _is_number(column) or _is_missing(column):
        return None
    if may_look and (column.dtype == nw.Object or _is_object(column)):
        kind = cells.object_kinds(column.to_numpy())
        return {"numbers": None, "complex": "complex"}.get(kind, "objects that are not all numbers")
    return type_name(column)


def id_kind(column: Any) -> str | None:
    """The kind of ids in a column, by its declared type; None if they would not compare exactly."""
    if column.implementation.is_pandas_like():
        return _pandas_id_kind(column.to_native().dtype)
    if column.implementation.is_pyarrow():
        return ids.kind_of_arrow(column.to_native().type)
    if column.dtype.is_integer() and column.dtype not in _TOO_WIDE:
        return ids.UNSIGNED if column.dtype == nw.UInt64 else ids.SIGNED
    return ids.TEXT if column.dtype in (nw.String, nw.Categorical, nw.Enum) else None


def text_refusal(column: Any) -> str | None:
    """Why a column cannot hold levels that are text: its type, or None if it may hold text."""
    return None if id_kind(column) == ids.TEXT or _is_missing(column) else type_name(column)


def type_name(column: Any) -> str:
    dtype = column.dtype
    return str(column.to_native().dtype) if dtype == nw.Unknown and column.implementation.is_pandas_like() else str(dtype)


def floats(column: Any) -> Floats:
    """The cells of a column as float64, one by one; what is no number becomes NaN."""
    if not _is_number(column):
        return cells.from_list(_objects(column))
    if not column.implementation.is_pandas_like():
        return cells.from_arrow(column.to_arrow())
    with np.errstate(all="ignore"):
        numbers: Floats = column.to_native().to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def exact_ids(column: Any, kind: str) -> Any:
    """The ids in a column as an arrow array of the type of their kind; what does not fit it exactly is null."""
    if not column.implementation.is_pandas_like():
        return ids.from_arrow(column.to_arrow(), kind)
    native = column.to_native()
    if hasattr(native.dtype, "categories"):
        codes = native.cat.codes.to_numpy()
        return ids.from_objects(list(native.dtype.categories), kind).take(pa.array(codes, mask=codes < 0))
    if column.dtype.is_integer() or _is_arrow(native.dtype):
        return ids.from_arrow(column.to_arrow(), kind)
    if column.dtype.is_float() and isinstance(native.dtype, np.dtype):
        return ids.from_array(native.to_numpy(), kind)
    return ids.from_objects(_objects(column), kind)


def _is_number(column: Any) -> bool:
    dtype = column.dtype
    return (dtype.is_numeric() or dtype == nw.Boolean) and dtype not in _TOO_WIDE


def _is_missing(column: Any) -> bool:
    """Whether a column has the type of nothing, which libraries choose where no row has a value: all of it is missing."""
    return str(getattr(column.to_native(), "type", getattr(column.to_native(), "dtype", ""))).lower() in ("null", "null[pyarrow]")


def _is_object(column: Any) -> bool:
    return bool(column.implementation.is_pandas_like() and column.to_native().dtype == _OBJECT)


def _is_arrow(dtype: Any) -> bool:
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", None) == "pyarrow"


def _objects(column: Any) -> list[Any]:
    if column.implementation.is_pandas_like():
        return list(column.to_native().astype(object))
    values: list[Any] = column.to_list()
    return values


def _pandas_id_kind(dtype: Any) -> str | None:
    if hasattr(dtype, "categories"):
        return _category_kind(dtype.categories)
    if hasattr(dtype, "pyarrow_dtype"):
        return ids.kind_of_arrow(dtype.pyarrow_dtype)
    if dtype.kind in "iu" and hasattr(dtype, "itemsize"):
        return ids.kind_of_number(dtype)
    # Whether a column of objects holds strings only its rows could tell: it is taken for text, and all else in it is missing.
    return ids.TEXT if dtype == _OBJECT or dtype.name in ("str", "string") else None


def _category_kind(categories: Any) -> str | None:
    """The kind of ids that are categories. Older pandas keeps text as objects: those are looked through, before any charge."""
    if categories is None or "__UNKNOWN_CATEGORIES__" in list(categories):  # Dask has not looked
        return None
    if categories.dtype == _OBJECT and not all(isinstance(name, str) for name in categories):
        return None
    return _pandas_id_kind(categories.dtype)
