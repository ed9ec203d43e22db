"""The standard error beside every centre is what the noise does: measured against the noise-free centre, over many fits."""

import math

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.testing import scripted
from kveil.tuning import Grid, Lloyd, SampleAggregate

PLACES = np.array([[-3.0, -3.0], [0.0, 3.0], [3.5, -1.0]])


def distances_and_errors(rows, runs, truth, **parameters):
    """Root mean squared distance from the noise-free centres, and the stated errors, of each centre."""
    squares, stated = [], []
    for seed in range(runs):
        with scripted(seed):
            model = PrivateKMeans(3, bounds=(-5, 5), random_state=0, **parameters).fit(rows)
        order = [int(np.linalg.norm(model.cluster_centers_ - place, axis=1).argmin()) for place in truth]
        squares.append(((model.cluster_centers_[order] - truth) ** 2).sum(axis=1))
        stated.append(model.cluster_errors_[order] ** 2)
    return np.sqrt(np.mean(squares, axis=0)), np.sqrt(np.mean(stated, axis=0))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"tuning": Lloyd(noise="coordinates")}, {"delta": 1e-6, "epsilon": 0.5}, {"relation": "replace-one"}],
    ids=["vector", "coordinates", "with delta", "replaced"],
)
def test_one_lloyd_step_errs_as_stated(blobs, parameters):
    one = {"method": "lloyd", "init": PLACES, "n_steps": 1, "epsilon": 1.0}
    truth = PrivateKMeans(3, bounds=(-5, 5), **{**one, "epsilon": math.inf}).fit(blobs).cluster_centers_
    found, stated = distances_and_errors(blobs, 150, truth, **{**one, **parameters})
    assert np.allclose(found / stated, 1.0, atol=0.2), (found, stated)


def test_the_noise_of_counts_is_part_of_the_error():
    """Far from the middle of the domain it is the larger part: leaving it out would state less than 0.8 of the truth."""
    rows = np.full((500, 2), 5.0)
    with scripted(0):
        far = PrivateKMeans(1, bounds=(-5, 5), method="lloyd", n_steps=1, init=[[5.0, 5.0]]).fit(rows).cluster_errors_[0]
        near = PrivateKMeans(1, bounds=(-5, 5), method="lloyd", n_steps=1, init=[[0.0, 0.0]]).fit(0 * rows).cluster_errors_[0]
    assert near < 0.8 * far


def test_the_grid_errs_no_more_than_stated(blobs):
    """Its truth is where its noisy centres lie on average. Small counts are taken as noise, so it may err less than stated."""
    found, stated = [], []
    for seed in range(12):
        with scripted(seed):
            model = PrivateKMeans(3, bounds=(-5, 5), random_state=0, method="grid", expected_rows=3000).fit(blobs)
        order = np.lexsort(model.cluster_centers_.T[::-1])
        found.append(model.cluster_centers_[order])
        stated.append(model.cluster_errors_[order])
    ratio = np.sqrt(np.var(found, axis=0, ddof=1).sum() / np.mean(np.square(stated), axis=0).sum())
    assert 0.4 < ratio < 1.2


def test_the_hybrid_errs_as_stated(blobs):
    truth = blobs.reshape(3, 1000, 2).mean(axis=1)
    parameters = {"method": "grid", "tuning": Grid(hybrid=True), "expected_rows": 100, "epsilon": 2.0}
    found, stated = distances_and_errors(blobs, 12, truth, **parameters)
    assert np.linalg.norm(found) / np.linalg.norm(stated) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_an_average_of_blocks_errs_as_stated(blobs, delta):
    parameters = {"method": "sample-aggregate", "tuning": SampleAggregate(blocks=10, n_steps=2), "init": PLACES}
    truth = blobs.reshape(3, 1000, 2).mean(axis=1)
    found, stated = distances_and_errors(blobs, 100, truth, epsilon=200.0, delta=delta, **parameters)
    assert np.allclose(found / stated, 1.0, atol=0.25), (found, stated)


@pytest.mark.parametrize("method", ["lloyd", "grid", "sample-aggregate", "mean"])
def test_without_rows_an_error_is_the_half_diagonal_at_most(method):
    with scripted(1):
        model = PrivateKMeans(3, bounds=(-5, 5), epsilon=0.01, method=method).fit(np.empty((0, 2)))
    assert model.cluster_errors_.shape == (3,)
    assert (model.cluster_errors_ <= np.hypot(5, 5) * (1 + 1e-12)).all()
    assert (model.cluster_errors_ > 1).all()


def test_a_centre_that_was_moved_after_its_last_rows_has_no_small_error():
    """All rows in one place: the other centres are moved beside it, and one that stays weak in the end knows nothing."""
    with scripted(4):
        model = PrivateKMeans(6, bounds=(-5, 5), epsilon=1.0, method="lloyd", random_state=0).fit(np.full((2000, 2), 1.0))
    weak = model.cluster_weights_ < 0.005
    assert weak.any()
    assert np.allclose(model.cluster_errors_[weak], np.hypot(5, 5))
