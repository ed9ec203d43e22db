"""Every number in docs/errata.md, computed."""

import math

import numpy as np
import pytest

from kveil.kernel.grid import Ball


def test_the_sum_moves_by_the_square_root_of_d_and_the_printed_budget_is_overspent():
    for d, spent in [(100, 1.125), (784, 1.875)]:
        record = np.full((1, d), 1 / math.sqrt(d))
        assert np.linalg.norm(record) == pytest.approx(1)
        assert np.abs(record).sum() == pytest.approx(math.sqrt(d))
        assert (17 + math.sqrt(d)) / 24 == pytest.approx(spent)
    grid = Ball(np.zeros(784), 1.0)
    codes = grid.encode(record).astype(np.int64)
    assert np.abs(codes).sum() > 27 * grid.l2_sensitivity  # Laplace noise would need 28 times the radius
    assert (codes**2).sum() <= grid.l2_sensitivity**2  # K-norm noise needs the radius


def coin(m: int, epsilon: float, cut: float) -> float:
    """P(m + Laplace(1/epsilon) > cut)."""
    gap = epsilon * (cut - m)
    return 0.5 * math.exp(-gap) if gap > 0 else 1 - 0.5 * math.exp(gap)


def test_skipping_empty_cells_has_an_infinite_ratio_and_counting_them_has_not():
    epsilon, cut = 0.5, 3.0
    with_record, without_if_counted, without_if_skipped = coin(1, epsilon, cut), coin(0, epsilon, cut), 0.0
    assert with_record > 0 == without_if_skipped
    assert math.log(with_record / without_if_counted) <= epsilon + 1e-12


def test_a_depth_of_log_n_differs_between_neighbours():
    assert math.floor(math.log(20)) != math.floor(math.log(21))


def test_a_scale_from_the_secret_gives_an_unbounded_ratio():
    b, other = 0.748584, 0.746806

    def log_ratio(x):
        return abs(math.log(other / b) + x * (1 / other - 1 / b))

    assert log_ratio(200) == pytest.approx(0.634, abs=5e-4)
    assert log_ratio(2000) == pytest.approx(6.36, abs=5e-3)
    assert log_ratio(10**6) > 1000


def test_the_accountant_drops_the_count_of_randomised_responses():
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    event, relation = dp_accounting.RandomizedResponseDpEvent(0.5, 2), dp_accounting.NeighboringRelation.REPLACE_ONE
    one, fifty = (PLDAccountant(neighboring_relation=relation) for _ in range(2))
    one.compose(event)
    fifty.compose(event, 50)
    assert fifty.get_epsilon(1e-6) == pytest.approx(one.get_epsilon(1e-6))


def test_steps_and_blocks_by_the_exact_n_differ_between_neighbours():
    k, d, epsilon = 15, 2, 1.0
    c = (4 * d * 0.225**2) ** (1 / 3)

    def steps(n):
        return int(min(7, max(2, epsilon / (math.sqrt(500 * k**3 * (d + c) ** 3) / n))))

    assert (steps(17674), steps(17675)) == (2, 3)
    assert (round(107**0.4), round(108**0.4)) == (6, 7)


def test_blocks_by_place_let_one_row_move_several():
    rows = [0, 0, 1, 1, 0, 0, 1, 1]

    def results(table):
        return [min(table[i : i + 2]) for i in range(0, 8, 2)]

    assert results(rows) == [0, 1, 0, 1]
    assert results([0, *rows]) == [0, 0, 0, 0]
