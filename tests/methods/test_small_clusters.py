"""Small clusters far from most rows: which cells have weight there. Worked by hand."""

import numpy as np
import pytest

from kveil.methods.tree import counting
from kveil.partition.tiling import Tiling

SQUARE = Tiling.whole(np.array([64, 64])).divided(np.array([12]))  # 64 x 64 cells, two steps wide


def at(*places):
    return SQUARE.find(np.array(places))


def weighed(counts):
    """Weights of cells outside, where the deviation of a count is 1 and the region is one empty cell in a corner."""
    inside = np.zeros(4096, dtype=bool)
    inside[at((-63, -63))] = True
    return counting._pooled(SQUARE, counts, np.zeros(4096), inside, 1.0, is_pure=True)


def test_a_lone_cell_where_nothing_else_shows_rows_needs_what_noise_passes_with_chance_exp_minus_5():
    """(ln 4095 + 5 - ln 2) / sqrt 2 = 8.93."""
    for count, weight in ((8.9, 0.0), (9.0, 9.0)):
        counts = np.zeros(4096)
        counts[at((21, 21))] = count
        assert weighed(counts)[at((21, 21))].tolist() == [weight]


MIDDLE = ((1, 1), (-1, 1), (1, -1), (-1, -1))  # four cells that meet in the middle of the square, each in a block of its own


@pytest.mark.parametrize(("count", "is_kept"), [(6.0, True), (4.5, False)])
def test_cells_on_the_border_of_blocks_stand_out_together(count, is_kept):
    """Nine cells need 19.6 together: four counts of 6 pass, of 4.5 do not. In any block of the tiling there is one of them."""
    counts = np.zeros(4096)
    counts[at(*MIDDLE)] = count
    assert SQUARE.around(counts, counting.UP).max() == count
    expected = np.zeros(4096)
    expected[at(*MIDDLE)] = count * is_kept
    assert weighed(counts).tolist() == expected.tolist()


def test_a_cell_that_is_not_likely_by_itself_has_no_weight_beside_others():
    counts = np.zeros(4096)
    counts[at(*MIDDLE)] = 6.0
    counts[at((3, 1))] = 2.9
    assert weighed(counts)[at((3, 1))].tolist() == [0.0]
    assert (weighed(counts)[at(*MIDDLE)] == 6.0).all()


@pytest.mark.parametrize(("count", "side", "is_kept"), [(0.8, 16, True), (0.5, 16, False), (0.2, 64, False)])
def test_a_far_tail_shows_in_a_large_block_but_not_in_a_wide_one(count, side, is_kept):
    """Blocks of 64 cells are fewer than cells and need 41 together: 51 pass, 32 do not. An eighth of the square is the widest."""
    counts, (middles, _) = np.zeros(4096), SQUARE.boxes()
    is_tail = ((middles > 0) & (middles < side)).all(axis=1)
    counts[is_tail] = count
    assert is_tail.sum() == (side // 2) ** 2
    np.testing.assert_allclose(weighed(counts), np.where(is_tail, count * is_kept, 0.0))


@pytest.mark.parametrize(("count", "is_kept"), [(0.8, True), (0.4, False)])
def test_a_tail_shows_in_a_large_block_where_no_cell_is_outside(count, is_kept):
    """Where the region is the whole box, a tail is no cell's own: 64 of them need 36 together, and hold 51 or 26."""
    counts, (middles, _) = np.zeros(4096), SQUARE.boxes()
    is_tail = ((middles > 0) & (middles < 16)).all(axis=1)
    counts[is_tail] = count
    found = counting._pooled(SQUARE, counts, np.zeros(4096), np.ones(4096, dtype=bool), 1.0, is_pure=True)
    np.testing.assert_allclose(found, np.where(is_tail, count * is_kept, 0.0))


def n_fooled(n_draws=400):
    """How many draws of noise in 4095 cells have weight anywhere."""
    rng = np.random.default_rng(1)
    return sum((weighed(rng.laplace(0, 0.5**0.5, 4096))[1:] > 0).any() for _ in range(n_draws))


def test_noise_alone_seldom_has_weight_outside(monkeypatch):
    """Single cells pass with exp(-5), 2.7 draws of 400; blocks with less, since Chernoff's bound is wide. With exp(-1) 147 do."""
    assert n_fooled() <= 12
    monkeypatch.setattr(counting, "FAR_OUTSIDE", 1.0)
    monkeypatch.setattr(counting, "ALONE", 1.0)
    assert n_fooled() > 60
