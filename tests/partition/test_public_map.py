"""Public maps: cells are prefixes, the root holds every image, and lifting undoes the image as far as it can."""

from itertools import product

import numpy as np
import pytest

from kveil.partition.public_map import ROOT, PublicMap, axis_bits, into_ball, joint_lift, lift, random_frames, side

RNG = np.random.default_rng(11)


def in_ball(n, d):
    return into_ball(RNG.standard_normal((n, d)))


@pytest.mark.parametrize(("d", "n_axes"), [(1, 1), (2, 2), (4, 4), (5, 4), (20, 4), (20, 3)])
def test_a_cell_is_a_prefix_of_the_cells_below_it(d, n_axes):
    one = PublicMap.drawn(d, n_axes, RNG)
    points = in_ball(200, d)
    deepest = one.cells(points, 13)
    for depth in range(1, 13):
        assert (one.cells(points, depth) == deepest >> np.uint64(13 - depth)).all()


def test_the_published_cells():
    plain = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    assert plain.cells(np.array([[0.5, 0.5], [-0.5, -0.5]]), 4).tolist() == [12, 3]
    assert plain.middles(np.array([12, 3], dtype=np.uint64), 4) == pytest.approx(np.array([[0.375, 0.375], [-0.375, -0.375]]))


@pytest.mark.parametrize("depth", [1, 4, 7, 12])
def test_a_point_is_within_half_a_side_of_the_middle_of_its_cell(depth):
    one = PublicMap.drawn(9, 4, RNG)
    points = in_ball(300, 9)
    middles = one.middles(one.cells(points, depth), depth)
    halves = 1.5 / 2.0 ** np.array(axis_bits(depth, 4))
    assert (np.abs(one.image(points) - middles) <= halves + 1e-6).all()


def test_the_root_holds_every_image_whatever_the_shift():
    for corner in ([0.5, 0.5], [-0.5, 0.5]):
        one = PublicMap(np.eye(2, dtype=np.float32), np.array(corner, dtype=np.float32))
        image = one.image(in_ball(500, 2)) + corner
        assert np.abs(image).max() <= side(0) / 2


def test_points_that_left_the_root_or_are_no_numbers_are_in_some_cell():
    one = PublicMap(np.eye(2, dtype=np.float32) * 9, np.array([9.0, -9.0], dtype=np.float32))
    with np.errstate(all="ignore"):
        cells = one.cells(np.array([[1.0, 1.0], [-1.0, 0.0], [np.nan, 0.0]]), 8)
    assert (cells < 256).all()


@pytest.mark.parametrize("d", [5, 6, 7, 8, 20])
def test_two_frames_keep_mean_squared_lengths_and_lift_back_what_they_saw(d):
    frames = random_frames(d, 4, 2, RNG)
    for frame in frames:
        stretched = frame.astype(float)
        assert stretched.T @ stretched == pytest.approx(d / 4 * np.eye(4), abs=1e-5)
        image = RNG.standard_normal((3, 4))
        assert image @ lift(frame) @ stretched == pytest.approx(image, abs=1e-5)
    if d >= 8:
        assert frames[0].astype(float).T @ frames[1].astype(float) == pytest.approx(np.zeros((4, 4)), abs=1e-5)
    point = RNG.standard_normal((1, d))
    both = np.hstack([point @ frame.astype(float) for frame in frames])
    back = both @ joint_lift(frames).astype(float)
    assert np.hstack([back @ frame.astype(float) for frame in frames]) == pytest.approx(both, abs=1e-4)
    if d <= 8:
        assert back == pytest.approx(point, abs=1e-4)


def test_few_columns_are_not_projected():
    assert (PublicMap.drawn(3, 3, RNG).axes == np.eye(3)).all()
    assert np.abs(PublicMap.drawn(3, 3, RNG).shift).max() <= 0.5


@pytest.mark.parametrize(("d", "depth"), [(1, 3), (2, 7), (3, 9), (4, 8)])
def test_cells_that_the_ball_does_not_reach_are_known(d, depth):
    """Against the nearest point of each cell by brute force over a lattice of points in it; and nobody is in a cell left out."""
    rng = np.random.default_rng(d)
    one, keys = PublicMap.drawn(d, d, rng), np.arange(1 << depth, dtype=np.uint64)
    meets = one.meets_ball(keys, depth)
    assert meets.any()
    assert not meets.all()
    within = into_ball(rng.normal(size=(5_000, d)) * 2)  # most of them on the sphere
    assert set(one.cells(within, depth).tolist()) <= set(keys[meets].tolist())
    sides = ROOT / 2.0 ** np.array(axis_bits(depth, d))
    corners = np.array(list(product((-0.5, 0.0, 0.5), repeat=d))) * sides
    reached = (np.linalg.norm(one.middles(keys, depth)[:, None] + corners, axis=2) <= 1).any(axis=1)
    assert not (reached & ~meets).any()
    assert np.mean(meets & ~reached) < 0.1, "a face may reach into the ball between the corners, of few cells"
