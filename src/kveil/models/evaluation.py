"""What noisy answers tell about the fit of released centres to rows, each number with an interval that holds what noise does.

The law of the noise is known exactly and nothing else is random: so intervals need no model of the rows. Half-widths are rounded
up to whole units of the grid, which makes them hold for discrete noise, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from kveil._pages import Preformatted
from kveil.arrays import Floats, Integers
from kveil.kernel.loss import Guarantee

N_BINS = 41  # of a distance, four per octave from the diameter down
MISS = 0.05  # the chance that an interval does not hold what it stands for
FAR_BINS = 0.1  # empty bins that pass for rows, expected


class Estimate(NamedTuple):
    """A noisy number, and an interval that holds the exact one with a chance of at least 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.6g} ({self.low:.6g} to {self.high:.6g})"

    def of_rows(self) -> str:
        """The same in whole rows, with ends rounded outwards."""
        return f"{round(self.value)} ({floor(self.low)} to {ceil(self.high)})"


class Noise(NamedTuple):
    """The law of one draw: Laplace noise of this scale, or Gaussian noise of this deviation, on whole numbers."""

    is_gaussian: bool
    scale: float

    @property
    def deviation(self) -> float:
        return self.scale * (1.0 if self.is_gaussian else sqrt(2))

    def half_width(self, miss: float) -> int:
        """What noise passes on one side or the other with a chance of at most `miss`."""
        return ceil(self.scale * (_z(miss / 2) if self.is_gaussian else log(1 / miss)))

    def half_width_of_sum(self, terms: int, miss: float) -> int:
        """The same for a sum of independent draws. In its own deviations a sum of Laplace draws has lighter tails than one."""
        return ceil(sqrt(terms) * self.deviation * (_z(miss / 2) if self.is_gaussian else log(1 / miss) / sqrt(2)))


def outer_edges(diameter: float) -> Floats:
    """Outer edges of the bins, in the units of the diameter, descending."""
    return diameter * 2.0 ** (-np.arange(N_BINS) / 4)


class Clip(NamedTuple):
    """Which edge distances are clipped at, and how many rows may lie beyond, all edges at once."""

    place: int  # of the edge; 0 is the diameter
    beyond: float
    has_signal: bool


def chosen_clip(counts: Integers, bins: Noise, cost: Noise, top: int, *, is_squared: bool) -> Clip:
    """The edge that balances the noise of a clipped cost against what clipping leaves out, by noisy counts alone.

    `beyond` holds with a chance of 97.5 % for all edges together, since these counts chose the edge.
    """
    stands_out = np.flatnonzero(counts > bins.scale * (3.03 if bins.is_gaussian else log(N_BINS / FAR_BINS)))
    if not len(stands_out):
        return Clip(0, 0.0, has_signal=False)
    power = 2 if is_squared else 1
    edges = outer_edges(1.0) ** power
    middles, rows = edges * 2.0 ** (-power / 8), np.maximum(counts, 0)
    places = range(int(stands_out[0]), N_BINS)
    losses = [cost.deviation / top * edges[i] + float(rows[:i] @ (middles[:i] - edges[i])) for i in places]
    place = places[int(np.argmin(losses))]
    widest = 3.23 if bins.is_gaussian else 3.23 + 1.5 / sqrt(max(place, 1))
    return Clip(place, max(0.0, float(counts[:place].sum()) + widest * sqrt(place) * bins.deviation), has_signal=True)


def sized(sizes: Integers, noise: Noise) -> tuple[Estimate, tuple[Estimate, ...], tuple[Estimate, ...]]:
    """The number of rows; the size of every cluster; the same with intervals that hold all together."""
    each, together = noise.half_width(MISS), noise.half_width(MISS / len(sizes))
    total, wide = float(sizes.sum()), noise.half_width_of_sum(len(sizes), MISS / 2)
    return from_zero(total, wide), _around(sizes, each), _around(sizes, together)


def from_zero(value: float, half: float) -> Estimate:
    """What is never negative, from a noisy value that may be. Its interval keeps half its width, and so never ends at 0."""
    least = max(0.0, value)
    return Estimate(least, max(0.0, value - half), least + half)


def averaged(total: int, noise: Noise, top: int, rows: Estimate) -> Estimate:
    """A mean of numbers from 0 to 1: a noisy sum over a noisy number of rows, each of which may miss half as often."""
    half = noise.half_width(MISS / 2) / top
    whole = total / top
    low = (whole - half) / max(rows.high, 1.0)
    high = (max(0.0, whole) + half) / rows.low if rows.low > 0 else 1.0
    return Estimate(*(float(np.clip(x, 0.0, 1.0)) for x in (whole / max(rows.value, 1.0), low, high)))


def _around(values: Integers, half: int) -> tuple[Estimate, ...]:
    return tuple(from_zero(float(value), half) for value in values)


def _z(tail: float) -> float:
    return -NormalDist().inv_cdf(tail)


@dataclass(frozen=True, eq=False)
class Evaluation(Preformatted):
    """How well released centres fit some rows, as noisy numbers that were charged for. All of it may be shared.

    Attributes
    ----------
    cost : Estimate
        The sum of squared distances of rows to their nearest centre (distances, for k-median), each CLIPPED at `clip`.
    clip : float
        That distance, in the units of the release's `transform`.
    beyond : float
        Rows farther away are at most so many (97.5 %).
    most : float
        What the cost without a clip is at most (95 %): the clip leaves rows out that noise hides.
    silhouette : Estimate or None
        The mean of 1 - a/b, a and b a row's distances to the nearest and second nearest centre; None for one centre.
    rows, sizes : Estimate, tuple[Estimate, ...]
        How many rows there are, and in every cluster.
    sizes_together : tuple[Estimate, ...]
        Intervals that hold all of them at once.
    guarantee, receipt : Guarantee, Receipt or dict
        What was promised and charged for this evaluation alone. Whoever sees the release, too, has the sum.
    notes : tuple of str
        What a reader should know besides.

    Notes
    -----
    Intervals are for these rows and the noise; they say nothing about other rows of the same kind.
    """

    cost: Estimate
    clip: float
    beyond: float
    most: float
    silhouette: Estimate | None
    rows: Estimate
    sizes: tuple[Estimate, ...]
    sizes_together: tuple[Estimate, ...]
    guarantee: Guarantee
    receipt: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        shape = "none, there is one centre" if self.silhouette is None else str(self.silhouette)
        sizes = "; ".join(f"{number}: {size.of_rows()}" for number, size in enumerate(self.sizes))
        return "\n".join(
            [
                f"cost, distances clipped at {self.clip:.6g}: {self.cost}",
                f"rows beyond the clip: at most {ceil(self.beyond)}; cost without the clip: at most {self.most:.6g}",
                f"silhouette: {shape}",
                f"rows: {self.rows.of_rows()}",
                f"sizes: {sizes}",
                *(f"Note: {note}" for note in self.notes),
                "Numbers are noisy; brackets hold the exact ones with a chance of 95 % each.",
                "",
                str(self.guarantee),
            ]
        )

    def to_json(self) -> str:
        """All of it as JSON; one object."""
        told = {name: getattr(self, name) for name in ("clip", "beyond", "most")}
        told |= {name: _plain(getattr(self, name)) for name in ("cost", "silhouette", "rows", "sizes", "sizes_together")}
        guarantee = json.loads(self.guarantee.to_json())
        return json.dumps({**told, "guarantee": guarantee, "receipt": dict(self.receipt), "notes": list(self.notes)})


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value._asdict()
    return [one._asdict() for one in value] if isinstance(value, tuple) else value
