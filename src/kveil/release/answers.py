"""What released centres answer to whoever holds rows: the nearest centre, and how far all of them are.

Models and releases share these functions, so both give the same answer for the same row. Answers are functions of rows
and therefore not private.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.space.euclidean import BLOCK, Centers, Scaling, assign, clip

Floats = NDArray[np.float64]


def labels(rows: Any, centers: Floats, domain: Box | Ball, scaling: Scaling = None) -> NDArray[np.int32]:
    """The nearest centre of every row on the grid of the domain, ties to the lowest index. Rows are dense or canonical CSR.

    >>> labels(np.array([[0.9], [0.1], [7.0]]), np.array([[0.0], [1.0]]), Box([0.0], [1.0]))
    array([1, 0, 1], dtype=int32)
    """
    codes = domain.encode_sparse(rows) if hasattr(rows, "indptr") else domain.encode(rows)
    return assign(codes, Centers.of(centers, domain, scaling))


def distances(rows: Any, centers: Floats, domain: Box | Ball, scaling: Scaling = None) -> Floats:
    """Euclidean distances of clipped rows to every centre; with scaling="bounds" in half-widths of the bounds.

    >>> distances(np.array([[3.0, 9.0]]), np.array([[0.0, 1.0]]), Box([0.0, 0.0], [5.0, 5.0]))
    array([[5.]])
    """
    found = np.empty((rows.shape[0], len(centers)))
    whole = 2.0 ** np.floor(np.log2(domain.half.max()))  # a power of two costs no precision; without it squares could overflow
    unit = domain.half if scaling == "bounds" else whole
    for start in range(0, len(found), BLOCK):
        block = rows[start : start + BLOCK]
        inside = clip(domain, block.toarray() if hasattr(block, "indptr") else block)
        for place, center in enumerate(centers):
            found[start : start + BLOCK, place] = np.sqrt((((inside - center) / unit) ** 2).sum(axis=1))
    return found if scaling == "bounds" else found * whole


def domain_of(parameters: Mapping[str, Any], n_features: int) -> Box | Ball:
    """The public domain that `parameters` describe: `bounds`, or `radius` and perhaps `center`; `bits` if not 16."""
    bounds, center, radius = (parameters.get(name) for name in ("bounds", "center", "radius"))
    bits = parameters.get("bits") or 16
    domain: Box | Ball | None = None
    try:
        if bounds is not None:
            low, high = bounds
            domain = Box(_spread(low, n_features), _spread(high, n_features), bits)
        elif radius is not None:
            domain = Ball(_spread(0.0 if center is None else center, n_features), float(radius), bits)
    except (TypeError, ValueError, ArithmeticError):
        domain = None
    if domain is None:
        raise InvalidValue(
            "this release does not say in which domain its centres live, so rows cannot be clipped as they were when it was "
            "made. Its parameters need bounds, or center and radius, that fit its features."
        )
    return domain


def scaling_of(parameters: Mapping[str, Any]) -> Scaling:
    """How distance was measured: None for the units of the data, or "bounds"."""
    return "bounds" if parameters.get("scaling") == "bounds" else None


def _spread(value: ArrayLike, n_features: int) -> Floats:
    numbers = np.array(value, dtype=np.float64)
    return np.array(np.broadcast_to(numbers, (n_features,)))
