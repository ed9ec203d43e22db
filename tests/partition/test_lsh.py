"""Near points share a bucket as often as the law says; keys stay in range; only points of medium cells have one."""

import numpy as np
import pytest

from kveil.collect.constants import ball_chance, collision_chance
from kveil.partition.lsh import BallLattice, Buckets, RotatedGrid, contains
from kveil.partition.public_map import PublicMap, into_ball


def pairs_apart(n, d, apart, rng):
    away = rng.standard_normal((n, d))
    away *= apart / np.linalg.norm(away, axis=1, keepdims=True)
    here = rng.uniform(-0.5, 0.5, (n, d))
    return here, here + away


@pytest.mark.parametrize(
    ("d", "near", "middle", "far"), [(2, 0.443, 0.224, 0.045), (3, 0.399, 0.200, 0.057), (4, 0.364, 0.178, 0.058)]
)
def test_the_collision_law_is_the_published_one(d, near, middle, far):
    found = [collision_chance(d, 2.0, apart) for apart in (1.0, 1.5, 2.0)]
    assert found == pytest.approx([near, middle, far], abs=2e-3)
    assert collision_chance(d, 4.0) > near
    assert collision_chance(4, 4.0) == pytest.approx(0.632, abs=2e-3)


@pytest.mark.parametrize("d", [2, 4])
def test_grids_collide_as_often_as_the_law_says(d):
    """Fixed seed; 400 grids of 50 pairs each: the share is known to 0.02."""
    rng = np.random.default_rng(2)
    shared = []
    for _ in range(400):
        grid = RotatedGrid.drawn(d, 0.2, rng)
        one, other = pairs_apart(50, d, 0.1, rng)
        shared.append((grid.buckets(one, 2.0) == grid.buckets(other, 2.0)).mean())
    assert np.mean(shared) == pytest.approx(collision_chance(d, 2.0), abs=0.02)


def test_balls_collide_as_often_as_the_law_says():
    """Fixed seed; 80 lattices of 60 pairs each, near and far: the shares are known to 0.03."""
    rng = np.random.default_rng(8)
    for apart in (0.2, 0.4):
        shared = []
        for _ in range(80):
            balls = BallLattice.drawn(4, 0.2, rng)
            one, other = pairs_apart(60, 4, apart, rng)
            shared.append((balls.buckets(one, 2.0) == balls.buckets(other, 2.0)).mean())
        assert np.mean(shared) == pytest.approx(ball_chance(2, 1.0, apart / 0.2), abs=0.03)
    assert [ball_chance(axes, axes**0.25) for axes in (2, 4)] == pytest.approx([0.409, 0.33], abs=1e-3)


@pytest.mark.parametrize("t", [2, 4, 8, 16, 32])
def test_far_points_share_a_ball_no_more_often_than_theorem_2_4_says(t):
    """p(c) <= 2/(1 + c**2 e)**(t/2) with e = 1/(4 sqrt(t)), for balls of radius t**(1/4)."""
    for c in (1.5, 2.0, 4.0):
        assert ball_chance(t, t**0.25, c) <= 2 / (1 + c**2 / (4 * t**0.5)) ** (t / 2)


@pytest.mark.parametrize("lsh", [RotatedGrid, BallLattice])
def test_bucket_keys_are_in_range_even_for_points_far_out(lsh):
    rng = np.random.default_rng(4)
    family = lsh.drawn(3, 0.3, rng)
    codes = family.buckets(np.vstack([rng.uniform(-9, 9, (500, 3)), np.zeros((1, 3))]), 1.0)
    assert codes.min() >= 0
    assert codes.max() < family.n_buckets(1.0)


def test_different_cubes_have_different_keys():
    grid = RotatedGrid(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32), 0.5)
    offsets = np.array([[x, y] for x in (-0.9, -0.4, 0.1, 0.6) for y in (-0.9, -0.4, 0.1, 0.6)])
    assert len(set(grid.buckets(offsets, 1.0).tolist())) == 16


def test_only_points_of_medium_cells_have_a_bucket():
    """Two axes, one level: the root is heavy, and so is its cell 3; cells 0, 1 and 2 are medium."""
    one = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    buckets = Buckets(
        one,
        1,
        2,
        np.zeros(1, dtype=np.uint64),
        np.array([3], dtype=np.uint64),
        RotatedGrid.drawn(2, 0.7, np.random.default_rng(0)),
    )
    points = np.array([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]])
    keys, offsets = buckets.place(points)
    assert (keys > 0).tolist() == [False, True, True]
    assert (offsets[0] == 0).all()
    assert offsets[1:] * buckets.radius == pytest.approx(points[1:])  # the middle of the root is 0 here
    assert int(keys.max()) < buckets.n_keys


def test_offsets_fit_into_the_unit_ball_and_ranks_tell_large_cells_apart():
    rng = np.random.default_rng(5)
    one = PublicMap.drawn(6, 3, rng)
    above = np.unique(one.cells(into_ball(rng.standard_normal((50, 6))), 6))
    buckets = Buckets(one, 3, 2, above, np.empty(0, dtype=np.uint64), RotatedGrid.drawn(3, 0.8, rng))
    points = into_ball(rng.standard_normal((2000, 6)))
    keys, offsets = buckets.place(points)
    assert np.linalg.norm(offsets, axis=1).max() <= 1 + 1e-9
    assert int(keys.max()) < buckets.n_keys
    held = keys > 0
    ranks = (keys[held] - np.uint64(1)) // np.uint64(buckets.lsh.n_buckets(buckets.reach))
    large = one.cells(points[held], 3 * buckets.top)
    assert (buckets.large[ranks.astype(int)] == large).all()


def test_looking_up_keys():
    ordered = np.array([2, 5, 9], dtype=np.uint64)
    assert contains(ordered, np.array([0, 2, 9, 10], dtype=np.uint64)).tolist() == [False, True, True, False]
    assert contains(ordered[:0], np.array([0], dtype=np.uint64)).tolist() == [False]
