"""Rows as a public or released frame sees them: moved, clipped to a ball, and projected, all in integers.

Every number of a frame is public or was released; a row's image depends on the frame and that row alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.grid import Ball, Box
from kveil.partition.projection import AXIS_BITS
from kveil.space.euclidean import Scaling
from kveil.summary import _kernels

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Frame:
    """Codes become steps of equal length (times `ratio`), relative to `middle`, clipped to the ball of `radius`; then, with
    `axes`, their components along public directions, clipped to `reach`. All lengths are whole steps."""

    ratio: Floats | None
    middle: Integers
    radius: int
    axes: Integers | None = None
    reach: int = 0

    @classmethod
    def of(cls, domain: Box | Ball, scaling: Scaling) -> Frame:
        """The whole domain, from its centre: rows as they are, in a ball that holds them all."""
        middle = np.zeros(domain.n_columns, dtype=np.int64)
        if scaling is not None or np.ptp(domain.half) == 0:
            return cls(None, middle, domain.l2_sensitivity)
        ratio = domain.half / domain.half.max()
        return cls(ratio, middle, int(np.ceil(np.sqrt((np.rint(domain.top * ratio) ** 2).sum()))) + 1)

    def unit(self, domain: Box | Ball) -> Any:
        """The length of a step in the units of the data: one for all columns, or one a column where each has its own."""
        return domain.step if self.ratio is None else domain.half.max() / domain.top

    def measured(self, rows: Any) -> Integers:
        """Encoded rows in steps of equal length, from the centre of the domain."""
        with np.errstate(all="ignore"):
            return np.asarray(rows if self.ratio is None else np.rint(rows * self.ratio)).astype(np.int64)

    def centred(self, rows: Any) -> Integers:
        """Rows about the middle, inside the ball."""
        return clipped(self.measured(rows) - self.middle, self.radius)

    def projected(self, centred: Integers) -> Integers:
        """Components of centred rows along the axes, inside their ball. The float product is exact: integers below 2**53.

        Coordinates are cut at twice the ball first: stretched axes make some rows so long that their square would pass 2**63.
        """
        if self.axes is None:
            return centred
        product = centred.astype(np.float64) @ self.axes.astype(np.float64)
        return clipped(np.clip(product.astype(np.int64) >> AXIS_BITS, -2 * self.reach, 2 * self.reach), self.reach)


def blocks(rows: Any) -> Iterator[Any]:
    for start in range(0, rows.shape[0], BLOCK):
        yield rows[start : start + BLOCK]


def clipped(rows: Integers, radius: int) -> Integers:
    """Rows moved into the ball of `radius`, in integers."""
    rows = np.ascontiguousarray(rows)
    _kernels.shrink_rows(rows, radius)
    return rows


def whole_steps(points: Floats, radius: int) -> Integers:
    """Released points as whole steps inside the ball of the rows: distances to them stay below 2**53, so labels are exact."""
    return clipped(np.rint(points).astype(np.int64), radius)
