"""Steps towards better centres from noisy answers, whoever gives them: numbers of rows, distances, means of cells, Lloyd steps.

Steps are relative to released centres: short residuals need little noise, and shrinking lets steps average it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kveil.arrays import Bools, Floats
from kveil.desk.base import Desk
from kveil.methods.base import Found
from kveil.methods.ground import Ground
from kveil.progress import step as progress
from kveil.questions.base import Noisy
from kveil.questions.cells import N_LENGTHS, Lengths, Residuals, RowCount
from kveil.questions.frame import Frame, whole_steps
from kveil.solve.placed import Placed
from kveil.solve.shrink import shrunk, weighed, within
from kveil.solve.synopsis import Distances, Step, Synopsis, of_steps
from kveil.space.euclidean import Centers

MIDMOST = 0.85  # of the rows are not clipped in a step
NO_SIGNAL = "too little budget for so many centres: all are one private mean. Use delta > 0, a smaller domain or fewer centres."


class Means(NamedTuple):
    """Released cells: noisy counts (cells,), shrunken mean residuals (cells, columns), and the noise in them (cells,)."""

    counts: Floats
    moves: Floats
    errors: Floats  # root mean squared length
    is_weak: Bools  # a count that may be noise alone


class Taken(NamedTuple):
    """How a step went, in steps of the grid: centres (k, columns) before it, noise in each count, moves, and the clip radius."""

    before: Floats
    count_noise: float
    moves: Floats
    radius: float | None


def number_of_rows(desk: Desk, share: float, least: float = 10.0) -> float:
    """A noisy number of rows, `least` at the least. Public, charged."""
    ((counts, _),) = desk.ask(RowCount(), share)
    return max(least, float(counts[0]))


def quantile(desk: Desk, question: Lengths, q: float, share: Any, cap: float, reach: int) -> float:
    """A noisy quantile of a distance, in steps; `cap` if no bin stands out. Public, charged."""
    return _quantile(desk.ask(question, share)[0], q, cap, reach)


def _quantile(shown: Noisy, q: float, cap: float, reach: int) -> float:
    counts = np.where(shown.values < 2 * shown.noise, 0.0, shown.values)
    if not counts.sum() > 0:
        return cap
    place = int(np.argmax(np.cumsum(counts) > (1 - q) * counts.sum()))
    return float(min(cap, max(1.0, 2 * reach * 2.0 ** (-place / 4))))


def distance(
    ground: Ground, frame: Frame, q: float, share: float, cap: float, centers: Centers | None = None
) -> tuple[float, Distances]:
    """A noisy quantile of the distance of rows to the middle of a frame, or to the nearest of some centres, in steps; and the
    counts that it was read from, for whoever asks later. Public, charged."""
    (shown,) = ground.desk.ask(Lengths.binned(frame, ground.reach, centers), share)
    outer = 2 * ground.reach * ground.length * 2.0 ** (-np.arange(N_LENGTHS) / 4)
    bins = Distances(shown.values, shown.noise, outer, is_pure=ground.desk.kind != "zcdp")
    return _quantile(shown, q, cap, ground.reach), bins


def asked_means(desk: Desk, question: Residuals, of_counts: Any, of_sums: Any) -> Means:
    """Noisy counts and shrunken mean residuals of cells. Public, charged."""
    counts, sums = desk.ask(question, of_counts, of_sums)
    return means(counts, sums, question.radii)


def means(counts: Noisy, sums: Noisy, radii: Any, *, least: float = 2.0, squared_errors: Floats | None = None) -> Means:
    """Mean residuals of cells, shrunken towards 0 by the noise that is expected in them.

    least: deviations that a count needs to be acted upon. squared_errors: (cells,) what is expected of the squared length of a
    mean residual, if something tells: noise is weighed against it, and the errors are those of what comes out.
    """
    n, radii = np.maximum(counts.values, 1.0), np.asarray(radii, dtype=np.float64)
    errors = sums.noise * radii / n
    found = sums.values / n[:, None]
    moves = within(shrunk(found, errors**2) if squared_errors is None else weighed(found, errors**2, squared_errors), radii)
    if squared_errors is not None:
        errors = np.sqrt(squared_errors * errors**2 / np.maximum(squared_errors + errors**2, 1e-300))
    return Means(counts.values, moves, errors, counts.values < max(least * counts.noise, 0.5))


def step(
    desk: Desk, frame: Frame, placed: Placed, radius: float, of_counts: Any, of_sums: Any, *, least: float = 2.0,
    squared_errors: Floats | None = None,
) -> tuple[Placed, Taken]:  # fmt: skip
    """A Lloyd step on residuals about released centres, clipped to a radius. A centre whose count is weak stays."""
    codes = whole_steps(placed.centers, frame.radius)
    radii = np.full(len(codes), max(1, int(np.ceil(radius))), dtype=np.int64)
    counts, sums = desk.ask(Residuals.about(frame, codes, radii), of_counts, of_sums)  # public, charged
    found = means(counts, sums, radii, least=least, squared_errors=squared_errors)
    before, moves = codes.astype(np.float64), np.where(found.is_weak[:, None], 0.0, found.moves)
    after = Placed(
        within(before + moves, float(frame.radius)), found.counts, np.where(found.is_weak, placed.errors, found.errors)
    )
    return after, Taken(before, counts.noise, moves, float(radii[0]))


def relative_steps(
    ground: Ground, placed: Placed, n_steps: int, squared_errors: Floats | None = None
) -> tuple[Placed, tuple[Step, ...]]:
    """`n_steps` Lloyd steps with all that is left of the budget, each on residuals clipped to a radius measured before it: where
    the centres are then, and how each step went.

    squared_errors: (k,) how far off each centre is, squared, where that is known: the first step weighs its mean against it.
    """
    desk, radius, taken = ground.desk, float(ground.reach), []
    of_counts = 0.25 if ground.d <= 3 else 0.05  # sums of few columns carry little noise
    for number in range(n_steps):
        progress("relative step", number + 1, n_steps)
        share = desk.left / (n_steps - number)
        of_radius = 0.15 * share if desk.kind == "pure" else min(0.1 * share, 0.02)
        codes = whole_steps(placed.centers, ground.reach)
        radius, bins = distance(ground, ground.whole, MIDMOST, of_radius, radius, Centers(codes.astype(np.float64), None))
        rest = share - of_radius
        shares = of_counts * rest, (1 - of_counts) * rest
        placed, how = step(desk, ground.whole, placed, radius, *shares, squared_errors=squared_errors)
        taken.append(noted(ground, placed, how, bins))
        squared_errors = None
    return placed, tuple(taken)


def noted(ground: Ground, placed: Placed, how: Taken, bins: Distances | None = None) -> Step:
    """A step as a synopsis keeps it: positions in the units of the columns, lengths in the distance of the model."""
    errors = np.minimum(placed.errors, ground.reach) * ground.length
    centers, moves, length = ground.positions(how.before), how.moves * ground.unit, ground.length
    radius = None if how.radius is None else how.radius * length
    return Step(placed.counts, how.count_noise, errors, centers, moves, radius, bins)


def one_mean(ground: Ground, about: Floats, radius: float, n: float, n_deviation: float, total: Distances | None = None) -> Found:
    """No signal for k centres: one mean, k times. Its count is averaged with the first one by inverse variance.

    total: rows by distance to the middle, `about`, if that was asked for; for the synopsis alone.
    """
    desk, k, share = ground.desk, ground.k, ground.desk.left
    frame = ground.frame(about)
    r = max(1, int(np.ceil(radius)))
    base = frame.middle[None, :]
    counts, sums = desk.ask(Residuals.about(frame, base, np.array([r])), 0.1 * share, 0.9 * share)  # public, charged
    trust = np.array([1 / max(n_deviation, 1e-9) ** 2, 1 / max(counts.noise, 1e-9) ** 2])
    rows = max(1.0, float(trust @ [n, counts.values[0]] / trust.sum()))
    error = np.sqrt(desk.spread(ground.d, r, 0.9 * share)) / rows
    move = within(shrunk(sums.values / rows, np.array([error**2])), float(r))
    center = within(base.astype(np.float64) + move, ground.reach)
    placed, how = Placed(center, counts.values, np.array([error])), Taken(base.astype(np.float64), counts.noise, move, float(r))
    middle = None if total is None else ground.positions(about)
    kept: Synopsis = of_steps(ground.d, (noted(ground, placed, how),), n, n_deviation, middle=middle, total=total)
    return ground.found(np.tile(center, (k, 1)), np.full(k, 1 / k), np.full(k, error), (NO_SIGNAL,), kept)
