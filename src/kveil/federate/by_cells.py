"""The default protocol: noisy counts of public cells, sums in those that stand out, then steps relative to released centres.

Every reply is a noisy answer about disjoint public cells, so one curator and many parties are the same method with as many noise
draws added: noise grows by the square root of the number of parties, and by nothing else.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Floats, Integers
from kveil.federate.layout import Layout
from kveil.federate.plan import Round, shared_out
from kveil.federate.questions import CellsMessage, SumsMessage, split
from kveil.federate.steps import IS_SURE, STANDS_OUT, Steps, step_rounds, step_weights
from kveil.federate.wire import MOST_NUMBERS
from kveil.partition.midpoints import Level, descendants, frontier
from kveil.solve.placed import Placed
from kveil.solve.wkmeans import thorough_kmeans

FEW_COLUMNS = 3
MOST_CELLS = 2**16  # in a message


def schedule(layout: Layout, epsilon: Fraction | None, delta: Fraction, n_steps: int) -> tuple[Round, ...]:
    """The rounds of a run, a message each: cells of several levels, their sums, and steps."""
    d = layout.domain.n_columns
    few = d <= FEW_COLUMNS
    levels = [level for level in ((8, 12, 16) if few else range(9, min(3 * d, 59) + 1, 5)) if level <= layout.cells.depth]
    levels = levels or [layout.cells.depth]
    of_steps = Fraction(0) if not n_steps else Fraction(1, 5) if few else Fraction(3, 10)
    of_cells = (1 - of_steps) / 2
    weights = [(of_cells / len(levels), 1)] * len(levels) + [(of_cells, 1), *step_weights(of_steps, n_steps)]
    budgets = shared_out(epsilon, delta, weights)
    rounds = [Round("cells", budget, level=level) for budget, level in zip(budgets, levels, strict=False)]
    sums = Round("sums", budgets[len(levels)], counts=Fraction(2, 5) if few else Fraction(3, 10))
    return (*rounds, sums, *step_rounds(budgets[len(levels) + 1 :], d))


class CellsRun(Steps):
    """One run of the protocol."""

    def run(self) -> Placed:
        points, weights = self._points(self._leaves())
        return self.stepped(self.start(thorough_kmeans(points, weights, self.k, self.rng)))

    @property
    def most_cells(self) -> int:
        """How many are asked about in a message, so that their sums fit into the reply."""
        return min(MOST_CELLS, MOST_NUMBERS // (self.layout.domain.n_columns + 1))

    def _leaves(self) -> list[Level]:
        """The cells whose counts stand out from noise and that have no such cell inside; the whole domain if there is none."""
        kept: list[Level] = [(0, np.zeros(1, dtype=np.int64))]
        rounds = self.parts("cells")
        for part, below in zip(rounds, [*rounds[1:], None], strict=True):
            above, parents = kept[-1]
            nodes = descendants(parents, part.level - above)
            (counts,), n = self.asked("cells", CellsMessage(part.level, None if above == 0 else nodes))
            stands_out = counts >= max(STANDS_OUT * self.deviation(part.budget, n), 0.5)
            most = self.most_cells >> (below.level - part.level if below else 1)
            kept.append((part.level, _largest(nodes, counts, stands_out, max(1, most))))
            if not stands_out.any():  # what is not asked is not charged
                break
        return [level for level in frontier(kept) if len(level[1])]

    def _points(self, leaves: list[Level]) -> tuple[Floats, Floats]:
        """Noisy means of cells, kept inside them, and noisy counts; cells that may be empty are left out."""
        (part,), cells = self.parts("sums"), self.layout.cells
        (counts, deviations), n = self.asked("sums", SumsMessage(tuple(leaves)))
        found = [(cells.anchors(codes, level, "l2"), *cells.boxes(codes, level)) for level, codes in leaves]
        anchors, low, high = (np.concatenate(parts) for parts in zip(*found, strict=True))
        is_sure = counts >= max(IS_SURE * self.deviation(split(part)[0], n), 0.5)
        if not is_sure.any():
            return np.zeros((1, low.shape[1])), np.ones(1)
        means = np.clip(anchors + deviations / np.maximum(counts, 1.0)[:, None], low, np.maximum(low, high))
        return means[is_sure], counts[is_sure]


def _largest(nodes: Integers, counts: Floats, is_kept: NDArray[np.bool_], most: int) -> Integers:
    """The kept cells; where there are more than `most`, those with the largest counts."""
    if is_kept.sum() > most:
        is_kept = is_kept & (counts >= np.sort(counts[is_kept])[-most])
    return nodes[is_kept][:most]
