"""Ids become one of three types, one by one: 64-bit integers with or without sign, or bytes.

Which of them is fixed by the schema. An id that does not fit its type exactly is missing: rounded, it could be another's.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TEXT, SIGNED, UNSIGNED = "text", "int64", "uint64"

_TYPES = {TEXT: pa.large_binary(), SIGNED: pa.int64(), UNSIGNED: pa.uint64()}
_RANGES = {SIGNED: (-(2**63), 2**63 - 1), UNSIGNED: (0, 2**64 - 1)}
_ROUNDED = 2**53  # from here on a float64 may stand for several whole numbers


def kind_of_number(dtype: Any) -> str:
    """The kind of ids of an array or column of this type of numbers; floats hold signed integers, if anything."""
    return UNSIGNED if dtype.kind == "u" and dtype.itemsize == 8 else SIGNED


def kind_of_arrow(type_: Any) -> str | None:
    """The kind of ids of an arrow column; None if its values do not compare exactly."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_integer(type_):
        return UNSIGNED if pa.types.is_uint64(type_) else SIGNED
    return TEXT if str(type_) in ("string", "large_string", "string_view") else None


def from_array(column: NDArray[Any], kind: str) -> Any:
    """Ids in a NumPy column of any type; masked ones are missing, and so are floats that are not whole or may be rounded."""
    missing, values = np.ma.getmaskarray(column), np.ma.getdata(column)
    if values.dtype.kind in "OUS":
        return from_objects(np.ma.array(values, dtype=object, mask=missing).tolist(), kind)  # None where masked
    if kind == TEXT or values.dtype.kind not in "biuf":
        return pa.nulls(len(values), _TYPES[kind])
    if values.dtype.kind == "f":
        fits = _is_whole(values)
        values, missing = np.where(fits, values, 0).astype(np.int64), missing | ~fits
    if values.dtype.kind != "b":
        low, high = _RANGES[kind]
        missing = missing | (values < low) | (values > high)
    return pa.array(values.astype(kind), mask=missing)


def from_arrow(column: Any, kind: str) -> Any:
    """Ids in an arrow column of any type, as one array of the type of their kind."""
    if isinstance(column, pa.ChunkedArray):  # chunk by chunk, since short offsets could overflow in one
        return pa.concat_arrays([from_arrow(chunk, kind) for chunk in column.chunks] or [pa.array([], _TYPES[kind])])
    if pa.types.is_dictionary(column.type):
        return from_arrow(column.dictionary, kind).take(column.indices)
    found = kind_of_arrow(column.type)
    if found == TEXT:
        column = pc.cast(column, _TYPES[TEXT])
    if found == kind:
        return pc.cast(column, _TYPES[kind])
    may_fit = found is not None or pa.types.is_floating(column.type)
    return from_objects(column.to_pylist(), kind) if may_fit else pa.nulls(len(column), _TYPES[kind])


def from_objects(values: Iterable[Any], kind: str) -> Any:
    """Ids from Python objects: of kind text whatever is a string, of the others whole numbers and their digits."""
    if kind == TEXT:
        texts = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None for value in values]
        return pa.array(texts, _TYPES[kind])
    low, high = _RANGES[kind]
    found = (_whole(value) for value in values)
    return pa.array([value if value is not None and low <= value <= high else None for value in found], _TYPES[kind])


def _is_whole(values: NDArray[Any]) -> NDArray[np.bool_]:
    limit = min(_ROUNDED, 2 ** (np.finfo(values.dtype).nmant + 1))  # float32 and float16 round earlier
    with np.errstate(all="ignore"):  # a signalling NaN would warn
        fits: NDArray[np.bool_] = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < limit)
    return fits


def _whole(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, float):
        number = float(value)  # not NumPy's, which warns
        return int(number) if abs(number) < _ROUNDED and number.is_integer() else None
    try:
        return int(value) if isinstance(value, Integral | str | bytes) else None
    except ValueError:  # text that is no number
        return None
