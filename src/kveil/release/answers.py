"""What released centres answer to whoever holds rows: the nearest centre, and how far all of them are.

Models and releases share these functions, so both give the same answer for the same row. Answers are functions of rows
and therefore not private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.arrays import Bools, Floats
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.space.column_box import ColumnBox
from kveil.space.euclidean import BLOCK, Centers, Scaling, assign, clip, units
from kveil.space.unit_ball import UnitBall, cosine_distances, nearest_directions


def labels(rows: Any, centers: Floats, domain: Box | Ball, scaling: Scaling = None) -> NDArray[np.int32]:
    """The nearest centre of every row on the grid of the domain, ties to the lowest index. Rows are dense or canonical CSR.

    >>> labels(np.array([[0.9], [0.1], [7.0]]), np.array([[0.0], [1.0]]), Box([0.0], [1.0]))
    array([1, 0, 1], dtype=int32)
    """
    if isinstance(domain, UnitBall):
        return nearest_directions(rows, centers, domain)
    codes = domain.encode_sparse(rows) if hasattr(rows, "indptr") else domain.encode(rows)
    return assign(codes, Centers.of(centers, domain, scaling))


def distances(rows: Any, centers: Floats, domain: Box | Ball, scaling: Scaling = None) -> Floats:
    """Euclidean distances of clipped rows to every centre; with scaling="bounds" in half-widths of the bounds. Where rows are
    directions: 1 minus their cosine.

    >>> distances(np.array([[3.0, 9.0]]), np.array([[0.0, 1.0]]), Box([0.0, 0.0], [5.0, 5.0]))
    array([[5.]])
    """
    if isinstance(domain, UnitBall):
        return cosine_distances(rows, centers, domain)
    found = np.empty((rows.shape[0], len(centers)))
    whole = 2.0 ** np.floor(np.log2(domain.half.max()))  # a power of two costs no precision; without it squares could overflow
    unit = units(domain, scaling) if scaling == "bounds" else whole
    for start in range(0, len(found), BLOCK):
        block = rows[start : start + BLOCK]
        inside = clip(domain, block.toarray() if hasattr(block, "indptr") else block)
        for place, center in enumerate(centers):
            found[start : start + BLOCK, place] = np.sqrt((((inside - center) / unit) ** 2).sum(axis=1))
    return found if scaling == "bounds" else found * whole


def domain_of(parameters: Mapping[str, Any], n_features: int) -> Box | Ball:
    """The public domain that `parameters` describe: `bounds`, or `radius` and perhaps `center`, or a `metric` of directions;
    `bits` if not 16."""
    bounds, center, radius = (parameters.get(name) for name in ("bounds", "center", "radius"))
    bits = parameters.get("bits") or 16
    domain: Box | Ball | None = None
    try:
        if bounds is not None:
            low, high = (_spread(end, n_features) for end in bounds)
            is_level, fill = _is_level(parameters, n_features), _fill(parameters)
            domain = Box(low, high, bits)
            if is_level.any() or fill is not None:
                domain = ColumnBox(low, high, bits, is_level, fill)
        elif radius is not None:
            domain = Ball(_spread(0.0 if center is None else center, n_features), float(radius), bits)
        elif parameters.get("metric") == "cosine":
            domain = UnitBall(n_features, bits)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        domain = None
    if domain is None:
        raise InvalidValue(
            "this release does not say in which domain its centres live, so rows cannot be clipped as they were when it was "
            "made. Its parameters need bounds, or center and radius, that fit its features."
        )
    return domain


def _is_level(parameters: Mapping[str, Any], n_features: int) -> Bools:
    """Which columns stand for levels of categories."""
    found = np.zeros(n_features, dtype=np.bool_)
    for block in parameters.get("categories", ()):
        found[block["first"] : block["first"] + len(block["levels"])] = True
    return found


def _fill(parameters: Mapping[str, Any]) -> Floats | None:
    """What missing cells count as, where they were filled with released means."""
    if parameters.get("missing") != "mean":
        return None
    told = parameters["scaled_by"]
    middle = np.mean(np.array(told["bounds"], dtype=np.float64), axis=0)
    mean = np.array(told["mean"], dtype=np.float64)  # None, in columns of levels, becomes NaN
    return np.where(np.isnan(mean), middle, mean)


def scaling_of(parameters: Mapping[str, Any]) -> Scaling:
    """How distance was measured: None for the units of the data, or "bounds"."""
    return "bounds" if parameters.get("scaling") == "bounds" else None


def _spread(value: ArrayLike, n_features: int) -> Floats:
    numbers = np.array(value, dtype=np.float64)
    return np.array(np.broadcast_to(numbers, (n_features,)))


def rows_of(X: Any, features: Sequence[str] | None, n_features: int) -> Any:
    """X as a float64 array (n, d), or canonical CSR if it is sparse. Frames are reordered by the names of the features."""
    if hasattr(X, "raw_blocks"):  # a source, which has made its rows ready
        rows = _from_source(X, features)
    else:
        rows = _from_sparse(X) if hasattr(X, "tocsr") else _from_table(X, features)
    if rows.ndim != 2:
        raise InvalidValue("X must have two dimensions, one row per record. Reshape it: X.reshape(-1, 1) for a single feature.")
    if rows.shape[1] != n_features:
        raise InvalidValue(f"X has {rows.shape[1]} columns and this release has {n_features} features. Pass exactly those.")
    return rows


def _from_source(X: Any, features: Sequence[str] | None) -> Any:
    if None not in (X.names, features) and tuple(X.names) != tuple(features or ()):
        raise InvalidValue("the columns of this source are not those that the release was made with. Read them in that order.")
    blocks = list(X.raw_blocks())
    if X.is_sparse:
        from scipy.sparse import vstack

        return vstack(blocks, format="csr")
    return np.concatenate([np.empty((0, X.n_columns)), *blocks])


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
