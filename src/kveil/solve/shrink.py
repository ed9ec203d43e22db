"""What released means are worth: pulled towards what is known by as much as their noise explains, and kept inside a ball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shrunk(mean: Floats, variance: float) -> Floats:
    """James-Stein towards 0: what is left when the expected squared length of the noise is taken off."""
    square = float(mean @ mean)
    return mean * (max(0.0, 1 - variance / square) if square > 0 else 0.0)


def in_ball(point: Floats, radius: float) -> Floats:
    """The point, or where its ray from 0 leaves the ball."""
    length = float(np.linalg.norm(point))
    return point * (radius / length) if length > radius else point
