"""What a fit released besides its centres, and what can still be read off it: all of it was charged already.

Cells with noisy counts, rows by their distance to the nearest centre, every step towards the centres. A function of these is
post-processing: it needs no rows and no budget, and the guarantee of the release covers it. Positions are in the units of
their columns, and lengths in the distance of the model: units of the data, or half-widths of the bounds where columns are
scaled (`scaling="bounds"`). Without noise (epsilon = infinity) counts are raw, and no guarantee covers them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log, sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.solve.denoise import Branch

Kind = Literal["cells", "leaves", "centers"]

N_BINS = 40
PER_OCTAVE = 4
EMPTY = 0.1  # empty bins that pass the threshold of `mean_cost`, expected, if noise is Laplace; half as many if Gaussian
GAUSSIAN = 3.1
LARGEST, OF_NAMES = 64 * 2**20, 2**20  # bytes of the file, and of what it holds besides numbers


TOO_LARGE = "no synopsis is kept: it would take more than 64 MiB. Centres and guarantee are whole."
NOT_FINITE = "no synopsis is kept: a number in it is not finite. Centres and guarantee are whole."


class Cost(NamedTuple):
    """An estimated mean cost, and the standard deviation of the noise in it."""

    value: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Distances:
    """Noisy numbers of rows by their distance to the middle, or to the nearest of some centres: the cheapest estimate of a cost.

    counts: (40,) noisy, as drawn, negative ones too; the farthest bin first, four bins an octave.
    deviation: standard deviation of the noise in each count.
    outer: (40,) outer edge of every bin, in the distance of the model. The last bin begins at 0.
    is_pure: whether the noise is Laplace (pure), not Gaussian.
    """

    counts: Floats
    deviation: float
    outer: Floats
    is_pure: bool

    def __post_init__(self) -> None:
        _settle(self, counts=(N_BINS,), outer=(N_BINS,))

    @property
    def threshold(self) -> float:
        """What a count must pass to show rows: about 0.1 of 40 empty bins do (Gaussian noise: 0.05)."""
        return self.deviation * (log(N_BINS / EMPTY) / sqrt(2) if self.is_pure else GAUSSIAN)

    @property
    def middles(self) -> Floats:
        """(40,) a distance for the rows of each bin: the geometric middle of its edges; of the last one, which begins at 0, the
        root mean square of distances that lie evenly."""
        found: Floats = self.outer * 2.0 ** (-0.5 / PER_OCTAVE)
        found[-1] = self.outer[-1] / sqrt(3)
        return found

    @property
    def outermost(self) -> int | None:
        """The farthest bin whose count shows rows; None if none does."""
        shown = np.flatnonzero(self.counts > self.threshold)
        return int(shown[0]) if len(shown) else None


def mean_cost(distances: Distances | None) -> Cost | None:
    """The mean squared distance that these counts tell, in the squared distance of the model; None if no bin shows rows.

    Bins farther than the outermost one that shows rows are left out: noise in one of them would weigh more than all rows.
    About the middle it is the cost of one mean, about centres that of the centres. For comparing, not a result: over 300 fits
    it was 0.8 to 1.1 times the true mean cost, and more often too small than too large, because few rows far out show nowhere.

    >>> far = Distances(np.eye(1, 40, 8).ravel() * 100, 1.0, 8.0 * 2.0 ** (-np.arange(40) / 4), True)
    >>> round(mean_cost(far).value, 3)  # 100 rows at a distance between 1.68 and 2
    3.364
    """
    first = None if distances is None else distances.outermost
    if distances is None or first is None:
        return None
    counts, squares = distances.counts[first:], distances.middles[first:] ** 2
    n, total = float(counts.sum()), float(counts @ squares)
    if n <= 0 or total <= 0:
        return None
    return Cost(total / n, distances.deviation * float(np.sqrt((squares**2).sum())) / n)


@dataclass(frozen=True, eq=False)
class Step:
    """One released step towards the centres. A field is None where the method has no such thing.

    counts: (j,) noisy numbers of rows nearest to each centre, as drawn. j is n_clusters, or fewer where the budget told fewer
        centres apart, or all centres are one mean: then j is 1.
    count_deviation: standard deviation of the noise in one of them.
    errors: (j,) standard error of each centre after the step: the root mean squared length of the noise in it, in the distance
        of the model. (`Release.errors` is the same figure in the units of the data; columns that are scaled make them differ.)
    centers: (j, d) where the centres were before the step, in the units of the columns.
    moves: (j, d) how far the step moved each, in the units of the columns; 0 for a centre whose count was weak.
    radius: rows farther than this from their centre counted as if they lay at it, in the distance of the model; where every
        centre had a radius of its own, their mean by rows.
    distances: rows by distance to the nearest of `centers`, measured before the step. Of a k-median: to the nearest seed, before
        all of its steps.
    """

    counts: Floats
    count_deviation: float
    errors: Floats
    centers: Floats | None = None
    moves: Floats | None = None
    radius: float | None = None
    distances: Distances | None = None

    def __post_init__(self) -> None:
        j, d = len(np.asarray(self.counts)), None if self.centers is None else np.shape(self.centers)[-1]
        _settle(self, counts=(j,), errors=(j,), centers=(j, d), moves=(j, d))


@dataclass(frozen=True, eq=False)
class Projected:
    """The leaves of a tree that saw p directions of many columns: they tell how many clusters there are, and not where.

    points, half: (m, p) places of the leaves along the axes, from the middle, and half-widths of their boxes; in the distance of
        the model.  counts: (m,) their weights.  deviation: standard deviation of the noise in one count.
    axes: (d, p) the directions, of length about 1, in a space whose columns are in the distance of the model.
    most: how many centres of equal size have a mean whose noise is shorter than the radius of the rows.
    share: of a row's squared distance from the middle, what the axes see: p / d of random ones.
    """

    points: Floats
    counts: Floats
    half: Floats
    axes: Floats
    most: float
    share: float
    deviation: float

    def __post_init__(self) -> None:
        m, p = np.shape(self.points)
        _settle(self, points=(m, p), counts=(m,), half=(m, p), axes=(None, p))


@dataclass(frozen=True, eq=False)
class Synopsis:
    """What a fit released besides its centres. Every number here was charged or is public.

    kind: what a point is. "cells": the middle of a cell of a grid over at most 3 columns, whose cells differ in size. "leaves":
        the released mean (or the middle) of a leaf of a tree that saw all columns. "centers": the released mean of a cluster
        that was found in a projection, or nothing, where a method has no points.
    points: (m, d) in the units of the columns; m may be 0.
    counts: (m,) noisy numbers of rows. Cells: as drawn, negative ones too, but that cells which stand out together have
        an even share of their sum. Leaves: their weights, a quarter of a weak count.
    kept: (m,) whether a count stands out, by itself or together with others (cells); True for other kinds.
    half: (m, d) half-widths of the box behind a point, in the units of the columns; 0 for "centers".
    deviation: standard deviation of the noise in one count.
    rows, rows_deviation: the noisy number of rows, at least 10 or so, and the standard deviation of its noise.
    middle: (d,) the released mean of all rows, in the units of the columns.
    total: rows by distance to the middle: `mean_cost(total)` is the cost of one mean.
    steps: every released step, the last one last.
    errors: (m,) of kind "centers": standard error of each point, in the distance of the model.
    projected: of kind "centers": the leaves that the clusters were found from.
    summed: (d,) in which columns sums of rows were asked for; in the others centres have the released mean of all rows. None: in
        all.
    """

    kind: Kind
    points: Floats
    counts: Floats
    kept: Bools
    half: Floats
    deviation: float
    rows: float
    rows_deviation: float
    middle: Floats | None = None
    total: Distances | None = None
    steps: tuple[Step, ...] = ()
    errors: Floats | None = None
    projected: Projected | None = None
    summed: Bools | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f'a synopsis is of kind "cells", "leaves" or "centers", not {self.kind!r}.')
        m, d = np.shape(self.points)
        _settle(self, points=(m, d), counts=(m,), kept=(m,), half=(m, d), middle=(d,), errors=(m,), summed=(d,))
        object.__setattr__(self, "steps", tuple(self.steps))

    @property
    def n_points(self) -> int:
        return len(self.points)


def of_steps(n_columns: int, steps: tuple[Step, ...], rows: float, rows_deviation: float, **more: Any) -> Synopsis:
    """The synopsis of a method that has steps and no points."""
    none = np.zeros((0, n_columns))
    return Synopsis("centers", none, np.zeros(0), np.zeros(0, dtype=bool), none, 0.0, rows, rows_deviation, steps=steps, **more)


@dataclass(frozen=True, eq=False)
class UniverseSynopsis:
    """What a fit on a public universe released besides its centres: noisy counts of the cells of a public partition.

    sites: (m,) the point in the middle of every cell; a point of the universe is in the cell of the site nearest to it.
    counts: (m,) noisy numbers of rows, as drawn.  sizes: (m,) how many points of the universe a cell has.
    deviation: standard deviation of the noise in one count.
    hidden: the share of the demand that noise could hide; infinite if the counts add up to nothing.
    branch: how counts became masses: "kept", "projected", or "public" where the demand was taken as spread like the universe.
    """

    sites: Integers
    counts: Floats
    sizes: Integers
    deviation: float
    hidden: float
    branch: Branch

    def __post_init__(self) -> None:
        if self.branch not in get_args(Branch):
            raise ValueError(f'a branch is "public", "projected" or "kept", not {self.branch!r}.')
        m = len(np.asarray(self.sites))
        _settle(self, sites=(m,), counts=(m,), sizes=(m,))


def why_left_out(synopsis: Synopsis | UniverseSynopsis) -> str | None:
    """Why a synopsis cannot be saved, as a note; None if it can. What was charged for must never be lost to it."""
    return TOO_LARGE if size_of(synopsis) > LARGEST - OF_NAMES else None if is_finite(synopsis) else NOT_FINITE


def size_of(part: Any) -> int:
    """Bytes of all arrays of a synopsis, or of a part of one."""
    values = [getattr(part, field.name) for field in fields(part)] if hasattr(part, "__dataclass_fields__") else part
    return sum(
        value.nbytes if isinstance(value, np.ndarray)
        else size_of(value) if isinstance(value, tuple) or hasattr(value, "__dataclass_fields__") else 0
        for value in values
    )  # fmt: skip


def is_finite(part: Any) -> bool:
    """Whether all numbers of a synopsis are finite; `hidden` of a universe need not be."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    values.pop("hidden", None)
    return all(_is_finite(value) for value in values.values())


def _is_finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(is_finite(entry) for entry in value)
    if hasattr(value, "__dataclass_fields__"):
        return is_finite(value)
    return value is None or isinstance(value, str) or bool(np.isfinite(value).all())


def _settle(part: Any, **shapes: tuple[int | None, ...]) -> None:
    """Arrays of a frozen part as copies that nobody can change, each of its shape."""
    for name, shape in shapes.items():
        value = getattr(part, name)
        if value is None:
            continue
        array = np.array(value, dtype=TYPES.get(name, np.float64), order="C")
        if array.ndim != len(shape) or any(n is not None and n != size for n, size in zip(shape, array.shape, strict=True)):
            raise ValueError(f"the {name} of a {type(part).__name__} do not fit the rest of it.")
        array.setflags(write=False)
        object.__setattr__(part, name, array)
    for field in fields(part):
        kind, value = {"float": float, "float | None": float, "bool": bool}.get(str(field.type)), getattr(part, field.name)
        if kind is not None and value is not None:
            object.__setattr__(part, field.name, kind(value))


TYPES: dict[str, Any] = {"kept": np.bool_, "summed": np.bool_, "sites": np.int64, "sizes": np.int64}
