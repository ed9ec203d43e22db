"""Steps relative to released centres: small residuals need little noise, and shrinking lets steps average it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kveil.models._method import Found
from kveil.models._view import View
from kveil.solve.placed import Placed
from kveil.solve.shrink import shrunk, within
from kveil.source.progress import step as progress
from kveil.space.euclidean import Centers
from kveil.summary.cells import Residuals
from kveil.summary.frame import whole_steps

Floats = NDArray[np.float64]

NO_SIGNAL = "too little budget for so many centres: all are one private mean. Use delta > 0, a smaller domain or fewer centres."


def relative_steps(view: View, placed: Placed, n_steps: int, doubts: Floats | None = None) -> Placed:
    """`n_steps` Lloyd steps with all that is left of the budget, each on residuals clipped to a radius measured before it.

    doubts: (k,) how far off each centre is, squared, where that is known: the first step then weighs its mean against it.
    """
    radius = float(view.reach)
    of_counts = 0.25 if view.d <= 3 else 0.05  # sums of few columns carry little noise
    for step in range(n_steps):
        progress("relative step", step + 1, n_steps)
        share = view.pool.left / (n_steps - step)
        of_radius = 0.15 * share if view.pool.kind == "pure" else min(0.1 * share, 0.02)
        codes = whole_steps(placed.centers, view.reach)
        centers = Centers(codes.astype(np.float64), None)
        radius = view.quantile(view.whole, 0.85, of_radius, radius, centers)
        radii = np.full(len(codes), max(1, int(np.ceil(radius))), dtype=np.int64)
        state = Residuals(view.whole, centers, "measured", "measured", codes, radii)
        found = view.means(state, of_counts * (share - of_radius), (1 - of_counts) * (share - of_radius), doubts)
        doubts = None
        moved = codes.astype(np.float64) + np.where(found.is_weak[:, None], 0.0, found.moves)
        placed = Placed(within(moved, view.reach), found.counts, np.where(found.is_weak, placed.errors, found.errors))
    return placed


def one_mean(view: View, about: Floats, radius: float, n: float, n_deviation: float) -> Found:
    """No signal for k centres: one mean, k times. Its count is averaged with the first one by inverse variance."""
    share = view.pool.left
    frame = view.frame(about)
    r = max(1, int(np.ceil(radius)))
    base = frame.middle[None, :]
    state = Residuals(frame, Centers(base.astype(np.float64), None), "measured", "measured", base, np.array([r]))
    counts, sums = view.sums(state, 0.1 * share, 0.9 * share)
    trust = np.array([1 / max(n_deviation, 1e-9) ** 2, 1 / max(view.pool.deviation(0.1 * share), 1e-9) ** 2])
    rows = max(1.0, float(trust @ [n, counts[0]] / trust.sum()))
    error = np.sqrt(view.pool.spread(view.d, r, 0.9 * share)) / rows
    move = within(shrunk(sums / rows, np.array([error**2])), float(r))
    center = within(base.astype(np.float64) + move, view.reach)
    return view.found(np.tile(center, (view.k, 1)), np.full(view.k, 1 / view.k), np.full(view.k, error), (NO_SIGNAL,))
