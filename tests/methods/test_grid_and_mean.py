"""The plain baselines: a uniform grid, and one mean."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import Ledger, PrivateKMeans
from kveil.errors import KveilError
from kveil.methods.grid import cell_middles, cells_per_axis
from kveil.questions.cells import GridCells
from kveil.testing import scripted
from kveil.tuning import Grid


def fitted(X, **parameters):
    with scripted(2):
        return PrivateKMeans(**{"n_clusters": 3, "bounds": (-5, 5), "random_state": 0, **parameters}).fit(X)


@pytest.mark.parametrize("scaling", [None, "bounds"])
def test_the_grid_finds_three_places(blobs, scaling):
    model = fitted(blobs, method="grid", epsilon=2.0, scaling=scaling)
    for place in blobs.reshape(3, 1000, 2).mean(axis=1):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 0.4
    assert np.allclose(model.cluster_weights_, 1 / 3, atol=0.1)


def test_the_grid_spends_its_whole_budget_and_less_on_counting_when_told(blobs):
    for expected, draws in [(None, 2), (3000, 1)]:
        ledger = Ledger.memory("exact", 1.0, relation="add-remove")
        model = PrivateKMeans(3, method="grid", bounds=(-5, 5), ledger=ledger, expected_rows=expected).fit(blobs)
        assert model.release_.receipt["charges"] == draws
        assert ledger.remaining().epsilon == 0
        assert model.guarantee_.route == "pure"


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("expected", [None, 3000])
def test_the_hybrid_spends_half_on_the_grid_and_half_on_one_step(blobs, expected, delta):
    ledger = Ledger.memory("exact", 1.0, delta, relation="add-remove", rule="zcdp" if delta else "pure")
    tuning = Grid(hybrid=True)
    model = PrivateKMeans(3, method="grid", delta=delta, bounds=(-5, 5), ledger=ledger, expected_rows=expected, tuning=tuning)
    before = model.guarantee(n_features=2)
    model.fit(blobs)
    assert (before.epsilon, before.delta) == (model.guarantee_.epsilon, model.guarantee_.delta)
    assert model.release_.receipt["charges"] == (3 if expected else 4)
    drawn = [float(draw.rho or draw.epsilon) for draw in model.guarantee_.draws]
    assert len(drawn) == model.release_.receipt["charges"]
    assert drawn[-1] + drawn[-2] == pytest.approx(sum(drawn) / 2, rel=1e-4)
    assert sum(drawn) == pytest.approx(float(model.guarantee_.charges[0].rho or 1), rel=1e-4)
    for place in blobs.reshape(3, 1000, 2).mean(axis=1):
        assert np.linalg.norm(model.cluster_centers_ - place, axis=1).min() < 1.0


def test_the_hybrid_without_noise_is_one_step_of_lloyd(blobs):
    grid = fitted(blobs, method="grid", epsilon=math.inf)
    hybrid = fitted(blobs, method="grid", epsilon=math.inf, tuning=Grid(hybrid=True), expected_rows=6000)
    assert hybrid.cluster_errors_.tolist() == [0.0] * 3
    step = fitted(blobs, method="lloyd", epsilon=math.inf, init=grid.cluster_centers_, n_steps=1)
    assert np.allclose(np.sort(hybrid.cluster_centers_, axis=0), np.sort(step.cluster_centers_, axis=0), atol=1e-3)


def test_the_grid_takes_few_features():
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError, match="at most 3 features"):
        PrivateKMeans(2, method="grid", bounds=(0, 1), ledger=ledger).fit(np.zeros((5, 4)))
    assert ledger.spent().epsilon == 0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_one_row_is_in_one_cell_and_near_its_middle(d, per_axis, seed):
    top = 2**15 - 1
    row = np.random.default_rng(seed).choice([-top, top, 0, 1, -7, 12345], (1, d)).astype(np.int16)
    (counts,) = GridCells(top, per_axis).raw(row)
    assert (counts.sum(), counts.size) == (1, per_axis**d)
    middle = cell_middles(np.flatnonzero(counts), per_axis, d)[0]
    assert np.abs(row[0] / top - middle).max() <= 1 / per_axis + 1e-4
    (nothing,) = GridCells(top, per_axis).raw(row[:0])
    assert nothing.tolist() == [0] * per_axis**d


def test_more_rows_or_budget_mean_more_cells():
    assert cells_per_axis(1e3, 1.0, 2) < cells_per_axis(1e5, 1.0, 2) < cells_per_axis(1e5, 4.0, 2)
    assert cells_per_axis(10, 1e-6, 3) == 2
    assert cells_per_axis(1e30, 1e3, 1) <= 2**20


def test_one_mean_is_every_centre(blobs):
    model = fitted(blobs, method="mean", epsilon=2.0)
    assert np.ptp(model.cluster_centers_, axis=0).max() == 0
    assert np.allclose(model.cluster_centers_[0], blobs.mean(axis=0), atol=0.1)
    exact = fitted(blobs, method="mean", epsilon=math.inf)
    assert np.allclose(exact.cluster_centers_[0], blobs.mean(axis=0), atol=1e-3)
    assert model.release_.parameters["n_clusters"] == 3


def test_every_method_is_better_than_one_mean(blobs):
    costs = {method: -fitted(blobs, method=method, epsilon=1.0).score(blobs) for method in ("tree", "grid", "lloyd", "mean")}
    assert all(costs[method] < costs["mean"] for method in ("tree", "grid", "lloyd"))
