"""Public parameters that would let a row raise, or do more than its part says, are refused before any row is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kveil.kernel.grid import Box
from kveil.questions.cells import GridCells, Residuals, Squares
from kveil.questions.frame import Frame
from kveil.questions.leaves import LeafCounts, LeafSums, Leaves
from kveil.questions.medians import MedianCosts, Pulls
from kveil.questions.party_cells import PartyResiduals

BOX = Box([-1.0, -1.0], [1.0, 1.0])
FRAME, LEAVES = Frame.of(BOX, None), Leaves.of(BOX, 2)
PLACE = np.zeros((1, 2), dtype=np.int64)


@pytest.mark.parametrize("kind", [Residuals, PartyResiduals])
@pytest.mark.parametrize("radius", [0, -5])
def test_a_row_at_its_base_is_not_divided_by_0(kind, radius):
    with pytest.raises(AssertionError, match="at least 1"):
        kind.about(FRAME, PLACE, np.array([radius]))
    assert kind.about(FRAME, PLACE, np.array([1])).raw(PLACE)[0].tolist() == [1]
    assert kind.about(FRAME, PLACE[:0], np.empty(0, dtype=np.int64)).parts  # what a message about nothing costs


@pytest.mark.parametrize("smoothing", [0.0, -1.0, np.nan])
def test_a_row_at_its_centre_pulls_at_nothing(smoothing):
    with pytest.raises(AssertionError, match="smoothing"):
        Pulls(FRAME, PLACE, smoothing, 2**20)
    assert Pulls(FRAME, PLACE, 1.0, 2**20).raw(PLACE)[1].tolist() == [[0, 0]]


def test_places_have_a_radius_and_costs_that_add_up():
    good = MedianCosts(FRAME, PLACE, PLACE[None], 1.0, 2**20)
    assert good.raw(PLACE)[0].tolist() == [[0]]
    for changed in ({"radius": 0.0}, {"radius": np.nan}, {"top": 2**21}, {"top": 0}):
        with pytest.raises(AssertionError, match="radius is above 0"):
            replace(good, **changed)


@pytest.mark.parametrize("codes", [[1, 1], [-1, 1], [2], [-3]])
def test_a_cell_of_leaves_is_listed_once_under_one_name(codes):
    """-1 is the last cell to numpy: listed beside it, a row there would count twice."""
    with pytest.raises(AssertionError, match="none twice"):
        LeafCounts("cells", 1, np.array(codes))
    assert LeafCounts("cells", 1, np.array([1, 0])).raw((np.array([0, 2, 3, 4]), None))[0].tolist() == [7, 2]


@pytest.mark.parametrize("factor", [0, -1, -40])
def test_factors_of_leaves_are_held_against_the_length(factor):
    low, high = LEAVES.cells.boxes(np.arange(4), 2)
    terms = LEAVES, ("rows", "sums"), np.zeros(4, dtype=np.int64), 1, 10**6, (low + high) // 2
    with pytest.raises(AssertionError, match="at least 1"):
        LeafSums(*terms, np.full(4, factor))
    assert LeafSums(*terms, np.full(4, 2)).parts[1].length == 10**6


def test_rows_beyond_a_grid_are_in_its_outermost_cells():
    rows = np.array([[-200, 0], [200, 0], [-100, -100], [100, 100]], dtype=np.int16)
    assert np.flatnonzero(GridCells(100, 4).raw(rows)[0]).tolist() == [0, 2, 14, 15]


@pytest.mark.parametrize("radius", [0, -1])
def test_a_frame_has_a_radius(radius):
    with pytest.raises(AssertionError, match="at least 1"):
        replace(FRAME, radius=radius)
    assert Squares(replace(FRAME, radius=1)).raw(PLACE)[0].tolist() == [0, 0]
