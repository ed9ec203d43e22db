"""Axes along which rows vary most, from a noisy matrix of second moments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kveil.models._view import View
from kveil.partition.projection import AXIS_BITS
from kveil.summary.cells import MOMENT_TOP, second_moments
from kveil.summary.frame import Frame

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def principal_axes(view: View, frame: Frame, n_axes: int, n: float, share: float) -> tuple[Integers, Floats]:
    """The top `n_axes` eigenvectors (columns, axes) of released second moments, as integers, and deviations along them.

    The upper triangle is released, with Gaussian noise on every entry, and mirrored; eigenvectors are post-processing.
    """
    d = view.d
    (raw,) = view.source.map_reduce(second_moments, frame, grid=view.task.domain)  # secret
    moments = np.zeros((d, d))
    moments[np.triu_indices(d)] = view.pool.vectors("second moments", raw, MOMENT_TOP**2, share)[0]  # public, charged
    values, vectors = np.linalg.eigh(moments.T)  # reads the lower triangle
    first = np.argsort(-values, kind="stable")[:n_axes]
    axes = np.rint(vectors[:, first] * 2**AXIS_BITS).astype(np.int64)
    return axes, np.sqrt(np.maximum(values[first], 0.0) / n) * (frame.radius / MOMENT_TOP)
