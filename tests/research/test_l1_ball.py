"""The L1 ball of the reproduction: no row is longer than it says, and the noise of seeds is as wide as Theorem 12 has it."""

from fractions import Fraction

import numpy as np
import pytest

from kveil.desk.seeds import LaplaceSeeds, Reach
from kveil.kernel.grid import Ball
from kveil.research.l1_ball import L1Ball
from kveil.research.seeders import SEEDERS

pytestmark = pytest.mark.research


@pytest.mark.parametrize("bits", [4, 16])
def test_no_code_is_longer_than_the_stated_sensitivity(bits):
    """Rows inside, on the sphere, far outside, huge and broken; two codes differ by at most the stated diameter."""
    ball, rng = L1Ball(np.array([1.0, -2.0, 0.5]), 2.0, bits), np.random.default_rng(0)
    away = rng.standard_normal((500, 3)) * 10.0 ** rng.integers(-3, 5, (500, 1))
    odd = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [1e308, 1e308, -1e308], [1e300, 0, 0], [3.0, -2.0, 0.5], [2.0, -1.0, 0.5]])
    codes = ball.encode(np.vstack([ball.center + away, odd])).astype(np.int64)
    sums = np.abs(codes).sum(axis=1)
    assert sums.max() == ball.top == ball.l1_sensitivity == ball.l2_sensitivity
    assert codes[-6:-4].tolist() == [[0, 0, 0]] * 2
    assert codes[-2].tolist() == [ball.top, 0, 0]
    assert Reach.of(ball, is_vector=False) == ("l1", 2 * ball.top)


def test_rows_inside_stay_where_they_are_up_to_a_step():
    ball = L1Ball(np.zeros(2), 1.0)
    rows = np.array([[0.3, -0.5], [0.0, 0.99], [-0.2, 0.1]])
    assert np.abs(ball.decode(ball.encode(rows)) - rows).max() <= ball.step.max()


def test_noise_is_narrower_than_in_the_l2_ball_by_the_root_of_the_columns():
    """Theorem 12: scale 2R/epsilon, whatever the number of columns."""
    epsilon, d = Fraction(3), 10
    charges = [LaplaceSeeds.of(kind(np.zeros(d), 1.0), 3, None, epsilon, is_vector=False).charges[0] for kind in (L1Ball, Ball)]
    in_l1, in_l2 = (charge.sensitivity for charge in charges)
    assert in_l1 == 2 * L1Ball(np.zeros(d), 1.0).top
    assert in_l2 / in_l1 == pytest.approx(np.sqrt(d), rel=1e-3)


@pytest.mark.parametrize("how", list(SEEDERS))
def test_every_seeder_knows_its_norm(how):
    mechanism = SEEDERS[how](L1Ball(np.zeros(3), 1.0), 2, Fraction(1))
    assert {charge.norm for charge in mechanism.charges} == {"l1"}
    assert mechanism.charges[-1].sensitivity == 2 * mechanism.domain.top
