"""A noisy sample of every party's rows as a start, then steps: for study and parity. Far behind "cells" wherever measured."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kveil.desk.seeds import projected
from kveil.federate.layout import Layout
from kveil.federate.picks import LARGEST, SampleMessage
from kveil.federate.plan import Round, shared_out
from kveil.federate.questions import CellsMessage
from kveil.federate.steps import Steps, step_rounds, step_weights
from kveil.federate.wire import MOST_NUMBERS
from kveil.solve.placed import Placed
from kveil.solve.wkmeans import thorough_kmeans

OF_SAMPLE, OF_SIZE = Fraction(1, 4), Fraction(1, 10)  # of the budget for the sample; of that for the number of rows
PER_CLUSTER = 20  # rows in the sample, of all parties together
MOST_ROWS = 2**16


def schedule(layout: Layout, epsilon: Fraction | None, delta: Fraction, n_steps: int) -> tuple[Round, ...]:
    """The noisy number of rows, a noisy sample, and steps."""
    share = OF_SAMPLE if n_steps else Fraction(1)
    weights = [(share * OF_SIZE, 1), (share * (1 - OF_SIZE), 1), *step_weights(1 - share, n_steps)]
    size, sample, *steps = shared_out(epsilon, delta, weights)
    return Round("cells", size, level=0), Round("sample", sample), *step_rounds(steps, layout.domain.n_columns)


class SampleRun(Steps):
    """One run of the protocol. How many rows a party gives follows from its noisy number of rows: from the true one the
    sample's length would tell it."""

    def run(self) -> Placed:
        sizes = self.answered("cells", CellsMessage(0))
        all_rows, wanted = sum(max(1, size) for size in sizes.values()), PER_CLUSTER * self.k
        points, most = [], min(MOST_ROWS, MOST_NUMBERS // self.layout.domain.n_columns)
        for name, size in sizes.items():
            rows = int(np.clip(round(wanted * max(1, size) / all_rows), 1, most))
            question = SampleMessage(rows, int(np.clip(size, rows, LARGEST)))
            replies = self.coordinator.ask("sample", question, self.layout, [name])
            points += [projected(codes, self.layout.domain) for (codes,) in replies.values()]
        steps = self.layout.encoded(np.concatenate(points))
        return self.stepped(self.start(thorough_kmeans(steps, np.ones(len(steps)), self.k, self.rng)))
