"""Is a release any good? What its own noise says: good, rough or noise, which centres can be told apart, and errors by column.

Every input is a released or a public value, so a verdict is free: it needs no rows and no budget, and the guarantee of the
release covers it. It knows what noise did to the centres. It cannot see a wrong local optimum, nor whether there are clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from kveil._pages import Preformatted
from kveil.arrays import Bools, Floats
from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.release.answers import scaling_of
from kveil.solve.radius import excess
from kveil.solve.synopsis import Cost, Distances, Step, Synopsis, UniverseSynopsis, mean_cost
from kveil.space.column_box import is_level
from kveil.space.euclidean import clip, units

if TYPE_CHECKING:
    from kveil.release.release import Release

Word = Literal["good", "rough", "noise"]

TOLD = 3.0  # deviations between a centre and its nearest neighbour, from which on the two are told apart
APART, STEADY = 5.0, 0.03  # the same, of three centres in four, for "good"; or the noise of the cost, as a share of it
LITTLE, MUCH = 0.2, 0.5  # squared error over mean cost: at most of three centres in four for "good"; above it in half: "noise"
BETTER = 0.1  # of the cost of one mean that the centres explain
MEDIAN_LITTLE, MEDIAN_APART, MEDIAN_MUCH = 0.3, 3.0, 0.7  # of a k-median: errors over the median distance, and deviations
HIDDEN, MOST_HIDDEN = 0.1, 0.5  # of a universe: the share of the demand that noise could hide
SIGMAS = 2.0  # of an interval
CURE = "Use fewer centres, a larger epsilon, delta > 0 or narrower bounds."
WITHOUT_BOUNDS = "Use fewer centres, a larger epsilon or delta > 0."  # of directions and of points of a universe
AT_EDGE = "Most of the weight lies at the edge of the bounds: values outside are moved there. Are the bounds too narrow?"
NEAR, SURE = 0.05, 0.1  # of a width: how far a centre at the edge lies from it, and how large its error is, at most
OF_CODES = ("lloyd", "mean", "grid", "sample-aggregate")  # their noise is round on the grid of codes: as wide as each column is
MOST_NAMED = 10
BLOCK = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Preformatted):
    """What the noise in a release did to it.

    word: "good", "rough" or "noise". Over 342 fits of real tables and mixtures 94 % of "good" cost at most 1.25 times what
        k-means without privacy does, and 3 % of "noise" did (`python -m benchmarks judge verdict`).
    reasons: sentences that say why.
    told_apart: (k,) whether a centre is at least 3 standard errors away from every other one, and has weight. The others may be
        noise, or half of a cluster. None if errors are not known.
    explained: how much of the cost of one mean the centres explain; None if nothing tells. Above 0.1 they are better than it.
    noise_share: what noise adds to the mean cost at least, as a share of it (the median centre); None if nothing tells.
    column_errors: (k, d) standard error of every number of every centre, in the unit of its column: the noise alone. Where sums
        were asked for in some columns, the others have the mean of all rows, and an even part of the error as a guess.
    low, high: (k, d) an interval about every number of every centre for the mean of the rows nearest to it: two
        standard errors of the noise, of clipping rows and of stopping early. 92 to 99 % of them held in those fits.
    """

    word: Word
    reasons: tuple[str, ...]
    told_apart: Bools | None = None
    explained: float | None = None
    noise_share: float | None = None
    column_errors: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None

    @property
    def n_told_apart(self) -> int | None:
        return None if self.told_apart is None else int(self.told_apart.sum())

    @property
    def is_better_than_one_mean(self) -> bool | None:
        """None if nothing tells."""
        return None if self.explained is None else self.explained > BETTER

    @property
    def note(self) -> str:
        """One line, for notes and reports."""
        return f"verdict: {self.word}. {self.reasons[0]}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        tables = {name: _listed(getattr(self, name)) for name in ("told_apart", "column_errors", "low", "high")}
        rest = {name: getattr(self, name) for name in ("n_told_apart", "explained", "is_better_than_one_mean", "noise_share")}
        return {"word": self.word, "reasons": list(self.reasons), **rest, **tables}

    def __str__(self) -> str:
        apart = "Nothing tells which centres can be told apart."
        if self.told_apart is not None:
            which = [str(number) for number in np.flatnonzero(~self.told_apart)[:MOST_NAMED]]
            more = ", ..." if len(self.told_apart) - int(self.told_apart.sum()) > MOST_NAMED else ""
            others = (
                f" Centre{'s' * (len(which) > 1)} {', '.join(which)}{more} may be noise, or half of a cluster." if which else ""
            )
            apart = f"{self.n_told_apart} of {len(self.told_apart)} centres can be told apart.{others}"
        lines = [f"Verdict: {self.word}. {' '.join(self.reasons)}", apart]
        if self.explained is None:
            lines.append("Nothing tells whether they are better than one mean.")
        elif self.word != "noise":  # which could have lowered it by itself
            lines.append(f"Compared with one mean for all rows, they lower the cost by {100 * max(self.explained, 0.0):.0f} %.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Verdict({self.word!r}, {self.n_told_apart} told apart)"


def judged(release: Release) -> Verdict:
    """The verdict of a release, from what it holds."""
    if release.n_features is None:
        return _of_universe(release)
    return _of_space(release, _Noise.of(release))


class _Noise(NamedTuple):
    """What noise did, in the distance of the model: units of the data, or half-widths of the bounds."""

    errors: Floats | None  # (k,)
    apart: Floats | None  # (k,) deviations to the nearest other centre
    widths: Floats  # (d,) of one unit of distance, in the units of the columns
    by_column: Floats  # (d,) the error of a column, in its unit, for an error of 1

    @classmethod
    def of(cls, release: Release) -> _Noise:
        assert release.n_features is not None
        scaling, domain = scaling_of(release.parameters), _domain(release)
        widths = np.ones(release.n_features) if scaling is None or domain is None else units(domain, scaling)
        summed = getattr(release.synopsis, "summed", None)
        by_column = widths / sqrt(len(widths))
        if summed is not None and summed.any():  # an even part of the noise would be too little in columns that have all of it
            by_column = np.where(summed, widths / sqrt(summed.sum()), by_column)
        if release.errors is None:
            return cls(None, None, widths, by_column)
        errors = release.errors / sqrt(np.mean(widths**2))
        if release.method["used"] in OF_CODES and domain is not None:
            half = np.asarray(domain.half)
            by_column = half * sqrt(np.mean(widths**2)) / sqrt(float((half**2).sum()))
        return cls(errors, _apart(release.centers / widths, errors), widths, by_column)


def _apart(places: Floats, errors: Floats) -> Floats:
    """Deviations of every centre to its nearest neighbour; infinite for a lone one. Blocks bound the memory."""
    found = np.full(len(places), np.inf)
    for start in range(0, len(places), BLOCK):
        rows = slice(start, start + BLOCK)
        gaps = cdist(places[rows], places)
        gaps[np.arange(len(gaps)), start + np.arange(len(gaps))] = np.inf
        noise = np.sqrt(errors[rows, None] ** 2 + errors**2)
        found[rows] = np.where(gaps > 0, gaps / np.maximum(noise, 1e-300), 0.0).min(axis=1)
    return found


def _of_space(release: Release, noise: _Noise) -> Verdict:
    synopsis = release.synopsis if isinstance(release.synopsis, Synopsis) else None
    step = last_step(release, synopsis)
    cost, whole = _costs(release, synopsis, step, noise.widths)
    word, reasons = _judged(release, noise, cost, step)
    explained = None if cost is None or whole is None else 1 - cost.value / whole.value
    if explained is not None and explained <= BETTER and len(release.centers) > 1:
        reasons = (*reasons, "They are not shown to be better than one mean.")
    if noise.errors is None or noise.apart is None:
        return Verdict(word, reasons, explained=explained)
    weight = np.ones(len(noise.errors)) if release.weights is None else release.weights
    share = None if cost is None or cost.value <= 0 else float(np.median(noise.errors**2) / cost.value)
    errors = noise.errors[:, None] * noise.by_column
    reach = SIGMAS * _all_errors(release, noise, step)[:, None] * noise.by_column
    low, high = (_in_bounds(release, release.centers + side * reach) for side in (-1, 1))
    return Verdict(word, reasons, (noise.apart >= TOLD) & (weight > 0), explained, share, errors, low, high)


def _judged(release: Release, noise: _Noise, cost: Cost | None, step: Step | None) -> tuple[Word, tuple[str, ...]]:
    k, cure = len(release.centers), _cure(release, noise)
    if release.guarantee.route == "none":
        return "good", ("No noise was added: what is left is the clustering itself.",)
    if k > 1 and release.method["used"] == "mean":
        return "rough", ("One mean was asked for, k times.",)
    if k > 1 and not np.ptp(release.centers, axis=0).any():
        return "noise", (f"All centres are one. {cure}",)
    if noise.errors is None or noise.apart is None:
        return "rough", ("Nothing that was released tells how far noise moved the centres.",)
    if release.kind == "PrivateKMedian":
        return _judged_median(noise, step, cure)
    apart = float(np.quantile(noise.apart, 0.25)) if k > 1 else np.inf
    if cost is None:
        if _measures(release, step):
            return "noise", (f"No distance of rows to the centres stands out from the noise. {cure}",)
        return _by_errors_alone(apart, cure)
    half = float(np.median(noise.errors**2 / _spreads(release, cost, noise.widths)))
    most = float(np.quantile(noise.errors**2 / cost.value, 0.75))
    if half > MUCH:
        return "noise", (f"Noise in half of the centres is at least {_times(half)} the spread of their rows. {cure}",)
    if release.method["used"] == "candidates":
        return "rough", ("This method reports errors that are smaller than the true ones.",)
    if most > LITTLE:
        return "rough", (f"Noise in a quarter of the centres is at least {_times(most)} the spread of their rows.",)
    if apart < APART and cost.deviation > STEADY * cost.value:
        return "rough", (f"A quarter of the centres lie within {apart:.1f} standard errors of another one.",)
    return "good", (f"Noise in at least three quarters of the centres is at most {_times(most)} the spread of their rows.",)


def _judged_median(noise: _Noise, step: Step | None, cure: str) -> tuple[Word, tuple[str, ...]]:
    """The same with distances instead of squares."""
    assert noise.errors is not None and noise.apart is not None  # noqa: PT018
    apart = float(np.quantile(noise.apart, 0.25)) if len(noise.errors) > 1 else np.inf
    if step is None or step.distances is None:
        return _by_errors_alone(apart, cure)
    typical = median_distance(step.distances)
    if typical is None:
        return "noise", (f"No distance of rows to the centres stands out from the noise. {cure}",)
    half, most = np.quantile(noise.errors / typical, (0.5, 0.75))
    if half > MEDIAN_MUCH:
        return "noise", (f"Noise in half of the centres is at least {_times(half**2)} a typical distance. {cure}",)
    if most > MEDIAN_LITTLE:
        return "rough", (f"Noise in a quarter of the centres is at least {_times(most**2)} a typical distance.",)
    if apart < MEDIAN_APART:
        return "rough", (f"A quarter of the centres lie within {apart:.1f} standard errors of another one.",)
    return "good", (f"Noise in at least three quarters of the centres is at most {_times(most**2)} a typical distance.",)


def _cure(release: Release, noise: _Noise) -> str:
    """What to do about noise. Narrower bounds do not help where values have been moved to their edge."""
    if release.parameters.get("metric") == "cosine":
        return WITHOUT_BOUNDS
    return f"{AT_EDGE} {WITHOUT_BOUNDS}" if _is_at_edge(release, noise) else CURE


def _is_at_edge(release: Release, noise: _Noise) -> bool:
    """Whether most of the released weight is of centres that surely lie at an end of a column of numbers."""
    domain = _domain(release)
    if not isinstance(domain, Box) or release.weights is None or noise.errors is None:
        return False
    width = domain.upper - domain.lower
    gap = np.minimum(release.centers - domain.lower, domain.upper - release.centers)
    is_there = (gap <= NEAR * width) & (noise.errors[:, None] * noise.by_column <= SURE * width)
    return bool(release.weights[is_there[:, ~is_level(domain)].any(axis=1)].sum() > release.weights.sum() / 2)


def _by_errors_alone(apart: float, cure: str) -> tuple[Word, tuple[str, ...]]:
    """Where no distances of rows are kept, whether or not the fit asked for some on its way: never "good"."""
    near = f"A quarter of the centres lie within {apart:.2g} standard errors of another one."
    if apart < 1:
        return "noise", (f"{near} {cure}",)
    untold = "The release keeps no distances of rows, so nothing tells whether it is better than that."
    return "rough", (untold,) if apart >= TOLD else (near, untold)


def _of_universe(release: Release) -> Verdict:
    """Centres that are points of a public universe: by the share of the demand that noise could hide."""
    synopsis = release.synopsis
    if release.guarantee.route == "none":
        return Verdict("good", ("No noise was added: what is left is the clustering itself.",))
    if not isinstance(synopsis, UniverseSynopsis):
        return Verdict("rough", ("Nothing that was released tells how far noise moved the centres.",))
    hidden = synopsis.hidden
    says = f"Noise could hide {100 * hidden:.0f} % of the demand." if isfinite(hidden) else "Noise could hide all of the demand."
    if synopsis.branch == "public" or hidden > MOST_HIDDEN:
        return Verdict("noise", (f"{says} The centres are about those of the empty universe. {WITHOUT_BOUNDS}",))
    return Verdict("good" if hidden <= HIDDEN else "rough", (says,))


def last_step(release: Release, synopsis: Synopsis | None) -> Step | None:
    """The last step, if it led to these centres: a release that was clustered again from its synopsis has others."""
    if synopsis is None or not synopsis.steps:
        return None
    step = synopsis.steps[-1]
    j = len(step.counts)
    if step.centers is None or step.moves is None:
        return step if j == len(release.centers) else None
    reached, domain = step.centers + step.moves, _domain(release)
    reached = reached if domain is None else clip(domain, reached)
    scale = np.abs(release.centers).max(initial=1.0)
    is_here = j <= len(release.centers) and np.allclose(reached, release.centers[:j], rtol=0, atol=1e-6 * scale)
    return step if is_here else None


def _in_bounds(release: Release, ends: Floats) -> Floats:
    """Ends of intervals, cut to the bounds: rows were clipped to these, so their mean lies between."""
    domain = _domain(release)
    return np.clip(ends, domain.lower, domain.upper) if isinstance(domain, Box) else ends


def _domain(release: Release) -> Box | Ball | None:
    """None of a release that was made by hand, without a domain."""
    try:
        return release.domain()
    except InvalidValue:
        return None


def _measures(release: Release, step: Step | None) -> bool:
    """Whether distances of rows to these centres were released at all."""
    return (step is not None and step.distances is not None) or _has_cells(release)


def _has_cells(release: Release) -> bool:
    return isinstance(release.synopsis, Synopsis) and release.synopsis.kind == "cells" and release.synopsis.n_points > 0


def _costs(release: Release, synopsis: Synopsis | None, step: Step | None, widths: Floats) -> tuple[Cost | None, Cost | None]:
    """The mean cost of these centres, and that of one mean; None where nothing tells."""
    if synopsis is None:
        return None, None
    if not _has_cells(release):
        return (None if step is None else mean_cost(step.distances)), mean_cost(synopsis.total)
    points, counts = synopsis.points[synopsis.kept] / widths, synopsis.counts[synopsis.kept]
    n = float(counts.sum())
    if n <= 0:
        return None, None
    spreads = ((synopsis.half[synopsis.kept] / widths) ** 2).sum(axis=1) / 3  # of a row in its cell, if rows lie evenly
    inside = max(0.0, float(counts @ spreads) / n)
    mean = counts @ points / n
    squares = np.concatenate([cdist(block, release.centers / widths, "sqeuclidean").min(axis=1) for block in _blocks(points)])
    about = ((points - mean) ** 2).sum(axis=1)
    return tuple(  # type: ignore[return-value]
        Cost(float(counts @ away) / n + inside, synopsis.deviation * sqrt(float((away**2).sum())) / n)
        for away in (squares, about)
    )


def _spreads(release: Release, cost: Cost, widths: Floats) -> Floats:
    """(k,) the mean cost, or, where cells tell, that of a centre's own rows if it is larger: beside crowds in tight clusters, the
    noise in a wide one with few rows would pass for noise alone. "good" is asked of the mean cost, which is stricter."""
    synopsis, k = release.synopsis, len(release.centers)
    if not _has_cells(release) or not isinstance(synopsis, Synopsis):
        return np.full(k, cost.value)
    points, counts = synopsis.points[synopsis.kept] / widths, synopsis.counts[synopsis.kept]
    apart = [cdist(block, release.centers / widths, "sqeuclidean") for block in _blocks(points)]
    owner, away = (np.concatenate([part(block, axis=1) for block in apart]) for part in (np.argmin, np.min))
    away = away + ((synopsis.half[synopsis.kept] / widths) ** 2).sum(axis=1) / 3
    total, own = (np.bincount(owner, weights, minlength=k) for weights in (counts, counts * away))
    return np.maximum(cost.value, np.where(total > 0, own / np.maximum(total, 1e-300), 0.0))


def _blocks(points: Floats) -> list[Floats]:
    return [points[start : start + BLOCK] for start in range(0, len(points), BLOCK)]


def _all_errors(release: Release, noise: _Noise, step: Step | None) -> Floats:
    """(k,) noise, how far the last step still moved, and how far rows beyond its radius pull: what an interval must hold."""
    assert noise.errors is not None
    if step is None or step.moves is None:
        return noise.errors
    moved = np.sqrt(((step.moves / noise.widths) ** 2).sum(axis=1))
    again = np.arange(len(noise.errors)) % len(moved)  # centres that repeat others stand after them
    return np.asarray(np.sqrt(noise.errors**2 + moved[again] ** 2 + _excess(step) ** 2))


def _excess(step: Step) -> float:
    """How far, on average, rows lie beyond the radius that a step clipped them to."""
    if step.distances is None or step.radius is None:
        return 0.0
    return float(excess(step.distances, np.array([step.radius]))[0])


def median_distance(distances: Distances) -> float | None:
    """The median of released distances; None if no bin shows rows."""
    first = distances.outermost
    if first is None:
        return None
    counts = np.maximum(distances.counts[first:], 0.0)
    place = int(np.argmax(np.cumsum(counts) >= counts.sum() / 2))
    return float(distances.middles[first + place])


def _times(squared: float) -> str:
    """A squared length over another as a factor that people read."""
    factor = sqrt(squared) if isfinite(squared) else np.inf
    return "1000 times" if factor > 1000 else f"{max(factor, 0.01):.2g} times"


def _listed(value: Any) -> Any:
    return None if value is None else value.tolist()
