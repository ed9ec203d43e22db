"""A private search for bounds: one charge, the right octaves, and nothing that rows can break."""

import json
import warnings
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import kveil
from kveil import Bounds, Ledger, PrivateKMeans, find_bounds
from kveil.errors import BoundsNotFound, BudgetExceeded, InvalidValue, KveilError
from kveil.questions.octaves import OctaveCounts, Octaves
from kveil.testing import scripted


def ledger(epsilon=1.0, **terms):
    return Ledger.memory("search", epsilon, **{"relation": "add-remove", **terms})


def searched(rows, epsilon=1.0, **options):
    found = find_bounds(rows, epsilon, ledger=ledger(epsilon), **options)[0]
    return (list(found.low), list(found.high)) if isinstance(found, Bounds) else found


def test_uniform_values_up_to_five_are_bounded_by_zero_and_eight():
    """2000 rows, epsilon 1: at least 99 % of runs; a run goes wrong with probability about 5e-4, so 60 runs allow 3."""
    rows = np.random.default_rng(0).uniform(0, 5, (2000, 1))
    wrong = 0
    for seed in range(60):
        with scripted(seed):
            wrong += searched(rows) != ([0.0], [8.0])
    assert wrong <= 3


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        (np.full((900, 1), 180.0), {}, ([128.0], [256.0])),
        (np.full((900, 1), -180.0), {}, ([-256.0], [-128.0])),
        (np.linspace(-3, 90, 3000)[:, None], {}, ([-4.0], [128.0])),
        (np.linspace(-90, -1, 3000)[:, None], {}, ([-128.0], [0.0])),
        (np.zeros((900, 1)), {"exponents": (-2, 10)}, ([-0.25], [0.25])),
        (np.full((900, 1), 4.0), {}, ([2.0], [4.0])),
        (np.full((900, 1), 1e300), {"exponents": (0, 3)}, ([4.0], [8.0])),
        (np.full((900, 1), 1010.0), {"center": 1000.0}, ([1008.0], [1016.0])),
        (np.full((2000, 3), 3.0), {"shape": "ball"}, 8.0),
    ],
    ids=str,
)
def test_known_rows_have_known_bounds(rows, options, expected):
    with scripted(5):
        assert searched(rows, 2.0, **options) == expected


def test_a_cube_is_one_pair_for_all_columns_and_a_box_one_a_column():
    rows = np.column_stack([np.full(4000, 3.0), np.full(4000, 100.0)])
    with scripted(1):
        low, high = searched(rows, 2.0, shape="cube")
        assert (low.tolist(), high.tolist()) == ([-128.0, -128.0], [128.0, 128.0])
        assert searched(rows, 2.0) == ([2.0, 64.0], [4.0, 128.0])


def test_what_it_finds_can_be_used_at_once():
    rows = np.random.default_rng(1).uniform(1, 90, (5000, 2))
    account = ledger(2.0)
    bounds, receipt = find_bounds(rows, 0.5, ledger=account)
    model = PrivateKMeans(2, epsilon=1.5, bounds=bounds, ledger=account).fit(rows)
    assert receipt.secure
    assert account.remaining().epsilon == 0
    assert model.cluster_centers_.shape == (2, 2)


@pytest.mark.parametrize(
    ("relation", "m", "shape", "sensitivity"),
    [("add-remove", 1, "box", 3), ("add-remove", 2, "box", 6), ("replace-one", 1, "box", 6), ("replace-one", 2, "ball", 4)],
)
def test_the_one_charge_is_epsilon_at_the_proved_sensitivity(relation, m, shape, sensitivity):
    frame = pd.DataFrame(np.full((3000, 3), 5.0), columns=list("abc")).assign(id=range(3000))
    source = kveil.read(frame, person="id", max_rows_per_person=m) if m > 1 else kveil.read(frame[["a", "b", "c"]])
    account = ledger(4.0, relation=relation, unit=source.unit)
    _, receipt = find_bounds(source, 2.0, ledger=account, shape=shape)
    assert (receipt.charge.sensitivity, receipt.charge.epsilon, receipt.charge.times) == (sensitivity, Fraction(2), 1)
    assert account.spent().epsilon == 2.0


ODD = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3.7, -1e308, 5e-324, float("nan"), float("-inf"), 2.0**40, -(2.0**-20)])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(ODD, ODD), max_size=6), st.tuples(ODD, ODD), st.integers(0, 6), st.sampled_from(["box", "cube", "ball"])
)
def test_one_row_moves_one_bin_of_each_histogram_by_one(rows, row, place, shape):
    octaves = Octaves(np.zeros(2), -20, 40, shape)
    table = np.array(rows, dtype=np.float64).reshape(-1, 2)
    more = np.insert(table, min(place, len(table)), row, axis=0)
    (before,), (after,) = (OctaveCounts(octaves).raw(octaves.encode(rows)) for rows in (table, more))
    assert (np.abs(after - before).sum(axis=1) == 1).all()
    assert after.shape == (2 if shape == "box" else 1, octaves.n_bins)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_value_lies_in_its_bin(value):
    octaves = Octaves(np.zeros(1), -20, 40, "box")
    low, high = octaves.edges(int(octaves.encode([[value]])[0, 0]))
    inside = low <= value <= high if abs(value) <= 2.0**-20 else (low < value <= high or low <= value < high)
    assert inside or abs(value) > 2.0**40


def test_sparse_rows_have_the_bins_of_dense_ones():
    rng = np.random.default_rng(2)
    rows = np.where(rng.random((200, 9)) < 0.3, rng.normal(size=(200, 9)) * 1e3, 0.0)
    rows[3, 2], rows[4, 1] = np.nan, np.inf
    for shape in ("cube", "ball"):
        octaves = Octaves(np.zeros(9), -20, 40, shape)
        assert np.array_equal(octaves.encode(rows), octaves.encode_sparse(csr_array(rows)))


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.full((5, 2), np.nan), np.full((50, 2), 1e308), np.array([[np.inf, 1.0]])])
def test_what_rows_hold_is_found_or_not_found_but_never_breaks(rows):
    account = ledger()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(BoundsNotFound):
            low, high = find_bounds(rows, 1.0, ledger=account)[0]
            assert len(low) == len(high) == 2
    assert account.spent().epsilon == 1.0


@pytest.mark.parametrize(
    "options",
    [
        {"shape": "sphere"},
        {"exponents": (5, 5)},
        {"exponents": (0.5, 2)},
        {"exponents": 3},
        {"center": [1.0]},
        {"center": np.nan},
        {"refine": 1},
        {"refine": True, "shape": "cube"},
    ],
    ids=str,
)
def test_bad_options_are_refused_and_cost_nothing(options):
    account = ledger()
    with pytest.raises(KveilError, match="must"):
        find_bounds(np.zeros((10, 2)), 0.5, ledger=account, **options)
    assert account.spent().epsilon == 0


def test_too_few_rows_are_not_found_and_the_charge_stays_spent():
    account = ledger()
    with scripted(0), pytest.raises(BoundsNotFound, match="stays spent"):
        find_bounds(np.ones((3, 2)), 0.5, ledger=account)
    assert account.spent().epsilon == 0.5


def test_a_budget_or_a_table_that_does_not_fit_is_refused():
    account = ledger(0.1)
    with pytest.raises(BudgetExceeded):
        find_bounds(np.zeros((10, 2)), 0.5, ledger=account)
    with pytest.raises(KveilError, match="cube"):
        find_bounds(csr_array(np.eye(3)), 0.05, ledger=account)
    with pytest.raises(TypeError, match="ledger"):
        find_bounds(np.zeros((10, 2)), 0.5, ledger=None)
    assert account.spent().epsilon == 0


# --- refine: half of epsilon for even bins inside the powers of two --------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (np.linspace(49.6, 59.4, 3000), ([49.0], [60.0])),  # powers of two: 32 to 64, in bins of 0.5; one more on either side
        (np.full(3000, 64.0), ([63.0], [64.0])),  # at the end of 32 to 64: nothing beyond
        (np.full(3000, 3.01), ([2.96875], [3.0625])),  # 2 to 4, in bins of 1/32
        (np.concatenate([np.full(3000, 40.0), np.full(2000, 45.0)]), ([39.0], [45.5])),
    ],
    ids=["a range", "an end", "one value", "two values"],
)
def test_even_bins_narrow_what_powers_of_two_hold(rows, expected):
    with scripted(5):
        low, high = searched(rows[:, None], 2.0, refine=True)
    np.testing.assert_allclose((low, high), expected, atol=0.01)


def test_refined_bounds_are_hardly_wider_than_what_the_rows_hold():
    """A latitude: powers of two hold it in 32 to 64, four times its range."""
    rows = np.clip(np.random.default_rng(0).normal(53, 1.2, (30_000, 1)), 49.9, 58.5)
    inside = np.ptp(np.quantile(rows, [0.001, 0.999]))
    for seed in range(5):
        with scripted(seed):
            (low,), (high,) = searched(rows, 0.5, refine=True)
        assert (high - low) / inside < 1.4
        assert ((rows < low) | (rows > high)).mean() < 0.002


def test_columns_in_which_no_bin_stands_out_keep_their_powers_of_two():
    """About 100 rows pass the threshold of the octaves, and none of 64 bins does."""
    rows = np.linspace(32.5, 63.5, 100)[:, None]
    with scripted(5):
        assert searched(rows, 1.0, refine=True) == ([32.0], [64.0])


@pytest.mark.parametrize(("relation", "m", "sensitivity"), [("add-remove", 1, 3), ("add-remove", 2, 6), ("replace-one", 2, 12)])
def test_refining_is_two_charges_of_half_at_the_proved_sensitivity(relation, m, sensitivity):
    frame = pd.DataFrame(np.full((3000, 3), 5.0), columns=list("abc")).assign(id=range(3000))
    source = kveil.read(frame, person="id", max_rows_per_person=m)
    account = ledger(2.0, relation=relation, unit=source.unit)
    _, receipt = find_bounds(source, 2.0, ledger=account, refine=True)
    (entry,) = account.charges()
    halves = [(charge["label"], charge["sensitivity"], charge["epsilon"]) for charge in json.loads(entry.plan)["charges"]]
    assert halves == [("bounds", sensitivity, "1/1"), ("finer bounds", sensitivity, "1/1")]
    assert receipt.charge.label == "finer bounds"
    assert account.spent().epsilon == 2.0


def test_both_halves_stay_spent_where_nothing_is_found():
    account = ledger()
    with scripted(0), pytest.raises(BoundsNotFound, match="stays spent"):
        find_bounds(np.ones((3, 2)), 0.5, ledger=account, refine=True)
    assert account.spent().epsilon == 0.5


def test_bounds_of_named_columns_are_used_by_name_and_refused_for_others(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).uniform([1, 100], [60, 200], (4000, 2)), columns=["age", "height"])
    found, _ = find_bounds(frame, 2.0, ledger=ledger(2.0), refine=True)
    assert found.names == ("age", "height")
    assert found["age"] == (found.low[0], found.high[0])
    swapped = PrivateKMeans(2, bounds=found, scaling="bounds").fit(frame[["height", "age"]]).release_.parameters["bounds"]
    assert swapped == [[found.low[1], found.low[0]], [found.high[1], found.high[0]]]
    assert PrivateKMeans(2, bounds=found).guarantee().epsilon == 1.0
    for other in (frame.rename(columns={"age": "year"}), frame[["age"]], frame.to_numpy()):
        with pytest.raises(InvalidValue, match="must name exactly the columns in use"):
            PrivateKMeans(2, bounds=found).fit(other)
    with pytest.raises(KeyError):
        found["weight"]
    with pytest.raises(InvalidValue, match="names must be"):
        Bounds([0, 0], [1, 1], names=("age", "age"))


def test_levels_of_categories_have_bounds_already():
    source = kveil.read(np.zeros((5, 2)), categories={1: (0, 1)})
    account = ledger()
    with pytest.raises(InvalidValue, match="bounds of their own"):
        find_bounds(source, 1.0, ledger=account)
    assert account.charges() == ()
