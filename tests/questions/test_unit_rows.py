"""Unit rows in integers: how long they are, who they belong to, and the exact law of what one person moves."""

from fractions import Fraction
from itertools import product
from math import isqrt, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array

from kveil import Ledger, PrivacyUnit, read
from kveil.desk.law import Law
from kveil.desk.pool import Pool
from kveil.questions.unit_rows import TOP, UnitRows, UnitSums, UnitTotals
from kveil.space.unit_ball import UnitBall

FALSE_ALARM = 1e-6
D = 12


def vector(row, **options):
    """What one row adds to a sum over all columns."""
    view = UnitRows(len(row), options.pop("columns", np.arange(len(row))), **options)
    centers = np.zeros((1, len(view.columns)), dtype=np.int64)
    return UnitSums(view, centers).raw(csr_array(np.array([row], dtype=np.int64)))[1][0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**22), 2**22), min_size=D, max_size=D), st.integers(1, D), st.integers(0, 22))
def test_a_unit_row_is_at_most_top_long_and_off_by_little_more_than_a_step(row, nonzeros, shift):
    codes = np.array(row) >> shift
    codes = codes * (2**22) // max(2**22, isqrt(int((codes.astype(object) ** 2).sum())) + 1)  # as long as a domain allows
    v = vector(codes, signed=True)
    assert sum(int(x) ** 2 for x in v) <= TOP**2
    length = sqrt(sum(int(x) ** 2 for x in codes))
    if length:
        assert np.abs(v - TOP * codes / length).max() < 1.01
    few = vector(codes, signed=True, nonzeros=nonzeros)
    assert np.count_nonzero(few) <= nonzeros
    assert np.abs(few).sum() <= isqrt(nonzeros * TOP**2)


def test_negative_codes_are_0_unless_signs_count_and_before_the_norm_is_taken():
    assert vector([3, -4, 0]).tolist() == vector([3, 0, 0]).tolist() == vector([1, 0, 0]).tolist()
    assert vector([3, -4, 0], signed=True)[1] < -0.79 * TOP
    assert not vector([-1, -2, -3]).any()


def test_of_equal_codes_those_stay_whose_column_stands_first():
    kept = {order: vector([5, 5, 5, 9], nonzeros=2, columns=np.array(order)) for order in ((0, 1, 2, 3), (2, 3, 1, 0))}
    assert [np.flatnonzero(v).tolist() for v in kept.values()] == [[0, 3], [0, 1]]


def test_a_row_without_a_kept_column_is_counted_nowhere():
    view = UnitRows(3, np.array([1]))
    counts, sums = UnitSums(view, np.array([[TOP], [-TOP]])).raw(csr_array(np.array([[5, 0, 1], [0, 2, 0], [0, 0, 0]])))
    assert counts.tolist() == [1, 0]
    assert TOP - 2 <= sums[0, 0] <= TOP


def test_ties_and_a_row_that_no_centre_touches_go_to_the_first_cell():
    view, centers = UnitRows(3, np.arange(3)), np.array([[0, TOP, 0], [TOP, 0, 0], [TOP, 0, 0]])
    counts, _ = UnitSums(view, centers).raw(np.array([[4, 0, 0], [0, 0, 7], [0, 9, 1]]))
    assert counts.tolist() == [2, 1, 0]


def test_centres_that_are_too_long_for_exact_products_are_refused():
    with pytest.raises(AssertionError, match="exact"):
        UnitSums(UnitRows(2, np.arange(2)), np.array([[TOP, 1]]))


TINY = np.array(list(product((-1, 0, 1), repeat=3)))  # every row there is
NEAR = np.array([[TOP, 0, 0], [0, TOP, 0], [0, 0, TOP]])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_exact_law_of_a_tiny_universe(kind, relation, signed):
    """Over all rows that a person may add, or give for others, sums move by at most what is charged, and some by nearly that."""
    view = UnitRows(3, np.arange(3), signed=signed)
    for m, question in ((1, UnitSums(view, NEAR)), (2, UnitSums(view, NEAR)), (1, UnitTotals(view))):
        law = Law(kind, relation, PrivacyUnit("person", m, "id") if m > 1 else PrivacyUnit())
        some = [np.array(rows) for rows in product(TINY, repeat=m)] if m == 1 else [np.array([row, row]) for row in TINY]
        added = [question.raw(csr_array(rows))[-1].astype(object) for rows in some]
        others = added if relation == "replace-one" else [0 * added[0]]
        lengths = [_length(a - b, kind) for a in added for b in others]
        charged = law.moved(question.parts[-1])
        assert max(lengths) <= charged
        is_total = isinstance(question, UnitTotals)  # one cell, and nothing negative: replaced, it moves less than is charged
        if not (relation == "replace-one" and kind == "pure" and is_total):
            assert max(lengths) >= 0.999 * charged


def _length(away, kind):
    """In the norm of the noise: L2, or the sum over cells of L2 norms."""
    rows = [away.ravel()] if kind == "zcdp" else list(away)
    return sum(sqrt(sum(int(x) ** 2 for x in row)) for row in rows)


def noise_of(relation, question, n_columns):
    """The noise in the answer to a question about no rows, over the deviation that is said to be in it."""
    pool = Pool(Fraction(1), Fraction(1, 10**6), relation, PrivacyUnit(), is_pure=False)
    with Ledger.memory("law", 1, 1e-6, relation=relation).reserve(pool.plan()) as ticket:
        desk = pool.open(read(csr_array((0, n_columns))), UnitBall(n_columns), ticket)
        (shown,) = desk.ask(question, 1.0)
    return shown.values.ravel() / (shown.noise / sqrt(n_columns)), pool.total, shown.noise / sqrt(n_columns)


@pytest.mark.statistical
@pytest.mark.parametrize(("relation", "factor"), [("add-remove", 1.0), ("replace-one", sqrt(2))])
def test_noise_in_totals_is_as_wide_as_the_law_says(relation, factor):
    """False alarm 1e-6. Noise a tenth too narrow is missed less often: a twin that is that narrow fails."""
    n = 20_000
    noise, rho, said = noise_of(relation, UnitTotals(UnitRows(n, np.arange(n))), n)
    assert said == pytest.approx(factor / sqrt(2 * rho), rel=1e-3)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n)
    assert low <= float((noise**2).sum()) <= high
    assert not low <= float(((0.9 * noise) ** 2).sum()) <= high
