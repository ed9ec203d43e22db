"""A universe given by its distance matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidType, InvalidValue
from kveil.space.dense import Dense
from kveil.space.universe import MOST_STEPS, Distances, seal

STEPS = 2**22  # about as many steps as a diameter of fractions gets: rounding is below a millionth of it
ROUNDING = 1e-9  # how far, as a share of the largest distance, float noise may break symmetry and the zero diagonal
BLOCK = 256  # rows looked at together


class Precomputed(Dense):
    """A public universe given by the distances of all pairs, (n, n).

    matrix: finite, symmetric, 0 on the diagonal, nothing negative. Whole numbers are kept as they are (an int32 array is not
        even copied, so do not change it afterwards); fractions are rounded up to multiples of `step`, a power of two.

    >>> universe = Precomputed([[0, 2, 5], [2, 0, 4], [5, 4, 0]])
    >>> universe.nearest([0, 2])[0].tolist()
    [0, 0, 1]
    """

    kind = "precomputed"

    def __init__(self, matrix: ArrayLike) -> None:
        given = np.asarray(matrix)
        largest = _check(given)
        self.step = 1.0 if given.dtype.kind in "iu" else _step(given, largest)
        self.matrix = _steps(given, self.step)
        self.n_points = len(self.matrix)
        seal(self.matrix)
        self.diameter = int(self.matrix.max())

    def locations(self) -> NDArray[np.int64]:
        """For every point the smallest point at distance 0."""
        parts = [np.argmax(self.matrix[i : i + BLOCK] == 0, axis=1) for i in range(0, self.n_points, BLOCK)]
        return np.concatenate(parts).astype(np.int64)

    def _between(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        return self.matrix[sources] if targets is None else self.matrix[sources[:, None], targets]

    def _contents(self) -> tuple[Distances]:
        return (self.matrix,)


def _check(matrix: NDArray[np.number]) -> float:
    """The largest distance, once the matrix is known to be one of distances."""
    if matrix.dtype.kind not in "iuf":
        raise InvalidType("matrix must hold numbers: the distance of every pair of points.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InvalidValue("matrix must be square with one row and one column a point, and at least one point.")
    if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        raise InvalidValue(
            "matrix holds NaN or infinity. A distance must be a number: replace infinite ones by a public cap c and use the "
            "minimum of every distance and c, which is a metric again."
        )
    if matrix.min() < 0:
        raise InvalidValue("matrix holds a negative distance.")
    largest = float(matrix.max())
    slack = largest * ROUNDING if matrix.dtype.kind == "f" else 0.0
    if np.diagonal(matrix).max() > slack:
        raise InvalidValue("matrix must have 0 on its diagonal: every point is at distance 0 from itself.")
    for i in range(0, len(matrix), BLOCK):
        rows, columns = matrix[i : i + BLOCK], matrix[:, i : i + BLOCK].T
        if (np.maximum(rows, columns) - np.minimum(rows, columns)).max() > slack:  # unsigned numbers would wrap
            raise InvalidValue(
                "matrix is not symmetric: the distance from u to v differs from that from v to u. Use the larger or the mean "
                "of both, matrix / 2 + matrix.T / 2, if that is meant."
            )
    return largest


def _step(matrix: NDArray[np.number], largest: float) -> float:
    if largest <= MOST_STEPS and (matrix == np.floor(matrix)).all():
        return 1.0
    return float(2.0 ** (np.ceil(np.log2(largest)) - np.log2(STEPS)))


def _steps(matrix: NDArray[np.number], step: float) -> Distances:
    if matrix.dtype.kind in "iu":
        if matrix.max() > MOST_STEPS:
            raise InvalidValue("matrix holds distances above 2**30: use a coarser unit, such as metres instead of millimetres.")
        return np.ascontiguousarray(matrix, dtype=np.int32).view()
    out = np.empty(matrix.shape, dtype=np.int32)
    for i in range(0, len(matrix), BLOCK):  # the larger of both directions: ceilings keep the triangle inequality
        out[i : i + BLOCK] = np.ceil(np.maximum(matrix[i : i + BLOCK], matrix[:, i : i + BLOCK].T).astype(np.float64) / step)
    np.fill_diagonal(out, 0)
    return out
