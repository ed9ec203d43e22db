"""Steps towards better centres from noisy answers, whoever gives them: numbers of rows, distances, means of cells, Lloyd steps.

Steps are relative to released centres: short residuals need little noise, and shrinking lets steps average it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kveil.arrays import Bools, Floats, Integers
from kveil.desk.base import Desk
from kveil.methods.base import Found
from kveil.methods.ground import Ground
from kveil.progress import step as progress
from kveil.questions.base import Noisy
from kveil.questions.cells import N_LENGTHS, Lengths, LengthsByCenter, Residuals, RowCount
from kveil.questions.frame import Frame, whole_steps
from kveil.solve.placed import Placed
from kveil.solve.radius import MIDMOST, balanced, kept_part, quantile
from kveil.solve.shrink import TINY, shrunk, shrunk_by_column, weighed, within
from kveil.solve.synopsis import Distances, Step, Synopsis, of_steps
from kveil.space.euclidean import Centers

MOST_STEPS, STEADY = 8, 0.03  # noise in an average centre, over the clip radius, for a step more
FURTHER, N_PLAIN = 0.5, 2  # how much further than the mean steps go; and how many last ones do not, so that labels settle
SEVERAL = 12  # columns: up to so many, shrinking by column and what clipping cuts off gain nothing, and cost at long noise
STANDS_OUT = 15.0  # deviations of its rows, for a centre to have a radius of its own
NO_SIGNAL = "too little budget for so many centres: all are one private mean. Use delta > 0, a smaller domain or fewer centres."


class Means(NamedTuple):
    """Released cells: noisy counts (cells,), shrunken mean residuals (cells, columns), and the noise in them (cells,)."""

    counts: Floats
    moves: Floats
    errors: Floats  # root mean squared length
    is_weak: Bools  # a count that may be noise alone


class Taken(NamedTuple):
    """How a step went, in steps of the grid: centres (k, columns) before it, noise in each count, moves, and the clip radius; and
    the best guess (k, columns) of the means, of this step and those before, which a longer move goes beyond."""

    before: Floats
    count_noise: float
    moves: Floats
    radius: float | None
    known: Floats | None = None


def number_of_rows(desk: Desk, share: float, least: float = 10.0) -> float:
    """A noisy number of rows, `least` at the least. Public, charged."""
    ((counts, _),) = desk.ask(RowCount(), share)
    return max(least, float(counts[0]))


def distance(
    ground: Ground, frame: Frame, q: float, share: float, cap: float, centers: Centers | None = None
) -> tuple[float, Distances]:
    """A noisy quantile of the distance of rows to the middle of a frame, or to the nearest of some centres, in steps; and the
    counts that it was read from, for whoever asks later. Public, charged."""
    (shown,) = ground.desk.ask(Lengths.binned(frame, ground.reach, centers), share)
    bins = binned(shown, ground.reach, is_pure=ground.desk.kind != "zcdp")
    return min(cap, max(1.0, quantile(bins, q) or cap)), in_units(bins, ground.length)


def binned(shown: Noisy, reach: int, *, is_pure: bool) -> Distances:
    """Released counts of `Lengths` with the edges of their bins, in steps."""
    return Distances(shown.values, shown.noise, 2 * reach * 2.0 ** (-np.arange(N_LENGTHS) / 4), is_pure=is_pure)


def in_units(bins: Distances, length: float) -> Distances:
    """The same counts, their edges in the distance of the model, whose step has this length."""
    return replace(bins, outer=bins.outer * length)


def asked_means(
    desk: Desk, question: Residuals, of_counts: Any, of_sums: Any, *, by_column: bool = False, kept: float = 1.0
) -> Means:
    """Noisy counts and shrunken mean residuals of cells; see `means`. Public, charged."""
    counts, sums = desk.ask(question, of_counts, of_sums)
    found = means(counts, sums, question.radii, by_column=by_column, kept=kept)
    return found._replace(moves=widened(found.moves, question.columns, np.zeros(question.bases.shape)))


def widened(narrow: Floats, columns: Integers | None, otherwise: Floats) -> Floats:
    """What was found in some columns, with what holds otherwise in the others."""
    if columns is None:
        return narrow
    wide = otherwise.copy()
    wide[:, columns] = narrow
    return wide


def means(
    counts: Noisy, sums: Noisy, radii: Any, *, least: float = 2.0, squared_errors: Floats | None = None, known: Any = 0.0,
    by_column: bool = False, kept: Any = 1.0,
) -> Means:  # fmt: skip
    """Mean residuals of cells, shrunken towards what is known by the noise that is expected in them.

    least: deviations that a count needs to be acted upon. squared_errors: (cells,) what is expected of the squared length of a
    mean residual, if something tells: noise is weighed against it, and the errors are those of what comes out. known: (cells,
    columns) what earlier answers say of the mean residuals; default 0, nothing but that they are about their bases.
    by_column: shrink more in columns where the residuals of all cells show little. kept: what clipping left of rows, on average.
    """
    n, radii = np.maximum(counts.values, 1.0), np.asarray(radii, dtype=np.float64)
    whole = np.broadcast_to(n * kept, n.shape)
    errors = sums.noise * radii / whole
    found = sums.values / whole[:, None]
    if squared_errors is None:
        shrink = shrunk_by_column if by_column else shrunk
        moves = within(known + shrink(found - known, errors**2), radii / kept)
    else:
        moves = within(weighed(found, errors**2, squared_errors), radii)
    if squared_errors is not None:
        errors = np.sqrt(squared_errors * errors**2 / np.maximum(squared_errors + errors**2, 1e-300))
    return Means(counts.values, moves, errors, counts.values < max(least * counts.noise, 0.5))


def step(
    desk: Desk, frame: Frame, placed: Placed, radii: Any, of_counts: Any, of_sums: Any, *, least: float = 2.0,
    squared_errors: Floats | None = None, is_plain: bool = True, known: Floats | None = None,
    kept: Any = 1.0,
) -> tuple[Placed, Taken]:  # fmt: skip
    """A Lloyd step on residuals about released centres, clipped to a radius, or each to one of its own. A centre whose count is
    weak stays.

    is_plain: others go up to half as far again as the mean says, by how far it stands out from its noise: where labels change
    slowly, that saves steps. With labels as they are, up to twice as far costs no more than staying. known: (k, columns) the best
    guess of the means so far, which this step's is averaged with by what noise explains of the difference; default the centres.
    kept: what the radius leaves of the length of rows, on average, of all or for each centre; for more than `SEVERAL` columns.
    """
    codes = whole_steps(placed.centers, frame.radius)
    clipped_to = np.maximum(np.ceil(np.broadcast_to(radii, len(codes))), 1).astype(np.int64)
    counts, sums = desk.ask(Residuals.about(frame, codes, clipped_to), of_counts, of_sums)  # public, charged
    before = codes.astype(np.float64)
    away = np.zeros_like(before) if known is None else known - before
    by_column = before.shape[1] > SEVERAL
    kept = kept if by_column else 1.0
    near = away if frame.columns is None else away[:, frame.columns]
    found = means(
        counts, sums, clipped_to, least=least, squared_errors=squared_errors, known=near, by_column=by_column, kept=kept
    )
    moves = np.where(found.is_weak[:, None], away, widened(found.moves, frame.columns, away))
    best = within(before + moves, float(frame.radius))
    if not is_plain:
        squares = (moves**2).sum(axis=1)
        moves = moves * (1 + FURTHER * squares / np.maximum(squares + found.errors**2, TINY))[:, None]
    after = Placed(
        within(before + moves, float(frame.radius)), found.counts, np.where(found.is_weak, placed.errors, found.errors)
    )
    radius = float(np.average(clipped_to, weights=np.maximum(found.counts, 1.0)))
    return after, Taken(before, counts.noise, moves, radius, best)


def affordable_steps(ground: Ground, n: float, k: int, fewest: int) -> int:
    """As many relative steps, `fewest` at least, as leave the noise in an average centre below `STEADY` of the radius in each but
    the last, which has as much budget as with the fewest. From released and public numbers."""
    desk, earlier = ground.desk, (1 - 1 / fewest) * ground.desk.left
    if not earlier:
        return fewest
    noises = {t: np.sqrt(desk.spread(ground.width, 1.0, 0.9 * earlier / (t - 1))) for t in range(fewest + 1, MOST_STEPS + 1)}
    return max((t for t, noise in noises.items() if noise * k <= STEADY * n), default=fewest)


def relative_steps(
    ground: Ground, placed: Placed, n_steps: int, squared_errors: Floats | None = None, *, n: float | None = None,
    of_last: float | None = None,
) -> tuple[Placed, tuple[Step, ...]]:  # fmt: skip
    """`n_steps` Lloyd steps with all that is left of the budget, each on residuals clipped to a radius measured before it: where
    the centres are then, and how each step went.

    squared_errors: (k,) how far off each centre is, squared, where that is known: the first step weighs its mean against it.
    n: the released number of rows, if there is one: it tells whether every centre can have a radius of its own.
    of_last: the last step's share of what is left; default as much as the others have.
    """
    kept = ground.desk.left * (of_last or 1 / max(n_steps, 1))  # for the last step
    desk, taken, is_low = ground.desk, [], ground.d <= 3
    radii: Any = float(ground.reach)
    kept_parts: Any = 1.0
    known: Floats | None = None
    of_counts = 0.25 if is_low else 0.05  # sums of few columns carry little noise
    for number in range(n_steps):
        progress("relative step", number + 1, n_steps)
        share = (desk.left - kept) / (n_steps - number - 1) if number < n_steps - 1 else desk.left
        of_radius = 0.15 * share if desk.kind == "pure" else min(0.1 * share, 0.02)
        rest = share - of_radius
        shares = of_counts * rest, (1 - of_counts) * rest
        near = Centers(whole_steps(placed.centers, ground.reach).astype(np.float64), None)
        if is_low:
            radii, bins = distance(ground, ground.whole, MIDMOST, of_radius, radii, near)
        else:
            radii, kept_parts, bins = _radii(ground, near, of_radius, shares[1], radii, n)
        is_plain = is_low or number >= n_steps - N_PLAIN
        placed, how = step(
            desk, ground.whole, placed, radii, *shares, squared_errors=squared_errors, is_plain=is_plain, known=known,
            kept=kept_parts,
        )  # fmt: skip
        known = how.known
        taken.append(noted(ground, placed, how, bins))
        squared_errors = None
    return placed, tuple(taken)


def _radii(
    ground: Ground, near: Centers, share: float, of_sums: float, before: Any, n: float | None
) -> tuple[Any, Any, Distances]:
    """Clip radii that balance noise against clipping, in steps, what they leave of rows, and the distances of all rows. Public,
    charged.

    Each centre has its own where an average one has so many rows that its distances stand out by themselves: counts by centre
    and bin cost as much as counts by bin, but added up over centres they have more noise, and some rows would be lost in it.
    """
    desk, k, is_pure, before = ground.desk, len(near.codes), ground.desk.kind != "zcdp", float(np.max(before))
    noise = float(np.sqrt(desk.spread(ground.width, 1.0, of_sums)))
    enough = STANDS_OUT * desk.deviation(share) * N_LENGTHS**0.5
    if n is None or n < k * enough:
        (shown,) = desk.ask(Lengths.binned(ground.whole, ground.reach, near), share)
        bins = binned(shown, ground.reach, is_pure=is_pure)
        radius = balanced_radius(bins, noise, k, ground.reach, before)
        return radius, kept_part(bins, radius), in_units(bins, ground.length)
    (shown,) = desk.ask(LengthsByCenter.binned(ground.whole, ground.reach, near), share)
    table = shown.values.reshape(k, N_LENGTHS)
    bins = binned(Noisy(table.sum(axis=0), shown.noise * k**0.5), ground.reach, is_pure=is_pure)
    common = balanced_radius(bins, noise, k, ground.reach, before)
    each = [binned(Noisy(row, shown.noise), ground.reach, is_pure=is_pure) for row in table]
    own = [balanced_radius(row, noise, 1, 2 * ground.reach, common) for row in each]
    is_own = table.sum(axis=1) >= enough
    parts = np.where(is_own, [kept_part(*pair) for pair in zip(each, own, strict=True)], kept_part(bins, common))
    return np.where(is_own, own, common), parts, in_units(bins, ground.length)


def balanced_radius(bins: Distances, noise: float, k: int, cap: float, otherwise: Any) -> Any:
    """The radius, in steps, for means of a k-th of the rows in these bins each, whose sums have noise of this length for a radius
    of 1; `otherwise` if no bin shows rows."""
    rows = max(float(bins.counts.sum()), 1.0)
    found = balanced(bins, noise * k / rows)
    return otherwise if found is None else min(float(cap), max(1.0, found))


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
    error = np.sqrt(desk.spread(ground.width, r, 0.9 * share)) / rows
    narrow = within(shrunk(sums.values / rows, np.array([error**2])), float(r))
    move = widened(narrow, frame.columns, np.zeros((1, ground.d)))
    center = within(base.astype(np.float64) + move, ground.reach)
    placed, how = Placed(center, counts.values, np.array([error])), Taken(base.astype(np.float64), counts.noise, move, float(r))
    middle = None if total is None else ground.positions(about)
    kept: Synopsis = of_steps(
        ground.d, (noted(ground, placed, how),), n, n_deviation, middle=middle, total=total, summed=ground.summed
    )
    return ground.found(np.tile(center, (k, 1)), np.full(k, 1 / k), np.full(k, error), (NO_SIGNAL,), kept)
