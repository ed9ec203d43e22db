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


HALF = 0.5**0.5
ALONG, ACROSS, OTHERS = [1.0, 0.0, 0.0, 0.0], [HALF, HALF, 0.0, 0.0], [[0.5, 0.0, 0.0, 0.0]] * 6


def costs_of(rows):
    table = csr_array(np.array(rows, dtype=float).reshape(-1, D))
    return ColumnCosts(FRAME, D).raw(summed().raw(Ball([0.0] * D, 1.0, 16).encode_sparse(table)))[0]


@pytest.mark.parametrize(("row", "rounds"), [(ALONG, D), (ACROSS, 1)], ids=["all in one column", "over several"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_several_choices_are_charged_for_what_a_person_of_two_rows_can_do(relation, row, rounds, monkeypatch):
    """Nearly attained, so that a charge for half of it would show: for one row of two, or for adding where rows are replaced."""
    charges = []
    monkeypatch.setattr(Pool, "_draw", lambda self, measurement, raw: charges.append(measurement.charge))
    pool = Pool(Fraction(1), Fraction(0), relation, PrivacyUnit("person", 2), is_pure=True)
    Held(summed(), (np.zeros(1, dtype=np.int64), ZEROS), pool).choose_several(ColumnCosts(FRAME, D), rounds, 0.5)
    others = OTHERS if rounds > 1 else []
    opposite = [-1.0 * np.array(row)] if rounds > 1 else [np.array(row)[::-1]]  # what the person may have instead
    after = opposite * 2 if relation == "replace-one" else []
    away = np.abs(costs_of([*others, row, row]) - costs_of([*others, *after]))
    moved = (rounds - 1) * away.max() + away.sum()
    assert 0.9 * charges[0].sensitivity < moved <= charges[0].sensitivity
