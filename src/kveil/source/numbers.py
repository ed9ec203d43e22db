"""Cells become float64, one by one: what a cell turns into depends on that cell alone. What is no number becomes NaN."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kveil.arrays import Floats


def from_array(values: NDArray[Any]) -> Floats:
    """Numbers of any width as float64; masked entries are NaN. A longdouble beyond float64 becomes infinite, silently."""
    if values.dtype.kind not in "biuf":
        return from_objects(values) if values.dtype.kind in "OUS" else np.full(values.shape, np.nan)
    with np.errstate(all="ignore"):
        floats = values.astype(np.float64, copy=False)
        return np.ma.filled(floats, np.nan) if isinstance(floats, np.ma.MaskedArray) else np.asarray(floats)


def object_kinds(values: NDArray[Any]) -> str:
    """What an array of Python objects holds: "numbers", "complex" or "other"."""
    types = set(map(type, values.ravel().tolist()))
    if any(issubclass(kind, complex | np.complexfloating) for kind in types):
        return "complex"
    real = (Real, Decimal, np.number, np.bool_)
    return "numbers" if all(issubclass(kind, real) or _is_missing(kind) for kind in types) else "other"


def from_objects(values: NDArray[Any]) -> Floats:
    """Python numbers as float64: None is NaN, and so is whatever has no float, such as a signalling NaN."""
    return from_list(values.ravel().tolist()).reshape(values.shape)


def from_list(values: list[Any]) -> Floats:
    """A column of Python objects as float64, by the same rule; text that says a number is that number."""
    with np.errstate(all="ignore"):
        return np.array([_from_object(value) for value in values], dtype=np.float64)


def from_arrow(column: Any) -> Floats:
    """An arrow column of booleans, integers, floats or decimals; null is NaN, and large integers are rounded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # older pyarrow keeps an empty one chunked
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.type != pa.float64():
        column = pc.cast(column, pa.float64(), safe=False)  # safe casts raise at integers above 2**53, quoting them
    floats: Floats = column.to_numpy(zero_copy_only=False)
    return floats


def from_text(column: Any) -> Floats:
    """Decimal numbers written as text, blanks around them allowed; anything else is NaN.

    One cast for the column if all of it parses. Otherwise halves are tried, and halves of those, so that every cell is
    judged by the same parser whether or not another cell is broken.
    """
    trimmed = pc.ascii_trim_whitespace(column)
    trimmed = pc.if_else(pc.equal(trimmed, ""), None, trimmed)  # null casts to null, so empty cells do not cost a search
    whole = _parse(trimmed)
    if whole is None:
        coded = trimmed.dictionary_encode()  # broken cells are often the same word over and over
        whole = _parse_halves(coded.dictionary).take(coded.indices)
    floats: Floats = whole.to_numpy(zero_copy_only=False)
    return floats


def _is_missing(kind: type) -> bool:
    return kind in (type(None), type(np.ma.masked)) or kind.__name__ == "NAType"  # the latter is pandas.NA


def _from_object(value: Any) -> float:
    if not isinstance(value, Real | Decimal | np.bool_ | str | bytes):  # float would warn of some that it can take
        return np.nan
    try:
        return float(value)
    except Exception:  # whatever a number of the caller's own making may raise
        return np.nan


def _parse(texts: Any) -> Any:
    try:
        return pc.cast(texts, pa.float64())
    except pa.ArrowException:  # quotes the cell
        return None


def _parse_halves(texts: Any) -> Any:
    found = _parse(texts)
    if found is not None:
        return found
    if len(texts) == 1:
        return pa.nulls(1, pa.float64())
    middle = len(texts) // 2
    return pa.concat_arrays([_parse_halves(texts.slice(0, middle)), _parse_halves(texts.slice(middle))])
