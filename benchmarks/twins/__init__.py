"""Broken twins: known bugs of the field, planted on purpose, and what catches each. `docs/twins.md` has the table.

    python -m benchmarks twins

Nothing here is installed with kveil, and nothing here protects anybody.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.bar import Bar
from benchmarks.twins import bugs
from benchmarks.twins.twin import LARGEST, NOBODY, Twin
from kveil.audit import Neighbours

__all__ = ["ALL", "Twin", "run"]

NONE, ONE = np.empty((0, 1)), np.full((1, 1), 0.9)
SOME = np.linspace(-0.9, 0.9, 9)[:, None]
COUNT = Neighbours("empty against one row", NONE, ONE)
OUTLIER = Neighbours("outlier", np.full((8, 1), 0.001), np.vstack([np.full((8, 1), 0.001), ONE]))
MORE = Neighbours("one row more", SOME, np.vstack([SOME, ONE]))
TWO = Neighbours("one row or two", np.zeros((1, 1)), np.zeros((2, 1)))
WIDE = Neighbours("empty against a corner", np.empty((0, bugs.COLUMNS)), np.ones((1, bugs.COLUMNS)))
PLACE = Neighbours("one point more", np.array([[0], [0], [5]]), np.array([[0], [0], [5], [5]]))
FAR = (np.array([-99]), np.full(bugs.COLUMNS, -99))  # all noise to one side: every draw loses all that it may

ALL = (
    Twin("noise halved", "Noise of half the width that the charge says.", NOBODY, "audit", bugs.noise_halved, COUNT),
    Twin(
        "split swapped", "The shares of a count and of 64 sums are swapped.",
        "diffprivlib 0.6.6, `_split_epsilon` ([comparison](comparison.md))", "exact", bugs.split_swapped, WIDE, FAR,
    ),
    Twin(
        "empty cells skipped", "Only cells with rows get a noisy count.",
        "diffprivlib 0.6.6, clusters without rows ([comparison](comparison.md))", "audit", bugs.empty_cells_skipped, OUTLIER,
    ),
    Twin(
        "radius read from rows", "Rows are clipped, and noise is made, for the largest row.",
        "diffprivlib's `KMeans` without `bounds`, which warns of it", "audit", bugs.radius_from_rows, OUTLIER,
    ),
    Twin(
        "exact count released", "A noisy sum is divided by the exact number of rows.",
        "the high-dimensional paper, Algorithm 5 ([errata](errata.md), entry 8)", "audit", bugs.exact_count, TWO,
    ),
    Twin(
        "levels of 2 epsilon", "Budgets along a path of a tree add up to 2 epsilon.",
        "the HST paper, by one of its numberings ([errata](errata.md), entry 13)", "exact", bugs.levels_of_two_epsilon, PLACE,
    ),
    Twin(
        "labels in the pickle", "The fitted object keeps the label of every row.",
        "diffprivlib's `KMeans`: `labels_`, and `inertia_`, the exact cost", "replay", bugs.labels_in_the_pickle, MORE,
    ),
    Twin(
        "seed reaches the noise", "Noise comes from `random_state`, so whoever knows it can subtract it.",
        "diffprivlib 0.6.6, where `random_state` is given ([comparison](comparison.md))", "audit",
        bugs.seed_reaches_the_noise, COUNT,
    ),
    Twin(
        "charge after the draw", "The ledger is charged when noise has been drawn: a crash between leaves it unpaid.",
        "diffprivlib's `KMeans`, which checks its budget first and spends it last", "contract", bugs.charge_after_the_draw, COUNT,
    ),
    Twin(
        "float Laplace", "Laplace noise in floating point: its low bits tell what it was added to.",
        "reported in 2020 of smartnoise-core (issue 242) and diffprivlib (issue 19)", "audit", bugs.float_laplace, COUNT,
    ),
    Twin(
        "steps from the exact n", "The number of steps follows from the exact number of rows.",
        "diffprivlib's `KMeans`; the high-dimensional paper ([errata](errata.md), entries 3 and 11)", "replay",
        bugs.steps_from_the_exact_n, MORE,
    ),
    Twin(
        "deviation of the data", "A scaler divides by the standard deviation of the rows.", NOBODY, "replay",
        bugs.deviation_of_the_data, OUTLIER,
    ),
)  # fmt: skip


def run() -> Iterator[Bar]:
    for twin in ALL:
        found = twin.verdict()
        seconds = found.seconds if found.is_violated else np.inf
        note = f"({found.runs} fits: {found.reason})"
        yield Bar(f"{twin.name}, caught by the {twin.catcher}", seconds, LARGEST, " s", note=note)
