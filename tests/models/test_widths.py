"""Columns of very different widths: said before anything is charged, and cured by scaling to the bounds."""

import warnings

import numpy as np
import pandas as pd
import pytest

import kveil
from kveil import FederatedKMeans, Ledger, PrivateKMeans, PrivateKMedian, StreamKMeans
from kveil.errors import InvalidValue, NoisyResultWarning, ScaleWarning
from kveil.testing import scripted
from kveil.tuning import KMedian

UNEVEN = {"age": (0, 120), "height": (0, 3), "income": (0, 100_000)}
ROWS = pd.DataFrame(np.random.default_rng(0).uniform(0, [120, 3, 100_000], (60, 3)), columns=list(UNEVEN))
SAID = '"income" is 33,333 times as wide as "height" (and more than 100 times as wide as "age") and decides every distance'
MODELS = [PrivateKMeans, PrivateKMedian, StreamKMeans, FederatedKMeans]


def fit(model, rows=ROWS, **parameters):
    asked = model(2, epsilon=1.0, **{"bounds": UNEVEN, **parameters})
    if model is StreamKMeans:
        return asked.partial_fit(rows).finish()
    return asked.fit([rows] if model is FederatedKMeans else rows)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_column_that_decides_every_distance_is_named_at_fit_and_in_the_notes(model):
    with pytest.warns(ScaleWarning) as told:
        release = fit(model).release_
    (said,) = [str(one.message) for one in told if one.category is ScaleWarning]
    cure = (
        'Pass scaling="bounds", or scaling="private"' if model in MODELS[:2] else "Divide every column by its public width first"
    )
    assert said == f"{SAID}. {cure}, unless that is meant."
    assert f"not scaled: {SAID}" in release.notes
    assert told[0].filename == __file__


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda model: model.__name__)
def test_a_warning_that_is_made_an_error_costs_nothing(model):
    ledger = Ledger.memory("untouched", 5.0, relation="add-remove")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        with pytest.raises(ScaleWarning):
            fit(model, ledger=ledger)
    assert ledger.charges() == ()
    with pytest.warns(ScaleWarning):
        fit(model, ledger=ledger)
    assert ledger.spent().epsilon == 1.0


def test_a_party_is_asked_nothing_after_a_warning_that_is_made_an_error():
    party = kveil.federate.Party(ROWS, bounds=UNEVEN, name="clinic")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        with pytest.raises(ScaleWarning):
            FederatedKMeans(2, epsilon=1.0).fit([party])
    assert party.ledger.charges() == ()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_widths_that_differ_by_100_or_less_and_scaled_ones_are_not_worth_a_word(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        assert not any(
            "scaled" in note for note in fit(model, ROWS[["age"]].assign(b=0.0), bounds=[(0, 1), (-50, 50)]).release_.notes
        )
        if model in MODELS[:2]:
            assert not any("scaled" in note for note in fit(model, scaling="bounds").release_.notes)


def test_the_guarantee_before_the_data_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        PrivateKMeans(2, bounds=UNEVEN).guarantee()


# --- PrivateKMedian(scaling="bounds") ------------------------------------------------------------------------------------

HALF, MIDDLE = np.array([0.5, 1024.0]), np.array([3.0, -4096.0])  # powers of two: scaling by hand is exact
UNIT = np.clip(
    np.random.default_rng(1).normal(0, 0.1, (300, 2)) + np.repeat([[-0.5, 0.5], [0.5, 0.5], [0.0, -0.5]], 100, axis=0), -1, 1
)
BOUNDS = [(2.5, 3.5), (-5120, -3072)]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"method": "candidates"},
        {"init": "spread"},
        {"init": "packing", "n_steps": 2},
        {"tuning": KMedian(recovery="grid")},
        {"tuning": KMedian(smoothing=0.125)},
        {"epsilon": float("inf")},
    ],
    ids=str,
)
def test_scaling_to_the_bounds_is_scaling_by_hand(parameters):
    found = []
    for rows, terms in ((UNIT, {"bounds": (-1, 1)}), (UNIT * HALF + MIDDLE, {"bounds": BOUNDS, "scaling": "bounds"})):
        with scripted(3):
            model = PrivateKMedian(3, **{"epsilon": 2.0, "random_state": 0, **terms, **parameters}).fit(rows)
        found.append((model, rows))
    (by_hand, unit), (scaled, rows) = found
    np.testing.assert_allclose((scaled.cluster_centers_ - MIDDLE) / HALF, by_hand.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(scaled.cluster_weights_, by_hand.cluster_weights_)
    np.testing.assert_array_equal(scaled.predict(rows), by_hand.predict(unit))
    np.testing.assert_array_equal(scaled.release_.predict(rows), by_hand.predict(unit))
    np.testing.assert_allclose(scaled.transform(rows), by_hand.transform(unit), atol=1e-9)
    assert scaled.score(rows) == pytest.approx(by_hand.score(unit))


def test_public_centres_to_start_from_are_in_the_units_of_the_data():
    start = np.array([[-0.5, 0.5], [0.5, 0.5], [0.0, -0.5]])
    with scripted(3):
        by_hand = PrivateKMedian(3, bounds=(-1, 1), init=start).fit(UNIT)
    with scripted(3):
        scaled = PrivateKMedian(3, bounds=BOUNDS, scaling="bounds", init=start * HALF + MIDDLE).fit(UNIT * HALF + MIDDLE)
    np.testing.assert_allclose((scaled.cluster_centers_ - MIDDLE) / HALF, by_hand.cluster_centers_, atol=1e-9)


def test_without_scaling_the_wide_column_decides():
    with pytest.warns(ScaleWarning), scripted(3):
        plain = PrivateKMedian(3, epsilon=100.0, bounds=BOUNDS, random_state=0).fit(UNIT * HALF + MIDDLE)
    with scripted(3):
        scaled = PrivateKMedian(3, epsilon=100.0, bounds=BOUNDS, scaling="bounds", random_state=0).fit(UNIT * HALF + MIDDLE)
    assert np.ptp(plain.cluster_centers_[:, 0]) < 0.25 < np.ptp(scaled.cluster_centers_[:, 0])
    assert scaled.release_.parameters["scaling"] == "bounds"


@pytest.mark.parametrize("model", [PrivateKMeans, PrivateKMedian], ids=lambda model: model.__name__)
def test_a_ball_has_no_widths_to_scale(model):
    for scaling in ("bounds", "private"):
        with pytest.raises(InvalidValue, match=f'scaling="{scaling}" needs bounds'):
            model(2, radius=1.0, scaling=scaling).fit(UNIT)
    with pytest.raises(InvalidValue, match="scaling must be one of None, 'bounds', 'private', got 'standard'"):
        model(2, bounds=(-1, 1), scaling="standard").fit(UNIT)


def test_a_universe_has_no_columns_to_scale():
    street = kveil.Graph.from_edges([[i, i + 1] for i in range(9)])
    with pytest.raises(InvalidValue, match="no columns to scale"):
        PrivateKMedian(2, universe=street, scaling="bounds").fit([1, 2, 3])
