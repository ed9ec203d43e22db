"""Scales found privately: where the values of every column lie and how far they spread, for a part of the budget, before a fit.

A box of public bounds is often far wider than what a column holds. Here every column gets a location and a spread, from noisy
counts of bins, and the fit runs in the box of mean -+ 4 deviations, where all columns count alike.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.desk.base import Curator
from kveil.desk.pool import Pool
from kveil.errors import InvalidValue
from kveil.kernel.grid import LARGEST, Box
from kveil.kernel.ledger import UNIT
from kveil.methods.base import WIDEST, Found, Method
from kveil.methods.task import Task
from kveil.progress import step as progress
from kveil.questions.base import Noisy
from kveil.questions.column_bins import OCTAVES, Cells, ColumnBins, even_edges, octave_edges
from kveil.space.column_box import box_like, fills, is_level

SHARE = 0.15  # of the budget
OF_PLACES, OF_SPREADS = 0.2, 0.8  # of that share
EVEN_BINS = 64
FALSE_BINS = 0.1  # empty bins of a column that are expected to pass the threshold
SHOWN = 1.5  # deviations of a bin that counts towards a spread
REACH = 4  # deviations from the mean to the ends of the box
NARROWEST = 2.0**-9  # of the bounds: the least deviation
HIDDEN = 0.25  # of a deviation: how many rows noise may hide at the ends of the bounds
MOST_COLUMNS = 64
LEAST_UNITS = 2**6  # of a ledger in the least share, so that it is not lost in rounding


class Scales(NamedTuple):
    """Released, by column: the public bounds, and a mean and a deviation inside them. NaN in columns of levels."""

    lower: Floats
    upper: Floats
    mean: Floats
    deviation: Floats

    def box(self, domain: Box) -> Box:
        """The box of a fit: mean -+ 4 deviations, cut to the bounds. Columns of levels keep theirs."""
        low = np.fmax(self.mean - REACH * self.deviation, self.lower)
        high = np.fmin(self.mean + REACH * self.deviation, self.upper)
        middle = (self.lower + self.upper) / 2
        return box_like(domain, low, high, np.where(np.isnan(self.mean), middle, self.mean) if fills(domain) else None)

    def public(self) -> dict[str, Any]:
        """As parameters of a release: None in columns of levels."""
        mean, deviation = ([None if np.isnan(x) else float(x) for x in column] for column in (self.mean, self.deviation))
        return {"bounds": [self.lower.tolist(), self.upper.tolist()], "mean": mean, "deviation": deviation}


class Scaled:
    """A method in a box that was found privately.

    Private:      the rows and their number.  Public: all parameters, and that a fit took place.
    Neighbours:   those of `Pool`.
    Sensitivity:  a row is in at most one bin of each of two histograms per column (`ColumnBins`), and moves one count of each
                  by 1. Each histogram is one draw of the pool, for its own share; the method draws on what is left.
    Cost:         the whole budget, as without scales: 15 % for them, the rest for the method. Means, deviations, the box and what
                  fills missing cells follow from noisy counts. Clipping to the box is row by row, so the method's own
                  proofs hold in it as in any public box.
    """

    def __init__(self, make: type[Method], task: Task) -> None:
        assert isinstance(task.domain, Box)
        self.task, self._make, self._domain = task, make, task.domain
        self._columns = np.flatnonzero(~is_level(task.domain))
        _check_box(task, self._domain, self._columns)
        inner = self._inside(task.domain)
        if not isinstance(inner.budget, Pool):
            raise InvalidValue(
                f'scaling="private" is for methods that split their budget as they go, and "{make.__name__.lower()}" lists every '
                'charge beforehand. Use method="tree", or scaling="bounds".'
            )
        self.task = replace(inner.task, domain=task.domain, epsilon=task.epsilon)
        self.budget = Pool(task.epsilon, task.delta, task.relation, task.unit, is_pure=inner.budget.kind != "zcdp")
        least = SHARE * OF_PLACES / len(self._columns)
        is_lost = float(self.budget.total) * UNIT * least < LEAST_UNITS or self.budget.deviation(least) > WIDEST
        if self.budget.kind != "none" and is_lost:
            raise InvalidValue('this budget is too small for scaling="private". Raise epsilon, or use scaling="bounds".')

    def run(self, desk: Curator, rng: np.random.Generator) -> Found:
        progress("finding scales", 1, 1)
        scales = find_scales(desk, self._domain, self._columns)
        box = scales.box(self._domain)
        found = self._inside(box).run(desk.on(box).rest(), rng)
        return replace(found, scales=scales)

    def _inside(self, box: Any) -> Method:
        """The method in a box, with the budget that is left for it. Whether it is refused depends on no box."""
        epsilon = None if self.task.epsilon is None else Fraction(floor((1 - SHARE) * self.task.epsilon * UNIT), UNIT)
        return self._make(replace(self.task, domain=box, epsilon=epsilon))


def find_scales(desk: Curator, domain: Box, columns: Integers) -> Scales:
    """Mean and deviation of these columns, for `SHARE` of the budget. Public, charged."""
    cells, share = Cells(domain), SHARE / len(columns)
    rows = desk.on(cells)
    which, top, lowest = tuple(columns.tolist()), domain.top, -domain.top
    edges = np.tile(even_edges(top, EVEN_BINS), (len(which), 1))
    places = rows.ask(ColumnBins("places of a column", which, edges, lowest), *[OF_PLACES * share] * len(which))
    middles = [_middle(counts, top, is_pure=desk.kind == "pure") for counts in places]
    edges = np.stack([octave_edges(top, middle) for middle in middles])
    spreads = rows.ask(ColumnBins("spreads of a column", which, edges, lowest), *[OF_SPREADS * share] * len(which))
    mean, deviation = np.full((2, domain.n_columns), np.nan)
    for place, middle, counts in zip(which, middles, spreads, strict=True):
        low, high = domain.lower[place], domain.upper[place]
        moved, spread = _moments(counts)
        middle_value = domain.center[place] + middle * domain.step[place]
        mean[place] = np.clip(middle_value + moved * (high - low), low, high)
        deviation[place] = spread * (high - low)
    return Scales(domain.lower, domain.upper, mean, deviation)


def _middle(noisy: Noisy, top: int, *, is_pure: bool) -> int:
    """The code in the middle of the median bin, between the outermost bins that stand out; 0 if none does."""
    counts, passed = noisy.values, log(EVEN_BINS / FALSE_BINS)
    threshold = (passed / sqrt(2) if is_pure else sqrt(2 * passed)) * noisy.noise
    shown = np.flatnonzero(counts > threshold)
    if not len(shown):
        return 0
    between = np.zeros(len(counts))
    between[shown[0] : shown[-1] + 1] = np.maximum(counts[shown[0] : shown[-1] + 1], 0.0)
    running = np.cumsum(between)
    place = int(np.searchsorted(running, running[-1] / 2))
    return (2 * place + 1) * top // EVEN_BINS - top


def _moments(noisy: Noisy) -> tuple[float, float]:
    """How far the mean lies from the middle, and the deviation, in widths of the bounds.

    A deviation that is too narrow ruins a column, since its tail is cut, and one too wide costs little: rows that noise could
    hide at the ends of the bounds are given a spread.
    """
    out = 2.0 ** (0.5 - np.arange(1, OCTAVES))  # geometric middles of octaves, the outermost first; up to 2**-11 counts as 0
    values = np.concatenate([-out, [0.0, 0.0], out[::-1]])
    counts, deviation = noisy.values, noisy.noise
    kept = np.where(counts > SHOWN * deviation, counts, 0.0)
    if not kept.any():
        return 0.0, 0.25
    moved = float(kept @ values / kept.sum())
    hidden = HIDDEN * deviation / max(float(counts.sum()), deviation, 1.0) / 4
    variance = max(float(kept @ (values - moved) ** 2 / kept.sum()), NARROWEST**2, hidden)
    return moved, sqrt(min(variance, 1 / 16))


def _check_box(task: Task, domain: Box, columns: Integers) -> None:
    """Refuse what has no scales to find, from public facts and before anything is charged."""
    if task.is_sparse:
        raise InvalidValue('scaling="private" looks at every column by itself, and sparse rows have too many. Use a dense table.')
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise InvalidValue(
            f'scaling="private" is for 1 to {MOST_COLUMNS} columns of numbers, and these are {len(columns)}: each gets a part of '
            '15 % of the budget. Use scaling="bounds".'
        )
    width = domain.upper / 2 - domain.lower / 2
    finest = np.spacing(np.maximum(np.abs(domain.lower), np.abs(domain.upper)))
    if (finest[columns] >= width[columns] * 2.0**-8).any() or width[columns].min() * NARROWEST < 2.0**domain.bits / LARGEST:
        raise InvalidValue(
            'scaling="private" may narrow a column to 1/128 of its bounds. These are too far from 0, or too narrow, for '
            "float64 to tell such ends apart. Move or rescale the columns by public numbers."
        )
