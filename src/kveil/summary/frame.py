"""Rows as a public or released frame sees them: moved, clipped to a ball, and projected, all in integers.

Every number of a frame is public or was released; a row's image depends on the frame and that row alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.summary import _kernels

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCK = 2048
AXIS_BITS = 14  # of the entries of a projection; products stay integers far below 2**53


@dataclass(frozen=True, eq=False)
class Frame:
    """Codes become steps of equal length (times `ratio`), relative to `middle`, clipped to the ball of `radius`; then, with
    `axes`, their components along public directions, clipped to `reach`. All lengths are whole steps."""

    ratio: Floats | None
    middle: Integers
    radius: int
    axes: Integers | None = None
    reach: int = 0

    def measured(self, rows: Any) -> Integers:
        """Encoded rows in steps of equal length, from the centre of the domain."""
        with np.errstate(all="ignore"):
            return np.asarray(rows if self.ratio is None else np.rint(rows * self.ratio)).astype(np.int64)

    def centred(self, rows: Any) -> Integers:
        """Rows about the middle, inside the ball."""
        return _clipped(self.measured(rows) - self.middle, self.radius)

    def projected(self, centred: Integers) -> Integers:
        """Components of centred rows along the axes, inside their ball. The float product is exact: integers below 2**53."""
        if self.axes is None:
            return centred
        product = centred.astype(np.float64) @ self.axes.astype(np.float64)
        return _clipped(product.astype(np.int64) >> AXIS_BITS, self.reach)


def blocks(rows: Any) -> Iterator[Any]:
    for start in range(0, rows.shape[0], BLOCK):
        yield rows[start : start + BLOCK]


def _clipped(rows: Integers, radius: int) -> Integers:
    rows = np.ascontiguousarray(rows)
    _kernels.shrink_rows(rows, radius)
    return rows
