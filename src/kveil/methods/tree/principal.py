"""Axes along which rows vary most, from a noisy matrix of second moments."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.methods.ground import Ground
from kveil.partition.projection import AXIS_BITS
from kveil.questions.cells import MOMENT_TOP, SecondMoments
from kveil.questions.frame import Frame


def principal_axes(ground: Ground, frame: Frame, n_axes: int, n: float, share: float) -> tuple[Integers, Floats]:
    """The top `n_axes` eigenvectors (columns, axes) of released second moments, as integers, and deviations along them.

    The upper triangle is released, with Gaussian noise on every entry, and mirrored; eigenvectors are post-processing.
    """
    d = ground.d
    moments = np.zeros((d, d))
    moments[np.triu_indices(d)] = ground.desk.ask(SecondMoments(frame), share)[0].values[0]  # public, charged
    values, vectors = np.linalg.eigh(moments.T)  # reads the lower triangle
    first = np.argsort(-values, kind="stable")[:n_axes]
    axes = np.rint(vectors[:, first] * 2**AXIS_BITS).astype(np.int64)
    return axes, np.sqrt(np.maximum(values[first], 0.0) / n) * (frame.radius / MOMENT_TOP)
