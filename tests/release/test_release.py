"""What a release holds, and what it answers to whoever has rows."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from kveil.errors import InvalidType, InvalidValue, ReleaseError
from kveil.kernel.grid import Ball, Box
from kveil.release import plain
from kveil.space.euclidean import Centers, assign, clip

ROWS = np.random.default_rng(5).normal(scale=3, size=(200, 3))


def test_predict_gives_the_nearest_of_two_centres_worked_by_hand(make):
    release = make(centers=[[0.0], [1.0]], features=None, parameters={"bounds": [0, 1]})
    assert release.predict([[0.4], [0.6], [9.0], [-9.0], [np.nan]]).tolist() == [0, 1, 1, 0, 0]  # a broken row is the centre
    assert release.transform([[0.25], [9.0]]).tolist() == [[0.25, 0.75], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("parameters", "domain"),
    [
        ({"bounds": [-4, 4]}, Box([-4] * 3, [4] * 3)),
        ({"bounds": [[-4, -1, -9], [4, 1, 9]], "bits": 20}, Box([-4, -1, -9], [4, 1, 9], 20)),
        ({"bounds": [[-4, -1, -9], [4, 1, 9]], "scaling": "bounds"}, Box([-4, -1, -9], [4, 1, 9])),
        ({"radius": 2.5}, Ball(np.zeros(3), 2.5)),
        ({"center": [1.0, 0.0, -1.0], "radius": 2.5, "bits": 12}, Ball([1.0, 0.0, -1.0], 2.5, 12)),
    ],
)
def test_answers_are_those_of_the_domain_that_the_parameters_describe(make, parameters, domain):
    release, scaling = make(parameters=parameters), parameters.get("scaling")
    expected = assign(domain.encode(ROWS), Centers.of(release.centers, domain, scaling))
    assert np.array_equal(release.predict(ROWS), expected)
    unit = domain.half if scaling else 1.0
    apart = np.linalg.norm((clip(domain, ROWS)[:, None] - release.centers) / unit, axis=2)
    np.testing.assert_allclose(release.transform(ROWS), apart, rtol=1e-13)


def test_sparse_rows_are_answered_as_dense_ones(make):
    dense = ROWS * (np.abs(ROWS) > 2)
    matrix = sparse.coo_array(dense)
    assert np.array_equal(make().predict(matrix), make().predict(dense))
    assert np.array_equal(make().transform(matrix), make().transform(dense))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_is_reordered_by_the_names_of_the_features(make, frame):
    columns = {"feature 2": ROWS[:, 2], "id": np.arange(200), "feature 0": ROWS[:, 0], "feature 1": ROWS[:, 1]}
    assert np.array_equal(make().predict(frame(columns)), make().predict(ROWS))


def test_gaps_in_a_column_of_integers_make_the_row_the_centre_of_the_domain(make):
    release = make(centers=[[3.0], [0.0]], features=("n",), parameters={"bounds": [-4, 4]})
    assert release.predict(pd.DataFrame({"n": pd.array([3, None], dtype="Int64")})).tolist() == [0, 1]
    assert release.predict(pl.DataFrame({"n": [3, None]})).tolist() == [0, 1]
    assert release.predict(np.ma.array([[3.0], [3.0]], mask=[[False], [True]])).tolist() == [0, 1]


def test_missing_columns_are_named_and_cells_are_not(make):
    with pytest.raises(InvalidValue, match='no column "feature 1", "feature 2"'):
        make().predict(pd.DataFrame({"feature 0": [1.0], "other": [2.0]}))
    with pytest.raises(InvalidType) as caught:
        make().predict([["Alice", "Bob", "Eve"]])
    assert "Alice" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(InvalidType):
        make().predict(pd.DataFrame({f"feature {place}": ["Alice"] for place in range(3)}))


@pytest.mark.parametrize("rows", [[1.0, 2.0, 3.0], [[1.0, 2.0]], np.zeros((2, 3, 1))])
def test_rows_of_another_shape_are_refused(make, rows):
    with pytest.raises(InvalidValue):
        make().predict(rows)


def test_no_rows_get_no_answers(make):
    assert make().predict(np.empty((0, 3))).shape == (0,)
    assert make().transform(np.empty((0, 3))).shape == (0, 2)


def test_distances_in_an_enormous_domain_do_not_overflow(make):
    release = make(centers=[[1e200, 0.0]], features=None, parameters={"bounds": [-1e200, 1e200]})
    assert release.transform([[-1e200, 0.0]]).tolist() == [[2e200]]


@pytest.mark.parametrize("parameters", [{}, {"bounds": [1, 0]}, {"bounds": [[0, 0], [1, 1]]}, {"radius": "wide"}, {"bounds": 3}])
def test_without_a_usable_domain_there_is_no_answer(make, parameters):
    with pytest.raises(InvalidValue, match="in which domain"):
        make(parameters=parameters).predict(ROWS)


def test_centres_that_are_indices_say_whom_to_ask(make):
    with pytest.raises(InvalidValue, match="universe"):
        make(centers=[3, 5]).predict([[1.0]])


@pytest.mark.parametrize(
    "changes",
    [
        {"centers": [[np.nan, 0.0, 0.0]]},
        {"centers": [0.5, 1.5]},
        {"centers": np.empty((0, 3))},
        {"centers": [-1, 2]},
        {"weights": [0.5]},
        {"weights": [0.5, np.inf]},
        {"features": ("a", "b")},
        {"features": ("a", "b", "a")},
        {"features": ("a", "b", 3)},
        {"guarantee": {"epsilon": 1}},
        {"receipt": {"token": "t"}},
        {"receipt": {"token": "t", "ledger": None, "charges": True, "secure": True}},
        {"method": {"asked": "auto", "used": None, "why": ""}},
        {"kind": 3},
        {"notes": (3,)},
        {"names": ("home", "work")},
        {"centers": [4, 5], "names": ("home",)},
        {"centers": [4, 5], "names": ("home", 3)},
        {"purpose": None},
        {"data_name": "two\nlines"},
        {"created": "20260301"},
        {"created": "soon"},
        {"created": None},
    ],
)
def test_a_release_that_makes_no_sense_is_refused(make, changes):
    with pytest.raises(ReleaseError):
        make(**changes)


def test_a_release_cannot_be_changed_by_accident_and_keeps_its_own_copy(make):
    centers = np.zeros((2, 3))
    release = make(centers=centers)
    centers[:] = 7
    assert release.centers.max() == 0
    with pytest.raises(FrozenInstanceError):
        release.kind = "other"
    with pytest.raises(ValueError, match="read-only"):
        release.centers[0, 0] = 1
    again = pickle.loads(pickle.dumps(copy.deepcopy(release)))
    assert np.array_equal(again.centers, release.centers)
    assert again.guarantee == release.guarantee


def test_repr_is_short_and_does_not_hide_an_invalid_guarantee(make, invalid):
    assert repr(make()) == "Release(PrivateKMeans, 2 centers, 3 features, epsilon=0.5, delta=0)"
    assert repr(make(guarantee=invalid)).endswith("NOT VALID)")
    assert repr(make(centers=[1, 2])) == "Release(PrivateKMeans, 2 centers, epsilon=0.5, delta=0)"


def test_parameters_become_plain_values(make):
    release = make(parameters={"bounds": (np.zeros(2), np.float64(1)), "epsilon": float("inf"), "low": -np.inf, "k": np.int64(3)})
    assert release.parameters == {"bounds": [[0.0, 0.0], 1.0], "epsilon": "inf", "low": "-inf", "k": 3}


@pytest.mark.parametrize("value", [Path("/home/me/clinic.db"), object(), {1: 2}, float("nan"), b"bytes", {"a": {3}}])
def test_what_json_cannot_hold_is_refused_and_so_are_paths(value):
    with pytest.raises((InvalidType, InvalidValue)):
        plain(value)


def test_parameters_nested_without_end_are_refused():
    value: list = []
    for _ in range(200):
        value = [value]
    with pytest.raises(ReleaseError, match="deep"):
        plain(value)
