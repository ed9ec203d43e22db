"""A small universe with a distance of one's own: a Python function of two points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isclose
from typing import Any

import numpy as np

from kveil.errors import InvalidType, InvalidValue
from kveil.space.matrix import Precomputed

MOST_POINTS = 4096  # 8 million calls; more are for arrays, not for calls


class Metric(Precomputed):
    """A public universe of at most 4096 points of any kind, with distances by a function of two of them.

    The function is called once per pair, here, on public points only, and is not kept: no private row ever reaches it. Demand
    is therefore given by point number.

    Parameters
    ----------
    points : array-like
        A sequence of whatever the function takes; rows of an array, words, records.
    function : callable
        Symmetric, 0 for equal points, finite, nothing negative.
    truncate : float or None
        A public length that caps every distance; with it the function may return infinity.

    Examples
    --------
    >>> words = ["night", "light", "lit"]
    >>> Metric(words, lambda a, b: len(set(a) ^ set(b))).distances([0]).tolist()
    [[0, 2, 4]]
    """

    kind = "metric"

    def __init__(self, points: Sequence[Any], function: Callable[[Any, Any], float], *, truncate: float | None = None) -> None:
        if not callable(function):
            raise InvalidType("function must be callable: the distance of two points.")
        try:
            listed = list(points)
        except TypeError:
            raise InvalidType("points must be a sequence.") from None
        if not 1 <= len(listed) <= MOST_POINTS:
            raise InvalidValue(
                f"points must be 1 to {MOST_POINTS}: the function is called for every pair. For a larger universe compute the "
                "matrix with arrays and pass it to Precomputed."
            )
        super().__init__(_evaluated(listed, function), truncate=truncate)


def _evaluated(points: list[Any], function: Callable[[Any, Any], float]) -> np.ndarray[Any, Any]:
    """The full matrix from one call a pair; points that the function tells from themselves or from their order are refused."""
    matrix = np.zeros((len(points), len(points)))
    for i, point in enumerate(points):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = _number(function(point, points[j]))
        matrix[i, i] = _number(function(point, point))
    for i in range(1, len(points)):  # both orders, of every point with its neighbour
        turned = _number(function(points[i - 1], points[i]))
        if turned != matrix[i, i - 1] and not isclose(turned, matrix[i, i - 1], rel_tol=1e-9):
            raise InvalidValue("function is not symmetric: function(a, b) differs from function(b, a).")
    return matrix


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidType("function must return a number.") from None
