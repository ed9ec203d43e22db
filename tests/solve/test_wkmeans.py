"""The thorough k-means of small tables: the steps are Lloyd's, and what it finds is as good as scikit-learn's best."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from kveil.solve import _lloyd_kernels
from kveil.solve.wkmeans import thorough_kmeans


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
