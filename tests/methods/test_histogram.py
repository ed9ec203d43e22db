"""Centres of one grid of noisy counts: what cells tell together that none of them tells alone."""

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.solve.histogram import Histogram
from kveil.testing import scripted


def overlapping(deviation: float, seed: int) -> tuple[Histogram, np.ndarray]:
    """Two wide Gaussians on a line of 64 cells, their counts with noise, and where their means are."""
    rng = np.random.default_rng(seed)
    places = np.arange(64.0)
    means = np.array([20.0, 44.0])
    counts = sum(300 * np.exp(-((places - mean) ** 2) / (2 * 8.0**2)) / (8 * np.sqrt(2 * np.pi)) for mean in means)
    noisy = counts + rng.laplace(0, deviation / 2**0.5, 64)
    return Histogram(places[:, None], noisy, np.where(noisy > 3 * deviation, noisy, 0.0), deviation, np.full(64, 0.3)), means


def test_raw_counts_of_all_cells_beat_those_that_stand_out():
    """Cutting cells below the threshold pulls centres towards the crowd; the others, noise and all, take that back."""
    off = {True: 0.0, False: 0.0}
    for seed in range(40):
        cells, means = overlapping(3.0, seed)
        cut = Histogram(*(part if np.ndim(part) == 0 else part[cells.weights > 0] for part in cells))
        for is_cut, used in ((True, cut), (False, cells)):
            centers = np.sort(used.centers(2, np.random.default_rng(0)).ravel())
            off[is_cut] += float(((centers - means) ** 2).sum())
    assert off[False] < 0.8 * off[True]


def test_stated_errors_are_about_as_large_as_errors():
    """Without noise only the width of cells is left; with it, the squared distance to the noise-free centres on average."""
    exact, _ = overlapping(1e-9, 0)
    still = exact.centers(2, np.random.default_rng(0))
    assert exact.squared_errors(still) == pytest.approx(0.3**2 / 25, rel=0.5)  # spread over some 25 cells each
    squared, stated = [], []
    for seed in range(200):
        cells, _ = overlapping(3.0, seed)
        centers = cells.centers(2, np.random.default_rng(0))
        squared.append(((np.sort(centers.ravel()) - np.sort(still.ravel())) ** 2).mean())
        stated.append(cells.squared_errors(centers).mean())
    assert 0.3 < np.mean(stated) / np.mean(squared) < 3


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_grid_where_nothing_stands_out_still_gives_k_centres(columns, n):
    rows = np.zeros((n, columns))
    with scripted(1):
        model = PrivateKMeans(4, epsilon=0.01, bounds=(-1, 1), random_state=0).fit(rows)
    assert model.cluster_centers_.shape == (4, columns)
    assert (np.abs(model.cluster_centers_) <= 1).all()
    assert np.isfinite(model.cluster_errors_).all()


def test_a_cluster_smaller_than_a_cell_is_found_by_the_step():
    """The grid says how coarse it is, so the step is trusted: the centre moves from the middle of its cell to the rows."""
    rows = np.full((50_000, 2), 0.3131)
    with scripted(2):
        model = PrivateKMeans(1, epsilon=0.5, bounds=(-1, 1), random_state=0).fit(rows)
    assert np.abs(model.cluster_centers_ - 0.3131).max() < 1e-3
