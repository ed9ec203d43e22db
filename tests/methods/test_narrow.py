"""Pure noise in many columns: sums are asked for in those that may tell something, by the released mean and public bounds."""

import numpy as np
import pytest

from kveil import PrivateKMeans, load
from kveil.methods.ground import Ground
from kveil.testing import scripted

D, LIVE = 40, 10


@pytest.fixture
def narrow(monkeypatch):
    """The columns that sums of a fit are asked for in; empty if in all."""
    found, whole = [], Ground.narrowed

    def noted(ground, columns):
        found.append(columns.tolist())
        return whole(ground, columns)

    monkeypatch.setattr(Ground, "narrowed", noted)
    return found


def rows(n=3000):
    """Two clusters in the first columns. The others are nearly always 0."""
    rng = np.random.default_rng(0)
    live = rng.integers(2, size=(n, 1)) * 0.5 + 0.25 + 0.1 * rng.standard_normal((n, LIVE))
    return np.hstack([live, rng.random((n, D - LIVE)) < 0.001])


def fitted(x, epsilon=0.3, delta=0.0, **given):
    given = {"bounds": (0, 1)} | given
    return PrivateKMeans(2, epsilon=epsilon, delta=delta, random_state=0, **given).fit(x)


def test_columns_whose_mean_lies_at_a_bound_get_no_noise_in_sums(narrow):
    model = fitted(rows())
    (columns,) = narrow
    assert set(range(LIVE)) <= set(columns)
    assert len(columns) < D
    rest = np.setdiff1d(np.arange(D), columns)
    assert np.ptp(model.cluster_centers_[:, rest], axis=0) == pytest.approx(0, abs=1e-4)  # the released mean, for both
    assert sum(draw.epsilon * draw.times for draw in model.guarantee_.draws) <= 0.3


def test_columns_that_have_all_the_noise_are_said_to_have_it(narrow, tmp_path):
    """An even part for every column would be too short for those, also after the release was saved."""
    with scripted(1):
        release = fitted(rows(), epsilon=0.2).release_
    summed = np.isin(np.arange(D), narrow[0])
    release.save(tmp_path / "release")
    for one in (release, load(tmp_path / "release")):
        assert one.synopsis.summed.tolist() == summed.tolist()
        squares = one.verdict().column_errors ** 2
        assert squares[:, summed].sum(axis=1) == pytest.approx(one.errors**2)
        assert squares[:, ~summed] == pytest.approx(np.tile(one.errors[:, None] ** 2 / D, D - summed.sum()))
    assert fitted(rows(), epsilon=200.0).release_.synopsis.summed is None


@pytest.mark.parametrize(
    "given", [{"delta": 1e-6}, {"epsilon": 200.0}, {"bounds": (-50, 50)}, {"bounds": None, "center": 0.5, "radius": 4.0}]
)
def test_all_columns_stay_where_noise_is_short_or_nothing_bounds_them(narrow, given):
    fitted(rows(), **given)
    assert not narrow


def test_k_by_released_values_keeps_the_columns(narrow):
    model = PrivateKMeans("auto", epsilon=0.5, random_state=0, bounds=(0, 1), k_range=(2, 4)).fit(rows(4000))
    rest = np.setdiff1d(np.arange(D), narrow[0])
    assert len(rest)
    assert len(model.release_.synopsis.steps), "steps ask for sums after k is known"
    assert np.ptp(model.cluster_centers_[:, rest], axis=0) == pytest.approx(0, abs=1e-3)
