"""Shrinking by what noise explains, row by row and column by column."""

import numpy as np
import pytest

from kveil.solve.shrink import shrunk, shrunk_by_column

ROWS, COLUMNS = 10, 64


def _drawn(seed, deviations):
    """What is true, with these deviations by column, and the same with noise of deviation 1."""
    rng = np.random.default_rng(seed)
    true = deviations * rng.standard_normal((ROWS, COLUMNS))
    return true, true + rng.standard_normal(true.shape)


def _errors(deviations):
    """Mean squared errors of both, over 40 draws."""
    told = [_drawn(seed, deviations) for seed in range(40)]
    variances = np.full(ROWS, float(COLUMNS))
    return [np.mean([((found(noisy, variances) - true) ** 2).mean() for true, noisy in told])
            for found in (shrunk, shrunk_by_column)]  # fmt: skip


def test_columns_that_show_nothing_lose_most_of_their_noise():
    row_by_row, by_column = _errors(np.repeat([0.0, 1.5], COLUMNS // 2))
    assert by_column < 0.9 * row_by_row


def test_where_columns_are_alike_little_is_lost():
    for deviation in (0.3, 1.0, 3.0):
        row_by_row, by_column = _errors(np.full(COLUMNS, deviation))
        assert by_column < 1.1 * row_by_row


def test_one_row_has_no_columns_to_compare():
    _, noisy = _drawn(0, np.repeat([0.0, 1.0], COLUMNS // 2))
    variance = np.full(1, float(COLUMNS))
    assert shrunk_by_column(noisy[:1], variance) == pytest.approx(shrunk(noisy[:1], variance))


def test_an_entry_far_beyond_noise_is_kept_whatever_other_rows_say():
    rows = np.random.default_rng(1).standard_normal((ROWS, COLUMNS))
    rows[0, 0] = 100.0
    assert shrunk_by_column(rows, np.full(ROWS, float(COLUMNS)))[0, 0] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e300])
def test_noise_of_any_size_and_rows_of_zeros_give_numbers(variance):
    rows = np.zeros((3, 5))
    rows[0] = [0, 1, 2, 3, 1e-200]
    found = shrunk_by_column(rows, np.full(3, variance))
    assert found == pytest.approx(rows if variance < 1 else np.zeros((3, 5)))
