"""What released means are worth: pulled towards what is known by as much as their noise explains, and kept inside a ball."""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats

TINY = 1e-300  # so that 0/0 is 0
SPEAKS = 5.0  # deviations of noise: sooner, noise would speak


def shrunk(means: Floats, variances: Floats) -> Floats:
    """James-Stein towards 0, row by row: what is left when the expected squared length of the noise is taken off."""
    squares = (means**2).sum(axis=1)
    return np.asarray(means * (np.maximum(squares - variances, 0.0) / np.maximum(squares, TINY))[:, None])


def shrunk_by_column(means: Floats, variances: Floats) -> Floats:
    """James-Stein towards 0, row by row, and more so in columns in which all rows together show little but noise.

    What noise leaves of a row's squared length is laid out over the columns by a profile that all rows share, and every entry is
    weighed by its part against its noise. Rows vote for the profile alike, however long they are. It is noisy itself, so it is
    pulled towards an even one by as much as noise explains: where columns are alike, this is `shrunk`.
    An entry far beyond `SPEAKS` deviations of its noise is kept, whatever other rows say.

    >>> rows = np.tile([[9.0, 0.0, 0.0, 0.5]], (8, 1))
    >>> shrunk_by_column(rows, np.full(8, 4.0))[0].round(2).tolist()
    [8.88, 0.0, 0.0, 0.0]
    """
    n, d = means.shape
    noise, squares = np.maximum(variances, TINY)[:, None], means**2
    left = np.maximum(squares.sum(axis=1, keepdims=True) - noise, 0.0)
    part = noise / (left + noise)
    votes = ((d * squares - noise) / (left + noise)).mean(axis=0)
    chance = float((2 * part**2 + 4 * part * (1 - part)).mean()) / max(n - 1, TINY)  # variance of a vote; one row tells nothing
    certain = max(0.0, 1 - chance / max(float(votes.var()), TINY))
    profile = np.maximum(votes.mean() + certain * (votes - votes.mean()), 0.0)
    own = np.maximum(left * (profile / max(float(profile.mean()), TINY)), d * squares - SPEAKS**2 * noise)
    return np.asarray(means * (own / (own + noise)))


def weighed(means: Floats, variances: Floats, expected: Floats) -> Floats:
    """The best linear guess, row by row, of what noise of a variance hides, when its expected squared length is known."""
    return np.asarray(means * (expected / np.maximum(expected + variances, TINY))[:, None])


def within(points: Floats, radii: Floats | float) -> Floats:
    """Every row, or where its ray from 0 leaves the ball of its radius."""
    lengths = np.linalg.norm(points, axis=1)
    return np.asarray(points * (np.minimum(radii, lengths) / np.maximum(lengths, TINY))[:, None])
