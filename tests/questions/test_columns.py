"""Columns of sums of sparse rows, by hand, and what they are not asked about."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from kveil.desk.base import Held
from kveil.desk.pool import Pool
from kveil.kernel.grid import Ball
from kveil.kernel.loss import PrivacyUnit
from kveil.questions.cells import TOP, Residuals
from kveil.questions.columns import ColumnCosts, ColumnSums
from kveil.questions.frame import Frame
from kveil.space.euclidean import Centers

D = 4
FRAME = replace(Frame.of(Ball([0.0] * D, 1.0, 16), None), nonzeros=2)
ZEROS = np.zeros((1, D), dtype=np.int64)


def summed(**changed):
    terms = (FRAME, Centers(ZEROS.astype(float), None), "measured", "centred", ZEROS, np.array([FRAME.radius]))
    return replace(Residuals(*terms, by_coordinates=True), **changed)


def held(question=None):
    pool = Pool(Fraction(1), Fraction(0), "add-remove", PrivacyUnit(), is_pure=True)
    return Held(question or summed(), (np.zeros(1, dtype=np.int64), ZEROS), pool)


def test_entries_beyond_the_bound_are_dropped_before_columns_are_compared():
    rows = Ball([0.0] * D, 1.0, 16).encode_sparse(csr_array([[0.5, -0.25, 0.125, 0.0], [0.0, -0.5, 0.0, 0.125]]))
    arrays = summed().raw(rows)
    (costs,) = ColumnCosts(FRAME, D).raw(arrays)
    assert (costs / TOP).round(3).tolist() == [[-0.5, -0.75, 0.0, -0.125]]  # 0.125 in column 2 was the third of its row
    (sums,) = ColumnSums(FRAME, D, np.array([[1, 3]])).raw(arrays)
    assert (sums / TOP).round(3).tolist() == [[-0.75, 0.125]]


@pytest.mark.parametrize(
    "of",
    [summed(by_coordinates=False), summed(frame=replace(FRAME)), summed(frame=replace(FRAME, nonzeros=None))],
    ids=["no bound", "another frame", "a frame without a bound"],
)
def test_sums_whose_entries_nobody_bounded_are_refused(of):
    desk = held(of)
    for ask in (
        lambda: desk.choose_several(ColumnCosts(FRAME, D), 1, 0.5),
        lambda: desk.ask(ColumnSums(FRAME, D, np.array([[0]])), 0.5),
    ):
        with pytest.raises(AssertionError, match="another question"):
            ask()
    assert desk.left == 1.0


@pytest.mark.parametrize("columns", [[[0, 0]], [[3, -1]]])
def test_a_column_is_not_released_twice(columns):
    with pytest.raises(AssertionError, match="twice"):
        ColumnSums(FRAME, D, np.array(columns))


def test_several_choices_are_pure():
    pool = Pool(Fraction(1), Fraction(1, 10**6), "add-remove", PrivacyUnit(), is_pure=False)
    desk = Held(summed(), (np.zeros(1, dtype=np.int64), ZEROS), pool)
    with pytest.raises(AssertionError, match="pure"):
        desk.choose_several(ColumnCosts(FRAME, D), 1, 0.5)
    assert desk.left == 1.0
