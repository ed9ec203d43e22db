"""Starts that see no data: inside the domain, apart from each other, and the same for the same public randomness."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from kveil import PrivateKMeans
from kveil.errors import KveilError
from kveil.kernel.grid import Ball, Box
from kveil.kernel.loss import PrivacyUnit, floor_delta
from kveil.methods.lloyd import Lloyd as Method
from kveil.methods.starts import _packed, packing, resolved, spread, start
from kveil.methods.task import Task
from kveil.tuning import Lloyd


def task(domain, k, *, scaling=None, init="packing"):
    return Task(k, Fraction(1), Fraction(0), domain, scaling, "add-remove", PrivacyUnit(), Lloyd(), init=init)


def domain_of(shape, d):
    if shape == "ball":
        return Ball(np.full(d, 2.0), 3.0)
    high = np.geomspace(1.0, 1000.0, d) if shape == "uneven" else np.ones(d)
    return Box(-high, high)


def is_inside(domain, points):
    if isinstance(domain, Ball):
        return bool((np.linalg.norm(points - domain.center, axis=1) <= domain.radius * (1 + 1e-12)).all())
    return bool(((points >= domain.lower) & (points <= domain.upper)).all())


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["box", "uneven", "ball"]),
    st.integers(1, 6),
    st.integers(1, 30),
    st.sampled_from([None, "bounds"]),
    st.integers(0, 99),
)
def test_packed_centres_are_inside_and_repeat(shape, d, k, scaling, seed):
    wanted = task(domain_of(shape, d), k, scaling=scaling)
    centers = packing(wanted, np.random.default_rng(seed))
    assert centers.shape == (k, d)
    assert is_inside(wanted.domain, centers)
    assert centers.tobytes() == packing(wanted, np.random.default_rng(seed)).tobytes()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["box", "ball"]), st.integers(1, 5), st.integers(1, 12), st.integers(0, 12_000), st.integers(0, 99))
def test_a_packing_keeps_its_distance_from_walls_and_neighbours(shape, d, k, a, seed):
    """In steps of the grid: 2 a between centres, a from the wall; or the distance is given up as too large."""
    domain = domain_of(shape, d)
    found = _packed(task(domain, k), np.full(d, float(domain.top)), a, np.random.default_rng(seed))
    if found is None:
        assert k > 1  # one centre always fits
        return
    lengths = np.linalg.norm(found, axis=1) if shape == "ball" else np.abs(found).max(axis=1)
    assert lengths.max() <= domain.top - a + np.sqrt(d)  # rounding
    assert k == 1 or pdist(found).min() >= 2 * a


@pytest.mark.parametrize(("shape", "d", "k"), [("box", 1, 9), ("box", 2, 15), ("ball", 3, 20), ("box", 2, 1000)])
def test_packed_centres_are_farther_apart_than_random_ones(shape, d, k):
    """With few columns; with many, keeping away from the walls moves all centres towards the middle."""
    domain = domain_of(shape, d)
    rng = np.random.default_rng(5)
    packed = [pdist(packing(task(domain, k), rng)).min() for _ in range(5)]
    random = [pdist(domain.center + domain.half * rng.uniform(-1.0, 1.0, (k, d))).min() for _ in range(5)]
    assert min(packed) > max(random)


def test_nine_centres_on_a_line_are_packed_well():
    """The best is 2/9 apart on [-1, 1], and random packing fills about three quarters of a line."""
    gaps = [pdist(packing(task(domain_of("box", 1), 9), np.random.default_rng(seed))).min() for seed in range(20)]
    assert 0.5 * 2 / 9 < np.mean(gaps) <= 2 / 9


def test_a_narrow_column_does_not_hold_the_others_back():
    """Age beside income: distances are those of income, and age stays near its middle."""
    domain = Box(np.array([0.0, 0.0]), np.array([120.0, 1e5]))
    centers = packing(task(domain, 8), np.random.default_rng(0))
    assert pdist(centers[:, 1:]).min() > 1e5 / 40
    assert np.allclose(centers[:, 0], 60.0, atol=0.01)
    scaled = packing(task(domain, 8, scaling="bounds"), np.random.default_rng(0))
    assert np.ptp(scaled[:, 0]) > 40


def test_auto_is_the_packing_and_an_array_is_itself():
    domain = domain_of("box", 2)
    assert resolved(task(domain, 3, init="auto")).init == "packing"
    for init, find in [("packing", packing), ("spread", spread)]:
        wanted = task(domain, 3, init=init)
        assert np.array_equal(start(wanted, np.random.default_rng(1)), find(wanted, np.random.default_rng(1)))
    assert start(task(domain, 1, init=np.array([[7.0, 0.5]])), np.random.default_rng(1)).tolist() == [[1.0, 0.5]]
    model = PrivateKMeans(3, bounds=(-5, 5), method="lloyd").fit(np.zeros((10, 2)))
    assert model.release_.parameters["init"] == "packing"


def test_noise_by_coordinates_is_pure_and_says_so():
    rows = np.zeros((10, 2))
    model = PrivateKMeans(3, bounds=(-5, 5), tuning=Lloyd(noise="coordinates"), n_steps=2).fit(rows)
    assert [charge.mechanism for charge in model.guarantee_.charges] == ["discrete-laplace"] * 2
    assert model.guarantee_.epsilon == 1.0
    with pytest.raises(KveilError, match="pure"):
        PrivateKMeans(3, bounds=(-5, 5), delta=1e-6, tuning=Lloyd(noise="coordinates")).fit(rows)
    with pytest.raises(KveilError, match=r"tuning\.noise must be one of"):
        PrivateKMeans(3, bounds=(-5, 5), tuning=Lloyd(noise="loud")).fit(rows)


def test_the_smaller_noise_is_taken():
    def steps(d, delta):
        box = Box(np.zeros(d), np.ones(d))
        return Method(replace(task(box, 3), delta=floor_delta(delta), n_steps=5)).budget.charges[-1].mechanism

    assert (steps(1, 1e-6), steps(50, 1e-6), steps(50, 0.0)) == ("discrete-laplace", "discrete-gaussian", "k-norm")
