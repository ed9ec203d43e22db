"""Demand that comes as Python objects, read element by element.

NumPy picks one type for all elements of a list: one text among numbers would turn every number into text, and so one row would
change how all others are read. Arrays of numbers have a type of their own, which is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_typed(rows: Any) -> bool:
    """Whether rows are an array of numbers."""
    return isinstance(rows, np.ndarray) and rows.dtype.kind in "iufb"


def listed(rows: Any) -> list[Any]:
    """The elements of a list, series or array; those that are a sequence of one element stand for it."""
    elements = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    return [entry[0] if isinstance(entry, list | tuple) and len(entry) == 1 else entry for entry in elements]


def table(rows: Any, n_columns: int) -> NDArray[np.float64]:
    """Rows (m, n_columns) of Python objects as floats; what is no number is NaN, and so is a row of another length."""
    found = [row if isinstance(row, list | tuple) and len(row) == n_columns else [None] * n_columns for row in _rows(rows)]
    return np.array([[number(value) for value in row] for row in found], dtype=np.float64).reshape(-1, n_columns)


def are_places(rows: Any, n_columns: int) -> NDArray[np.bool_] | None:
    """Which elements of a list are rows of so many values, each by itself; None of what is no list, whose shape is public."""
    if not isinstance(rows, list | tuple):
        return None
    shapes = [(len(row),) if isinstance(row, list | tuple) else getattr(row, "shape", None) for row in rows]
    return np.array([shape == (n_columns,) for shape in shapes], dtype=np.bool_)


def number(value: Any) -> float:
    """A Python number as a float; NaN for anything else."""
    if not isinstance(value, int | float | np.integer | np.floating):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("nan")


def text(value: Any) -> str | None:
    """How a name is written: 7.0 from a column of floats is 7. None for what cannot be written."""
    try:
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    except Exception:  # whatever an object of a row does when it is written, the row is no name
        return None


def _rows(rows: Any) -> list[Any]:
    listed_rows = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    return [row.tolist() if hasattr(row, "tolist") else row for row in listed_rows]
