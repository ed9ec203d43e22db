"""How many pieces released counts can carry."""

import numpy as np
import pytest

from kveil.solve.sizing import grid_bits, telling_columns


@pytest.mark.parametrize(
    ("signal", "d", "k", "bits"),
    [
        (10 * 2**12, 2, 16, 12),  # 4096 cells, more than 3200
        (10 * 2**12, 2, 40, 13),  # fewer than 8000: twice as many
        (10 * 2**12, 2, 1000, 13),
        (10 * 2**16, 2, 16, 16),
        (10 * 2**17, 2, 16, 16),  # more would add noise alone
        (10 * 2**30, 2, 16, 16),
        (10 * 2**30, 2, 1000, 18),  # unless they are fewer than 200 per centre: 2**18 is above 200 000
        (10 * 2**30, 2, 10**5, 20),
        (10 * 2**10, 3, 16, 12),  # to the power 6/5
        (10 * 2**15, 3, 16, 17),
        (10 * 2**12, 1, 2, 9),  # to the power 2/3, and twice as many: 256 cells are fewer than 400
        (10.0, 2, 2, 4),
    ],
)
def test_a_grid_has_as_many_cells_as_rows_bear_and_centres_need(signal, d, k, bits):
    assert grid_bits(signal, d, k) == bits


def test_without_noise_cells_are_as_many_as_rows_ask_for():
    assert [grid_bits(10.0 * 2**bits, 2, 16, is_noisy=False) for bits in (12, 17, 30)] == [12, 17, 20]


@pytest.mark.parametrize(
    ("noise", "kept"),
    [
        (0.5, [1, 3]),  # what the others may hold, .3 of 10, is less than their noise
        (0.01, [1, 3]),
        (0.001, [0, 1, 2, 3]),  # short: steps make it shorter yet
    ],
)
def test_columns_that_may_hold_little_are_left_out_where_noise_is_long(noise, kept):
    found = telling_columns(np.array([0.1, 9.0, 0.2, 9.0]), 10.0, lambda m: noise * m * (m + 1))
    assert found.tolist() == kept


def test_columns_that_may_all_hold_the_rows_are_kept():
    assert telling_columns(np.full(50, 1.0), 2.0, lambda m: 0.01 * m * (m + 1)).tolist() == list(range(50))
