"""Constants of LAE: two presets, and what the paper's alpha and c make of them.

alpha: an image keeps squared distances up to a factor of 1 +- alpha, for which it has ln(k/(alpha beta))/alpha**2 axes (the paper
says O of that), never more than there are columns; it is scaled by 1/(1 + alpha), so that what it stretches stays in the ball.
c: hashing tells points that are c times farther apart than near ones from these. The paper needs that near ones share a bucket
many times as often, by a factor of k and powers of log n that it leaves open; here it is k, by the width of the buckets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, log, sqrt
from numbers import Real
from typing import Literal

import numpy as np
from scipy.special import betainc
from scipy.stats import chi

from kveil.arrays import Floats
from kveil.collect.queries import Terms
from kveil.errors import InvalidValue
from kveil.tuning import Lae as Tuning

BETA = 0.1  # failure probability, wherever the paper leaves it open
MOST_AXES = 8  # an image with more has so many cells below each that nobody could look at all of them
BALL_AXES = (2, 3, 4)  # of the image in which balls lie; one more takes four times as many grids
LEAST_CHANCE = 0.1  # that near points share a bucket: with less, repeats would take all people
LEAST_C, MOST_C = sqrt(2), 16.0


@dataclass(frozen=True)
class Preset:
    """Constants. None: the paper's formula, with the levels that no cell can be heavy on left out.

    width: of a bucket, the side of a cube or the radius of a ball, over the distance that counts as near.
    hemisphere: half of all codewords are preferred, as in the mechanism that the paper cites, instead of the best share.
    stretch: what the image is divided by, where it has fewer axes than the data.
    """

    most_axes: int
    cut: float
    width: float
    guesses: int | None = None
    levels: int | None = None
    scales: int | None = None
    repeats: int | None = None
    buckets_per_centre: int = 4
    hemisphere: bool = False
    lsh: Literal["grid", "ball"] = "grid"
    ball_axes: int = 2
    stretch: float = 1.0

    def near(self, n_axes: int) -> float:
        """The chance that near points share a bucket: p(1) of the paper."""
        return collision_chance(n_axes, self.width) if self.lsh == "grid" else ball_chance(self.ball_axes, self.width)


LITE = Preset(most_axes=3, cut=3.5, width=2.0, guesses=1, levels=4, scales=1, repeats=1)
PAPER = Preset(most_axes=4, cut=3.0, width=4.0, hemisphere=True)


def tuned(preset: Preset, tuning: Tuning | None, terms: Terms) -> Preset:
    """The preset with the hashing, the image and the buckets that a tuning asks for."""
    if tuning is None:
        return preset
    checked(tuning)
    made = replace(preset, lsh=tuning.lsh)
    if tuning.alpha is not None:
        wanted = image_axes(tuning, terms.k, terms.n_columns)
        made = replace(made, most_axes=wanted, stretch=1 + float(tuning.alpha) if wanted < terms.n_columns else 1.0)
    if tuning.c is None:
        return made
    for n_axes in (min(made.most_axes, terms.n_columns),) if made.lsh == "grid" else BALL_AXES:
        width = _width(made.lsh, n_axes, float(tuning.c), terms.k)
        if width:
            return replace(made, width=width, ball_axes=n_axes)
    raise InvalidValue(
        f"tuning.c = {float(tuning.c):g} is too near to 1 for k = {terms.k}: buckets that tell points so far apart would hardly "
        "hold near ones together. Take a larger c, or leave it out."
    )


def checked(tuning: Tuning) -> Tuning:
    """Itself, if it is one that a campaign may have."""
    if not isinstance(tuning, Tuning):
        raise InvalidValue('tuning must be kveil.tuning.Lae(...) or None, and belongs to protocol="lae".')
    if tuning.lsh not in ("grid", "ball"):
        raise InvalidValue(f'tuning.lsh must be "grid" or "ball", got {tuning.lsh!r}.')
    for name, value, low, high in (("alpha", tuning.alpha, 0.0, 1.0), ("c", tuning.c, LEAST_C, MOST_C)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not low < value <= high):
            raise InvalidValue(f"tuning.{name} must be a number above {low:.4g} and at most {high:g}, or None, got {value!r}.")
    return tuning


def image_axes(tuning: Tuning, k: int, n_columns: int) -> int:
    """Axes of the image that alpha asks for."""
    assert tuning.alpha is not None
    wanted = min(n_columns, ceil(log(k / (float(tuning.alpha) * BETA)) / float(tuning.alpha) ** 2))
    if wanted > MOST_AXES:
        raise InvalidValue(
            f"tuning.alpha asks for an image of {wanted} axes, and cells can be looked at in at most {MOST_AXES}. Take a larger "
            "alpha, or leave it out."
        )
    return wanted


@lru_cache(maxsize=64)
def collision_chance(n_axes: int, width: float, apart: float = 1.0) -> float:
    """That two points so far apart share a cube of a rotated grid: E prod (1 - apart |v_i| / width)+, v uniform on the sphere."""
    return _cube_chance(_directions(n_axes), width, apart)


def ball_chance(n_axes: int, width: float, apart: float = 1.0) -> float:
    """That two points so far apart share a ball of a `BallLattice` in so many axes.

    The first grid that covers one of them decides: the chance is the volume that two balls share over that of both together. The
    image of their distance follows the root of a chi-squared over its degrees of freedom.
    """
    distance = apart * _stretches(n_axes)
    shared = betainc((n_axes + 1) / 2, 0.5, 1 - np.minimum(distance / (2 * width), 1.0) ** 2)
    return float((shared / (2 - shared)).mean())


@lru_cache(maxsize=256)
def _width(lsh: str, n_axes: int, c: float, k: int) -> float:
    """The widest buckets that near points share k times as often as points c times as far; 0 if near ones hardly do."""
    some = _directions(n_axes)[:10_000]

    def chance(width: float, apart: float) -> float:
        return _cube_chance(some, width, apart) if lsh == "grid" else ball_chance(n_axes, width, apart)

    low, high = 0.0, 64.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle, 1.0) >= k * chance(middle, c) else (low, middle)
    width = round(low, 2)  # the same on every machine
    return width if width > 0 and chance(width, 1.0) >= LEAST_CHANCE else 0.0


def _cube_chance(directions: Floats, width: float, apart: float) -> float:
    return float(np.maximum(0.0, 1 - apart * directions / width).prod(axis=1).mean())


@lru_cache(maxsize=4)
def _directions(n_axes: int) -> Floats:
    """Absolute coordinates of directions."""
    rng = np.random.default_rng(0)  # public: an integral over directions, the same for everyone
    v = rng.standard_normal((200_000, n_axes))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return np.asarray(np.abs(v))


@lru_cache(maxsize=4)
def _stretches(n_axes: int) -> Floats:
    """By how much a Gaussian projection stretches a distance: the middles of 2000 equal shares of its law."""
    return np.asarray(chi.ppf((np.arange(2_000) + 0.5) / 2_000, n_axes) / sqrt(n_axes))
