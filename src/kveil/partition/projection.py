"""Random directions that nearly keep distances (Johnson, Lindenstrauss), as integers, so that projecting is exact."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Integers

AXIS_BITS = 14  # of the entries of a projection; products stay integers far below 2**53


def random_axes(n_columns: int, n_axes: int, rng: np.random.Generator, *, stretch: float = 1.0) -> Integers:
    """`n_axes` orthonormal directions (columns, axes), uniformly random, times `stretch` 2**AXIS_BITS. Public randomness.

    stretch = sqrt(columns/axes) keeps the mean squared length of a vector; the longest then grow, so clip what comes out.
    """
    directions, _ = np.linalg.qr(rng.standard_normal((n_columns, n_axes)))  # public randomness, no noise
    return np.asarray(np.rint(directions * stretch * 2**AXIS_BITS)).astype(np.int64)
