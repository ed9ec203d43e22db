"""When the tree of noisy counts is grown further, told by counts that are written down here."""

from types import SimpleNamespace

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.methods.tree.growth import grow
from kveil.questions.base import Noisy
from kveil.questions.frame import Frame
from kveil.testing import scripted

FULL = 1000.0


class Desk:
    """Answers the first stage with these counts, and later ones with a crowd in every cell."""

    kind = "pure"

    def __init__(self, first):
        self.first, self.asked = np.asarray(first), []

    def ask(self, stage, share):
        counts = np.full(len(stage.kept) << stage.new_bits, FULL) if self.asked else self.first
        self.asked.append(share)
        return (Noisy(counts, 1.0),)


def grown(first, **rule):
    desk, frame = Desk(first), Frame(None, np.zeros(2, dtype=np.int64), 64)
    return desk, grow(SimpleNamespace(desk=desk), frame, np.full(2, 64.0), [2, 1], 0.1, **rule).leaves


def test_a_stage_is_saved_where_nearly_all_cells_show_rows():
    desk, leaves = grown([FULL] * 4, saves=True)
    assert desk.asked == [0.1]
    assert leaves.weights.tolist() == [FULL] * 4
    assert leaves.points.tolist() == [[-32, -32], [-32, 32], [32, -32], [32, 32]]
    assert leaves.halves.tolist() == [[32, 32]] * 4


@pytest.mark.parametrize(("first", "saves"), [([FULL, FULL, 0.0, FULL], True), ([FULL] * 4, False)])
def test_else_the_cells_that_show_rows_are_halved_again(first, saves):
    desk, leaves = grown(first, saves=saves)
    assert desk.asked == [0.1, 0.1]
    assert len(leaves.points) == 2 * np.count_nonzero(first)
    assert leaves.halves.tolist() == [[16, 32]] * len(leaves.points)


@pytest.mark.parametrize(("delta", "d", "n_stages"), [(0.0, 20, 1), (0.0, 8, 2), (1e-6, 20, 3)])
def test_only_a_pure_tree_in_a_projection_saves_one(delta, d, n_stages):
    """Even rows: the first stage of the pure tree halves each axis once at most, and every cell holds as many."""
    rows = np.random.default_rng(0).uniform(-1, 1, (3000, d))
    model = PrivateKMeans(3, epsilon=4.0, delta=delta, bounds=(-1, 1), method="tree", random_state=0)
    with scripted(1):
        draws = model.fit(rows).guarantee_.draws
    assert sum(draw.times for draw in draws if draw.label == "cells of the tree") == n_stages


@pytest.mark.parametrize(("n", "stages"), [(4000, 3), (200_000, 2)])
def test_a_tree_in_a_projection_has_two_stages_where_rows_are_many(n, stages):
    rows = np.random.default_rng(0).random((n, 18))
    model = PrivateKMeans(3, epsilon=1.0, delta=1e-6, bounds=(0, 1), random_state=0).fit(rows)
    assert sum(draw.times for draw in model.guarantee_.draws if draw.label == "cells of the tree") <= stages
    assert model.guarantee_.epsilon <= 1
