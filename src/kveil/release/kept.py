"""The synopsis of a release, ready for what may be asked of it afterwards: in which unit it is, and who drew its randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.release import answers
from kveil.solve.placed import Placed
from kveil.solve.synopsis import Synopsis
from kveil.space.euclidean import units

if TYPE_CHECKING:
    from kveil.release.release import Release


class Kept(NamedTuple):
    """A synopsis; the length of 1 in every column, in the distance of the model; and the same as one length, for errors."""

    synopsis: Synopsis
    unit: Floats | float
    length: float


def kept(release: Release, what: str) -> Kept:
    """The synopsis of a release over columns; refused where there is none, or none that `what` can use."""
    if not isinstance(release.synopsis, Synopsis):
        raise InvalidValue(f"{what} needs the synopsis of a release, and this one has none: {_why_none(release)}")
    if not has_points(release.synopsis):
        raise InvalidValue(
            f"{what} needs cells or leaves with noisy counts, and this release has none. Either "
            f'method="{release.method["used"]}" released nothing else than its centres, or the budget told no clusters apart. '
            'Fit with method="tree".'
        )
    if answers.scaling_of(release.parameters) != "bounds":
        return Kept(release.synopsis, 1.0, 1.0)
    widths = units(release.domain(), "bounds")
    return Kept(release.synopsis, widths, float(np.sqrt(np.mean(widths**2))))


def _why_none(release: Release) -> str:
    if release.method["used"] == "spherical":
        return 'method="spherical" releases sums of directions, and no counts of cells. Fit with method="tree", for a new charge.'
    why = "it is a release among the points of a universe" if release.n_features is None else (
        "it was made by a version or a method that keeps none, or read from a file that left it out"
    )  # fmt: skip
    return f"{why}. Fit again, if the budget allows."


def has_points(synopsis: Synopsis) -> bool:
    return bool((synopsis.counts[synopsis.kept] > 0).any())


def fitted(release: Release, shown: Kept) -> Placed:
    """The centres that the steps of the fit ended at, in the distance of the model."""
    synopsis, unit, length = shown
    last = synopsis.steps[-1] if synopsis.steps else None
    if last is not None and last.centers is not None and last.moves is not None:
        return Placed((last.centers + last.moves) / unit, np.maximum(last.counts, 0.0), last.errors)
    k = len(release.centers)
    weights = np.full(k, 1 / k) if release.weights is None else release.weights
    errors = np.zeros(k) if release.errors is None else release.errors / length
    return Placed(release.centers / unit, weights * synopsis.rows, errors)


def generator(random_state: Any) -> np.random.Generator:
    """For public choices. None is a fixed seed: the same release then gives everybody the same answer."""
    if isinstance(random_state, bool | np.bool_):
        raise InvalidValue("random_state must be None, a whole number or a generator, not True or False.")
    return np.random.default_rng(0 if random_state is None else random_state)
