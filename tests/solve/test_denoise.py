"""What stands out of noisy counts: branches by hand, and what every branch must keep to."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from kveil.solve.denoise import _projected, denoised

ONE_GROUP = np.zeros(4, dtype=np.int32)


def test_counts_above_the_threshold_are_kept_as_they_are_and_the_rest_is_empty():
    found = denoised(np.array([100.0, 300.0, 1.0, -2.0]), np.array([1, 1, 1, 1]), ONE_GROUP, 1.0)
    assert found.masses.tolist() == [100.0, 300.0, 0.0, 0.0]
    assert found.branch == "kept"
    assert found.hidden == pytest.approx(2 * sqrt(8) / 399)


def test_a_group_that_stands_out_together_is_spread_by_size():
    """Eight cells of 2.0 each are no sign of anything alone; together they are 16, four deviations."""
    counts, sizes = np.array([400.0, *[2.0] * 8]), np.array([1, 1, 1, 1, 1, 1, 1, 1, 8])
    groups = np.array([0, *[1] * 8], dtype=np.int32)
    found = denoised(counts, sizes, groups, 1.0)
    assert log(9) > 2.0
    assert found.masses[0] == 400.0
    assert found.masses[1:].sum() == pytest.approx(16.0)
    assert found.masses[8] == pytest.approx(8 * found.masses[1])


def test_what_is_left_everywhere_counts_if_it_stands_out_in_all():
    """Nine groups of one cell each with 2.0: no group stands out, 18 in all does (over 2 sqrt(18) = 8.5)."""
    counts = np.array([500.0, *[2.0] * 9])
    found = denoised(counts, np.ones(10, dtype=np.int64), np.arange(10, dtype=np.int32), 1.0)
    assert found.masses.tolist() == [500.0, *[2.0] * 9]


def test_a_faint_demand_is_projected():
    found = denoised(np.array([9.0, 9.0, 5.0, -1.0]), np.ones(4, dtype=np.int64), ONE_GROUP, 1.0)
    assert found.branch == "projected"
    assert found.masses.sum() == pytest.approx(22.0)
    assert found.masses[3] == 0.0


@pytest.mark.parametrize("counts", [[0.0] * 4, [-5.0, -7.0, 1.0, 2.0], [1.0, 2.0, 0.0, 1.0]])
def test_a_demand_that_noise_may_hide_is_taken_as_spread_like_the_universe(counts):
    found = denoised(np.array(counts), np.array([1, 1, 1, 5]), ONE_GROUP, 1.0)
    assert found.branch == "public"
    assert found.masses.tolist() == [1 / 8, 1 / 8, 1 / 8, 5 / 8]


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6), st.floats(0.5, 60))
def test_the_projection_is_the_nearest_mass_that_is_not_negative(counts, total):
    y = np.array(counts)
    x = _projected(y, total)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(total)
    start = np.full(len(y), total / len(y))
    best = minimize(
        lambda z: ((z - y) ** 2).sum(),
        start,
        bounds=[(0, None)] * len(y),
        constraints={"type": "eq", "fun": lambda z: z.sum() - total},
    )
    assert ((x - y) ** 2).sum() <= best.fun + 1e-4 * (1 + best.fun)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=30), st.floats(1e-3, 1e4)
)
def test_masses_are_finite_and_not_negative_and_not_all_zero(cells, scale):
    counts, sizes, groups = (np.array(column) for column in zip(*cells, strict=True))
    found = denoised(counts, sizes, groups.astype(np.int32), scale)
    assert np.isfinite(found.masses).all()
    assert found.masses.min() >= 0
    assert found.masses.sum() > 0
