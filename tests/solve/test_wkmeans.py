"""The thorough k-means of small tables: the steps are Lloyd's, and what it finds is as good as scikit-learn's best."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from kveil.solve import _lloyd_kernels, wkmeans
from kveil.solve.wkmeans import joined, thorough_kmeans


def cost(points, weights, centers):
    return float(weights @ cdist(points, centers, "sqeuclidean").min(axis=1))


@pytest.mark.parametrize("steps", [0, 1, 3, 50])
def test_steps_are_those_of_lloyd(steps):
    rng = np.random.default_rng(steps)
    points, weights = rng.normal(size=(200, 3)), rng.random(200)
    start = points[:6].copy()
    centers = start.copy()
    found = _lloyd_kernels.lloyd(points, weights, centers, steps, 0.0)
    expected = start.copy()
    for _ in range(steps):
        owner = cdist(points, expected, "sqeuclidean").argmin(axis=1)
        expected = np.array([np.average(points[owner == c], axis=0, weights=weights[owner == c]) for c in range(6)])
    assert centers == pytest.approx(expected)
    assert found == pytest.approx(cost(points, weights, expected))


def test_a_centre_without_points_moves_to_the_point_that_costs_most():
    """All four are nearest to 0.5; 4 costs 9 (4 - 0.5)^2, more than 10 does, so it leaves for the other centre."""
    points, weights = np.array([[0.0], [1.0], [10.0], [4.0]]), np.array([1.0, 1.0, 1.0, 9.0])
    centers = np.array([[0.5], [99.0]])
    _lloyd_kernels.lloyd(points, weights, centers, 1, 0.0)
    assert centers.ravel().tolist() == pytest.approx([11 / 3, 4.0])


@pytest.mark.parametrize(("k", "d", "spread"), [(5, 2, 0.1), (12, 4, 0.5), (20, 8, 1.0)])
def test_it_is_as_good_as_the_best_of_many_runs(k, d, spread):
    rng = np.random.default_rng(k)
    points = rng.normal(size=(k, d))[rng.integers(k, size=600)] + spread * rng.normal(size=(600, d))
    weights = rng.integers(1, 50, 600).astype(float)
    best = KMeans(k, n_init=20, random_state=0).fit(points, sample_weight=weights).inertia_
    assert cost(points, weights, thorough_kmeans(points, weights, k, np.random.default_rng(0))) <= 1.01 * best


def test_there_are_always_as_many_centres_as_asked_for():
    for points in (np.zeros((9, 2)), np.repeat(np.eye(2), 5, axis=0), np.array([[3.0, 4.0]])):
        for weights in (np.ones(len(points)), np.zeros(len(points)), -np.ones(len(points))):
            found = thorough_kmeans(points, weights, 4, np.random.default_rng(0))
            assert found.shape == (4, 2)
            assert np.isfinite(found).all()


def test_neighbours_are_joined_at_their_mean_with_all_of_their_weight():
    """Four corners with three points each, listed in turn, so that no neighbours follow each other."""
    corners = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])
    points = np.concatenate([corners, np.add(corners, [0.5, 0.0]), np.add(corners, [0.0, 0.5])])
    weights = np.repeat([2.0, 1.0, 1.0], 4)
    means, mass = joined(points, weights, 4)
    assert mass.tolist() == [4.0] * 4
    assert means.tolist() == (corners + 0.125).tolist()


def test_groups_are_small_where_points_lie_close():
    """A hundred points within 1e-3 and a hundred within 1000: half of the groups are in either."""
    rng = np.random.default_rng(0)
    points = np.concatenate([1e-3 * rng.random((100, 2)), 1e3 * (1 + rng.random((100, 2)))])
    means, mass = joined(points, np.ones(200), 20)
    assert mass.tolist() == [10.0] * 20
    assert (means.max(axis=1) < 1e-3).sum() == 10


def test_many_points_are_clustered_as_well_by_way_of_groups(monkeypatch):
    """A grid of 3600 cells, as counts come; groups of about nine are clustered first."""
    rng = np.random.default_rng(4)
    axis = np.linspace(-1, 1, 60)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    apart = cdist(points, rng.uniform(-0.8, 0.8, (6, 2)), "sqeuclidean")
    weights = 100 * np.exp(-apart / 0.02).sum(axis=1) + rng.random(len(points))
    best = KMeans(6, n_init=20, random_state=0).fit(points, sample_weight=weights).inertia_
    monkeypatch.setattr(wkmeans, "MANY", 400)
    found = thorough_kmeans(points, weights, 6, np.random.default_rng(0))
    assert cost(points, weights, found) <= 1.001 * best
    direct = found.copy()
    _lloyd_kernels.lloyd(points, weights, direct, 1, 0.0)
    assert direct == pytest.approx(found, abs=1e-3)  # the last steps saw every point
