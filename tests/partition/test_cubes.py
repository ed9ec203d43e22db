"""Shifted cubes: the root holds every point, children halve it, and random axes nearly keep lengths."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.partition.cubes import MOST_ACTIVE, MOST_AXES, MOST_LEVELS, Cubes
from kveil.partition.projection import AXIS_BITS, random_axes


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 2**26), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_root_holds_every_clipped_point_whatever_the_shift(half, n_axes, seed):
    root = Cubes.shifted(half, n_axes, np.random.default_rng(seed))
    for corner in (-half, 0, half):
        assert (root.low <= corner).all()
        assert (corner < root.low + root.side).all()


def test_the_extreme_shifts_are_drawn_and_hold_every_point_too():
    shifts = {int(Cubes.shifted(1, 1, np.random.default_rng(seed)).low[0]) + 2 for seed in range(50)}
    assert shifts == {-1, 0, 1}


def test_children_by_hand():
    """A root from -8 to 8 in two axes; child 2 (binary 10) is its upper left quarter in (x, y): x high, y low."""
    root = Cubes(np.array([-8, -8]), 16, 4, (), np.zeros((1, 2), dtype=np.int64))
    assert (root.n_children, root.middles().tolist()) == (4, [[0.0, 0.0]])
    one = root.grown(np.array([1, 2]))
    assert one.middles().tolist() == [[-4.0, 4.0], [4.0, -4.0]]
    assert one.n_children == 8
    two = one.grown(np.array([0, 4 + 3]))  # the lowest child of the first, the highest of the second
    assert two.middles().tolist() == [[-6.0, 2.0], [6.0, -2.0]]
    assert [level.tolist() for level in two.levels] == [[1, 2], [0, 7]]


def test_codes_and_shifted_coordinates_fit_into_64_bits():
    assert MOST_ACTIVE * 2**MOST_AXES < 2**63
    assert 5 * 2**26 * 2**MOST_LEVELS < 2**63


def test_random_axes_are_orthogonal_and_stretched_as_asked():
    axes = random_axes(50, 4, np.random.default_rng(0), stretch=np.sqrt(50 / 4)) / 2**AXIS_BITS
    assert np.allclose(axes.T @ axes, 50 / 4 * np.eye(4), atol=1e-2)
    points = np.random.default_rng(1).standard_normal((4000, 50))
    kept = ((points @ axes) ** 2).sum() / (points**2).sum()
    assert abs(kept - 1) < 0.1
