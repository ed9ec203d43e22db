"""A source as the releases of one fit see it, and the releases that several methods share."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kveil.models._method import Found
from kveil.models._task import Task
from kveil.privatise.pool import Pool
from kveil.solve.shrink import shrunk, weighed, within
from kveil.source import Source
from kveil.space.euclidean import Centers, clip
from kveil.summary.cells import TOP, Lengths, Residuals, lengths, residual_sums, whole
from kveil.summary.frame import Frame

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_LENGTHS = 40  # bins of a distance, four an octave


class Means(NamedTuple):
    """Released cells: noisy counts (cells,), shrunken mean residuals (cells, columns), and the noise in them (cells,)."""

    counts: Floats
    moves: Floats
    errors: Floats  # root mean squared length
    is_weak: NDArray[np.bool_]  # a count that may be noise alone


class View:
    """Rows of a source with lengths in steps of the grid, all columns alike, from the centre of the domain.

    Everything returned here is public: it went through `Pool`, which charges it. Sums that are not, say so.
    """

    def __init__(self, task: Task, pool: Pool, source: Source) -> None:
        self.task, self.pool, self.source = task, pool, source
        domain = task.domain
        self.k, self.d = task.n_clusters, domain.n_columns
        self.whole = replace(Frame.of(domain, task.scaling), nonzeros=getattr(task.tuning, "nonzeros", None))
        self.reach = self.whole.radius
        self.half = np.rint(domain.top * (np.ones(self.d) if self.whole.ratio is None else self.whole.ratio))

    @property
    def length(self) -> float:
        """Of a step, in the units that distances have: those of the data, or half-widths of the bounds."""
        domain = self.task.domain
        return 1 / domain.top if self.task.scaling == "bounds" else float(domain.step.max())

    def found(self, centers: Floats, weights: Floats, errors: Floats, notes: tuple[str, ...] = ()) -> Found:
        """Centres in the units of the data."""
        domain = self.task.domain
        unit = self.whole.unit(domain)
        length = float(np.sqrt(np.mean(np.square(unit))))  # of a step; exact unless columns are scaled apart
        return Found(clip(domain, domain.center + centers * unit), weights, notes, np.minimum(errors, self.reach) * length)

    def frame(self, middle: Floats | None = None, radius: float | None = None) -> Frame:
        """Rows about a released middle, clipped to a released radius; by default the whole domain."""
        base = self.whole.middle if middle is None else np.rint(middle).astype(np.int64)
        return replace(self.whole, middle=base, radius=self.reach if radius is None else int(np.ceil(radius)))

    def rows(self, share: float) -> tuple[float, Integers]:
        """The noisy number of rows, public, and the raw sum of rows, secret."""
        raw_count, raw_sum = self.source.map_reduce(whole, self.whole, grid=self.task.domain)
        return max(10.0, float(self.pool.counts("number of rows", raw_count, share)[0])), raw_sum

    def quantile(self, frame: Frame, q: float, share: float, cap: float, centers: Centers | None = None) -> float:
        """A noisy quantile of the distance to the middle, or to the nearest centre; `cap` if no bin stands out."""
        (raw,) = self.source.map_reduce(lengths, Lengths(frame, self._edges(), centers), grid=self.task.domain)
        counts = self.pool.counts("distances", raw, share)
        counts[counts < 2 * self.pool.deviation(share)] = 0.0
        if not counts.sum() > 0:
            return cap
        place = int(np.argmax(np.cumsum(counts) > (1 - q) * counts.sum()))
        return float(min(cap, max(1.0, 2 * self.reach * 2.0 ** (-place / 4))))

    def means(self, state: Residuals, of_counts: float, of_sums: float, doubts: Floats | None = None) -> Means:
        """Noisy counts and mean residuals of cells, shrunken towards 0 by the noise that is expected in them.

        doubts: (cells,) the squared length that a mean residual is expected to have, if something tells: noise is weighed
        against it, and the errors are those of what comes out.
        """
        counts, sums = self.sums(state, of_counts, of_sums)
        n, radii = np.maximum(counts, 1.0), state.radii.astype(np.float64)
        errors = np.sqrt(self.pool.spread(sums.shape[1], 1.0, of_sums)) * radii / n
        moves = within(
            shrunk(sums / n[:, None], errors**2) if doubts is None else weighed(sums / n[:, None], errors**2, doubts), radii
        )
        if doubts is not None:
            errors = np.sqrt(doubts * errors**2 / np.maximum(doubts + errors**2, 1e-300))
        return Means(counts, moves, errors, counts < max(2 * self.pool.deviation(of_counts), 0.5))

    def sums(self, state: Residuals, of_counts: float, of_sums: float) -> tuple[Floats, Floats]:
        """Noisy counts and summed residuals of cells."""
        raw_counts, raw_sums = self.source.map_reduce(residual_sums, state, grid=self.task.domain)  # secret
        counts = self.pool.counts("cells", raw_counts, of_counts)  # public, charged
        return counts, self.pool.vectors("residuals", raw_sums, TOP, of_sums) * (state.radii / TOP)[:, None]  # public, charged

    def _edges(self) -> Integers:
        return np.array([int((2 * self.reach) ** 2 * 2.0 ** (-(j + 1) / 2)) for j in range(N_LENGTHS - 1)], dtype=np.int64)
