"""A universe given by its distance matrix."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isinf, isnan
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidType, InvalidValue
from kveil.space.dense import Dense
from kveil.space.universe import MOST_STEPS, STEPS, Distances, capped, power_of_two, seal

Matrix = NDArray[np.number]

ROUNDING = 1e-9  # how far, as a share of the largest distance, float noise may break symmetry and the zero diagonal
ROWS = 256  # rows, or rows and columns, looked at together: a square of them and its mirror image fit a processor's cache


class Precomputed(Dense):
    """A public universe given by the distances of all pairs, (n, n).

    Parameters
    ----------
    matrix : array-like
        Symmetric, finite, 0 on the diagonal, nothing negative. Whole numbers are kept as they are (an int32 array is not
        even copied, so do not change it afterwards); fractions are rounded up to multiples of `step`, a power of two.
    truncate : float or None
        A public length that caps every distance; with it the matrix may hold infinities.

    Notes
    -----
    Whether the triangle inequality holds is tried on a sample of points, and a warning says if not. Privacy and the search work
    all the same, since neither uses it; how good the centres are is promised for metrics only.

    Examples
    --------
    >>> universe = Precomputed([[0, 2, 5], [2, 0, 4], [5, 4, 0]])
    >>> universe.nearest([0, 2])[0].tolist()
    [0, 0, 1]
    """

    kind = "precomputed"

    def __init__(self, matrix: ArrayLike, *, truncate: float | None = None) -> None:
        given, cut = np.asarray(matrix), capped(truncate)
        longest = _checked_longest(given, cut)
        self.step = _step(given, cut, min(longest, cut))
        self.matrix = _steps(given, cut, self.step, longest)
        self.n_points = len(self.matrix)
        self.diameter = int(self.matrix.max())
        seal(self.matrix)
        if _has_shortcuts(self.matrix, slack=0 if given.dtype.kind in "iu" else 1):
            warn(
                "some distances are longer than a way through a third point, so this is no metric. Privacy is not affected; how "
                "good centres are is promised for metrics only. scipy.sparse.csgraph.floyd_warshall(matrix) makes it one.",
                stacklevel=2,
            )

    def locations(self) -> NDArray[np.int64]:
        """For every point the smallest point at distance 0."""
        return np.concatenate([np.argmax(rows == 0, axis=1) for _, rows in _blocks(self.matrix)]).astype(np.int64)

    def _between(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        return self.matrix[sources] if targets is None else self.matrix[sources[:, None], targets]

    def _contents(self) -> tuple[Distances]:
        return (self.matrix,)


def _checked_longest(matrix: Matrix, cut: float) -> float:
    """The largest of the distances, once they are known to be some."""
    if matrix.dtype.kind not in "iuf":
        raise InvalidType("matrix must hold numbers: the distance of every pair of points.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InvalidValue("matrix must be square, with one row and one column a point, and at least one point.")
    longest = float(matrix.max())
    if isnan(longest) or matrix.min() < 0:
        raise InvalidValue("matrix holds NaN or a negative number, and a distance is neither.")
    if isinf(longest) and isinf(cut):
        raise InvalidValue(
            "matrix holds infinite distances. Pass truncate=c, a public length, and every distance above c counts as c."
        )
    finite = max(float(rows[np.isfinite(rows)].max(initial=0.0)) for _, rows in _blocks(matrix)) if isinf(longest) else longest
    slack = 0.0 if matrix.dtype.kind in "iu" else ROUNDING * finite
    if np.diagonal(matrix).max() > slack:
        raise InvalidValue("matrix must have 0 on its diagonal: every point is at distance 0 from itself.")
    for one, other in _mirrored(matrix):
        differs = one != other
        if not differs.any():
            continue
        if (np.maximum(one, other)[differs] - np.minimum(one, other)[differs] > slack).any():  # unsigned ones would wrap
            raise InvalidValue(
                "matrix is not symmetric: the distance from u to v is not that from v to u. If you mean the smaller or the "
                "mean of both, pass that, such as numpy.minimum(matrix, matrix.T)."
            )
    return longest


def _step(matrix: Matrix, cut: float, extent: float) -> float:
    """1 for whole numbers, otherwise a power of two."""
    is_whole = matrix.dtype.kind in "iu" or all(((rows == np.floor(rows)) | (rows > cut)).all() for _, rows in _blocks(matrix))
    if is_whole and extent <= MOST_STEPS:
        return 1.0
    return power_of_two(extent / STEPS)


def _steps(matrix: Matrix, cut: float, step: float, longest: float) -> Distances:
    if matrix.dtype == np.int32 and step == 1 and longest <= cut:
        return np.ascontiguousarray(matrix, dtype=np.int32).view()  # a view: sealing it leaves the caller's array as it was
    cap = MOST_STEPS if isinf(cut) else ceil(cut / step)
    out = np.empty(matrix.shape, dtype=np.int32)
    for (one, other), (here, there) in zip(_mirrored(matrix), _mirrored(out), strict=True):
        larger = np.maximum(one, other).astype(np.float64)  # of both directions, rounded up: that keeps the triangle inequality
        here[:] = np.minimum(np.ceil(larger / step), cap)
        there[:] = here
    np.fill_diagonal(out, 0)
    return out


def _has_shortcuts(matrix: Distances, slack: int) -> bool:
    """Whether some distance exceeds the way through a third point by more than `slack`; tried on points chosen evenly."""
    ends = np.unique(np.linspace(0, len(matrix) - 1, 192).astype(np.int64))
    direct = matrix[np.ix_(ends, ends)].astype(np.int64) - slack
    between = np.unique(np.linspace(0, len(matrix) - 1, 48).astype(np.int64))
    return any((direct > matrix[ends, v][:, None].astype(np.int64) + matrix[v, ends]).any() for v in between)


def _blocks(matrix: NDArray[np.number]) -> Iterator[tuple[int, Matrix]]:
    for i in range(0, len(matrix), ROWS):
        yield i, matrix[i : i + ROWS]


def _mirrored(matrix: NDArray[np.number]) -> Iterator[tuple[Matrix, Matrix]]:
    """Every square on and above the diagonal, and the one that it must equal, turned over: views."""
    for i in range(0, len(matrix), ROWS):
        for j in range(i, len(matrix), ROWS):
            yield matrix[i : i + ROWS, j : j + ROWS], matrix[j : j + ROWS, i : i + ROWS].T
