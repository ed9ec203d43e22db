"""Ordinary weighted k-median: medians where they belong, outliers that do not matter, always k centres."""

import numpy as np
from scipy.optimize import minimize

from kveil.solve.wkmedian import owners, thorough_kmedian


def test_one_cluster_is_the_weighted_geometric_median():
    rng = np.random.default_rng(0)
    points, weights = rng.standard_normal((200, 3)), rng.random(200)
    found = thorough_kmedian(points, weights, 1, rng)[0]
    best = minimize(lambda z: weights @ np.linalg.norm(points - z, axis=1), np.zeros(3), method="BFGS").x
    assert np.allclose(found, best, atol=1e-3)


def test_far_points_do_not_pull_a_median():
    points = np.r_[np.random.default_rng(0).normal(size=(90, 2)), np.full((10, 2), 1000.0)]
    found = thorough_kmedian(points, np.ones(100), 1, np.random.default_rng(1))[0]
    assert np.linalg.norm(found) < 1
    assert np.linalg.norm(points.mean(axis=0)) > 100


def test_separate_places_are_all_found():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 100, (20, 2))
    points = np.repeat(places, 30, axis=0) + 0.1 * rng.standard_normal((600, 2))
    centers = thorough_kmedian(points, np.ones(600), 20, rng)
    assert max(np.linalg.norm(centers - place, axis=1).min() for place in places) < 1


def test_too_few_points_weights_without_sense_and_equal_points_still_give_k_centres():
    rng = np.random.default_rng(0)
    assert thorough_kmedian(np.array([[1.0, 2.0]]), np.array([-3.0]), 4, rng).shape == (4, 2)
    assert thorough_kmedian(np.zeros((9, 1)), np.ones(9), 3, rng).tolist() == [[0.0]] * 3
    assert np.isfinite(thorough_kmedian(np.repeat([[5.0], [7.0]], 5, axis=0), np.ones(10), 3, rng)).all()


def test_the_owner_of_a_point_is_its_nearest_centre():
    owner, apart = owners(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 0.0], [0.0, 1.0]]))
    assert owner.tolist() == [1, 0]
    assert np.allclose(apart, [1.0, 4.0])
