"""True is no number: an epsilon, a count or a bound that is one by accident is refused, and nothing is charged."""

import math

import numpy as np
import pytest

import kveil
from kveil import FederatedKMeans, Ledger, LocalKMeans, PrivateKMeans, PrivateKMedian, StreamKMeans, find_bounds, read, tuning
from kveil.errors import KveilError
from kveil.kernel.loss import PrivacyUnit

ROWS = np.random.default_rng(0).random((50, 2))
UNIVERSE = kveil.Euclidean(ROWS)

BUDGETS = {  # a call that takes one parameter beside what it needs
    "ledger": (lambda **given: Ledger.memory("t", **{"epsilon": 1.0, "relation": "add-remove", **given}), ["epsilon", "delta"]),
    "person": (lambda **given: PrivacyUnit("person", **given), ["max_rows_per_person"]),
    "read": (lambda **given: read(ROWS, **given), ["max_rows", "memory"]),
    "read people": (lambda **given: read(ROWS, person=0, **given), ["max_rows_per_person"]),
    "hst": (lambda **given: kveil.seeding.hst(UNIVERSE, **given), ["n_clusters"]),
    "k-median++": (lambda **given: kveil.seeding.kmedian_plusplus(UNIVERSE, **given), ["n_clusters"]),
    "universe": (lambda **given: kveil.Euclidean(ROWS, **given), ["bits"]),
}


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, names in BUDGETS.values() for name in names])
def test_what_needs_no_rows_refuses_a_bool(call, name, value):
    with pytest.raises((KveilError, TypeError)) as refusal:
        call(**{name: value})
    assert "unexpected" not in str(refusal.value)
    assert "missing" not in str(refusal.value)


MODELS = {
    "k-means": (PrivateKMeans, {"bounds": (0, 1), "method": "lloyd"}, "n_clusters epsilon delta n_steps expected_rows"),
    "k-means in a ball": (PrivateKMeans, {"center": 0.5, "radius": 1.0, "method": "mean"}, "center radius random_state"),
    "k-median": (PrivateKMedian, {"bounds": (0, 1), "method": "weiszfeld"}, "n_clusters epsilon delta n_steps expected_rows"),
    "universe": (PrivateKMedian, {"universe": UNIVERSE}, "n_clusters epsilon delta expected_rows random_state"),
    "stream": (StreamKMeans, {"bounds": (0, 1), "epsilon": 1.0, "memory": 64}, "n_clusters epsilon delta memory random_state"),
}


@pytest.mark.parametrize("value", [True, False, np.True_])
@pytest.mark.parametrize(
    ("model", "needed", "name"), [(model, needed, name) for model, needed, names in MODELS.values() for name in names.split()]
)
def test_a_model_refuses_a_bool_and_charges_nothing(model, needed, name, value):
    ledger = Ledger.memory("untouched", 9.0, 1e-6, relation="add-remove", rule="approx")
    with pytest.raises(KveilError):
        model(**{"n_clusters": 2, **needed, "ledger": ledger, name: value}).fit(ROWS)
    assert ledger.charges() == ()


def test_without_the_bool_these_models_fit():
    for model, needed, _ in MODELS.values():
        model(**{"n_clusters": 2, **needed}).fit(ROWS)


@pytest.mark.parametrize("bounds", [(0, True), (np.False_, 1), ([0, False], [1, 1]), ([0, 0], [1, True]), np.array([False] * 2)])
def test_bounds_hold_no_bools(bounds):
    with pytest.raises(KveilError):
        PrivateKMeans(2, bounds=bounds).fit(ROWS)


@pytest.mark.parametrize("given", [{"epsilon": True}, {"exponents": (True, 9)}, {"center": True}, {"center": [0.0, False]}])
def test_a_search_for_bounds_refuses_a_bool_and_charges_nothing(given):
    ledger = Ledger.memory("untouched", 9.0, relation="add-remove")
    with pytest.raises(KveilError):
        find_bounds(ROWS, **{"epsilon": 1.0, "ledger": ledger, **given})
    assert ledger.charges() == ()


@pytest.mark.parametrize("name", ["n_clusters", "epsilon", "delta", "n_steps", "timeout"])
def test_a_federation_refuses_a_bool(name):
    with pytest.raises(KveilError):
        FederatedKMeans(**{"n_clusters": 2, "epsilon": 1.0, "bounds": (0, 1), name: True}).fit([ROWS, ROWS])


@pytest.mark.parametrize("name", ["n_clusters", "epsilon", "radius"])
def test_a_local_simulation_refuses_a_bool(name):
    with pytest.raises(KveilError):
        LocalKMeans(**{"n_clusters": 2, "epsilon": 1.0, "radius": 2.0, name: True}).fit(ROWS)


CONSTANTS = {
    tuning.Lloyd: ("bits start_share sample cap", {"method": "lloyd", "init": "variates"}),
    tuning.Tree: ("bits steps nonzeros", {"method": "tree"}),
    tuning.Grid: ("bits", {"method": "grid"}),
    tuning.Mean: ("bits", {"method": "mean"}),
    tuning.SampleAggregate: ("blocks n_steps bits", {"method": "sample-aggregate"}),
    tuning.Candidates: ("bits repetitions trials swaps dimension levels kappa most nonzeros eta", {"method": "candidates"}),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (names, _) in CONSTANTS.items() for name in names.split()])
def test_constants_of_methods_refuse_a_bool(kind, name):
    model = PrivateKMeans(2, bounds=(0, 1), tuning=kind(**{name: True}), **CONSTANTS[kind][1])
    if name == "sample":
        model.init = "noisy-sample"
    with pytest.raises(KveilError):
        model.guarantee(2)
    assert math.isfinite(PrivateKMeans(2, bounds=(0, 1), tuning=kind(), **CONSTANTS[kind][1]).guarantee(2).epsilon)
