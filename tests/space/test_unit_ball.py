"""Rows as directions: codes of length at most top and nearly that, whatever a row's own length, and nearest directions."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kveil.space.unit_ball import UnitBall, cosine_distances, nearest_directions, unit

ROWS = np.array(
    [[3.0, -4.0, 0.0], [3e-7, -4e-7, 0.0], [3e299, -4e299, 0.0], [5e-324, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, np.nan, 2.0],
     [np.inf, 1.0, 0.0], [1.0, 1.0, 1.0]]
)  # fmt: skip


@pytest.mark.parametrize("bits", [2, 8, 16, 23])
def test_codes_are_as_long_as_the_ball_allows_and_never_longer(bits):
    domain, rng = UnitBall(40, bits), np.random.default_rng(bits)
    rows = rng.standard_normal((500, 40)) * 10.0 ** rng.integers(-200, 200, (500, 1))
    squares = (domain.encode(rows).astype(object) ** 2).sum(axis=1)
    assert max(squares) <= domain.top**2
    assert min(squares) >= max(0, domain.top - 41**0.5 - 2) ** 2


def test_a_direction_is_the_same_at_any_length_and_bad_rows_are_none():
    codes = UnitBall(3, 16).encode(ROWS)
    assert (codes[0] == codes[1]).all()
    assert (codes[0] == codes[2]).all()
    assert codes[3].tolist() == [2**15 - 1, 0, 0]
    assert not codes[4:7].any()


def test_sparse_rows_get_the_codes_of_dense_ones():
    domain = UnitBall(3, 20)
    sparse = domain.encode_sparse(csr_array(np.nan_to_num(ROWS, nan=np.nan, posinf=np.inf)))
    assert (sparse.toarray() == domain.encode(ROWS)).all()
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 50)) * (rng.random((300, 50)) < 0.2)
    wide = UnitBall(50, 18)
    assert (wide.encode_sparse(csr_array(rows)).toarray() == wide.encode(rows)).all()


def test_the_nearest_direction_has_the_largest_cosine_and_ties_go_to_the_lowest():
    domain, centers = UnitBall(3, 16), unit(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [1.0, -1.0, 0.0]]))
    for rows in (ROWS, csr_array(ROWS)):
        assert nearest_directions(rows, centers, domain).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
        away = cosine_distances(rows, centers, domain)
        assert away[0, 1] == pytest.approx(1 - 7 / 50**0.5)
        assert away[7, 0] == pytest.approx(0, abs=1e-12)
        assert (away[4:7] == 1).all()
    assert not unit(np.zeros((1, 3))).any()
