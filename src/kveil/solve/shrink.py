"""What released means are worth: pulled towards what is known by as much as their noise explains, and kept inside a ball."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats

TINY = 1e-300  # so that 0/0 is 0


def shrunk(means: Floats, variances: Floats) -> Floats:
    """James-Stein towards 0, row by row: what is left when the expected squared length of the noise is taken off."""
    squares = (means**2).sum(axis=1)
    return np.asarray(means * (np.maximum(squares - variances, 0.0) / np.maximum(squares, TINY))[:, None])


def weighed(means: Floats, variances: Floats, expected: Floats) -> Floats:
    """The best linear guess, row by row, of what noise of a variance hides, when its expected squared length is known."""
    return np.asarray(means * (expected / np.maximum(expected + variances, TINY))[:, None])


def within(points: Floats, radii: Floats | float) -> Floats:
    """Every row, or where its ray from 0 leaves the ball of its radius."""
    lengths = np.linalg.norm(points, axis=1)
    return np.asarray(points * (np.minimum(radii, lengths) / np.maximum(lengths, TINY))[:, None])
