"""The compiled codes of rows, held against the same lines run by Python."""

import numpy as np
import pytest

from kveil.kernel import _grid_kernels as kernels
from kveil.kernel.grid import LARGEST

ROWS = np.array(
    [
        [0.0, 0.0, 0.0], [0.3, -0.2, 0.9], [5.0, -7.0, 0.1], [np.nan, 1.0, 2.0], [np.inf, 0.0, 0.0], [1e308, -1e308, 1e308],
        [1e-300, 0.0, 0.0], [0.5, 0.5, 0.5], [-0.57735026, 0.57735027, 0.57735027],
    ]
)  # fmt: skip
CENTER, TOP = np.array([0.1, 0.0, -0.2]), 127


def both(kernel, *arguments, dtype, shape):
    """What a kernel writes into its last argument: compiled, and run by Python."""
    found = []
    for run in (kernel, kernel.py_func):
        out = np.empty(shape, dtype=dtype)
        with np.errstate(all="ignore"):
            run(*arguments, out)
        found.append(out)
    return found


@pytest.mark.parametrize("row", ROWS)
def test_finite_rows_are_told_from_others(row):
    with np.errstate(all="ignore"):
        assert kernels.is_finite(row) == kernels.is_finite.py_func(row) == bool(np.isfinite(row).all())


def test_codes_of_a_box_are_clipped_and_rounded():
    compiled, plain = both(kernels.box_codes, ROWS, CENTER, np.full(3, TOP / 2.0), TOP, dtype=np.int16, shape=ROWS.shape)
    assert np.array_equal(compiled, plain)
    assert np.abs(compiled).max() == TOP
    assert not compiled[3:5].any()


def test_codes_of_a_ball_are_no_longer_than_its_radius():
    compiled, plain = both(kernels.shrinkages, ROWS, CENTER, 1.0, LARGEST, dtype=np.float64, shape=len(ROWS))
    assert np.array_equal(compiled, plain)
    for scales in (compiled * TOP, np.full(len(ROWS), 1.5 * TOP)):  # the right ones, and ones that are too long
        codes, plain = both(kernels.ball_codes, ROWS[:5], CENTER, scales[:5], LARGEST, TOP, dtype=np.int64, shape=(5, 3))
        assert np.array_equal(codes, plain)
        assert (codes**2).sum(axis=1).max() <= TOP**2
        assert not codes[3:5].any()
