"""The simulated model: what it promises, what it refuses, and that rows never change what happens around them."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import LocalKMeans
from kveil.errors import BoundsRequired, InvalidValue, KveilError, NoisyResultWarning
from kveil.testing import scripted


def two_places(n=20_000, d=2):
    rng = np.random.default_rng(0)
    places = np.zeros((2, d))
    places[:, 0] = [-40.0, 60.0]
    return places[rng.integers(0, 2, n)] + 100 + rng.standard_normal((n, d))


def test_centres_are_in_the_units_of_the_rows():
    rows = two_places()
    model = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, random_state=1).fit(rows)
    found = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
    assert found == pytest.approx(np.array([[60.0, 100.0], [160.0, 100.0]]), abs=10)
    assert model.cluster_weights_ == pytest.approx([0.5, 0.5], abs=0.1)
    assert (model.method_, model.plan_.protocol, model.n_features_in_) == ("zoom", "zoom", 2)
    assert set(model.predict(rows[:50])) == {0, 1}


def test_only_real_randomisers_make_a_valid_promise():
    rows = two_places(3000)
    fast = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0).fit(rows)
    exact = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, devices="exact").fit(rows)
    assert not fast.guarantee_.valid
    assert "floats" in fast.guarantee_.reasons[0]
    assert exact.guarantee_.valid
    assert exact.release_.receipt["secure"]
    for model in (fast, exact):
        promise = model.guarantee_
        assert (promise.epsilon, promise.delta, promise.trust, promise.relation) == (4.0, 0.0, "local", "replace-one")
        assert promise.epsilon == model.guarantee().epsilon
        assert kveil.Guarantee.from_json(promise.to_json()) == promise
    assert "NOT VALID" in str(fast.guarantee_)
    assert "a report" in str(exact.guarantee_)


def test_a_card_says_that_a_simulation_held_all_rows_and_where_its_coins_came_from():
    for devices, noise in (("fast", "a generator with a seed"), ("exact", "the operating system")):
        model = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, devices=devices).fit(two_places(2000))
        promised, card = model.guarantee(), model.release_.card()
        assert promised.assumptions == model.guarantee_.assumptions
        assert "whoever runs this simulation may see all rows" in card.split("## How it was made")[0]
        assert f"noise from: {noise}" in card
        assert "ledger: none here: every device keeps its own" in card


def test_a_centre_of_another_shape_is_told_by_its_shape():
    with pytest.raises(InvalidValue, match=r"center has rows and columns \(1, 2\) for 2 feature"):
        LocalKMeans(2, radius=1.0, center=[[0, 0]]).fit(two_places(100))


def test_scripted_noise_is_no_promise():
    with scripted(1):
        model = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, devices="exact").fit(two_places(2000))
    assert not model.guarantee_.valid


def test_a_shuffler_s_figure_is_a_second_line_and_not_the_promise():
    model = LocalKMeans(2, epsilon=2.0, center=100.0, radius=80.0, devices="exact").fit(two_places(20_000))
    (line,) = model.guarantee_.conditional
    assert line.epsilon < 0.2 < model.guarantee_.epsilon == 2.0
    assert "shuffler" in line.assumption
    assert "Only if a trusted shuffler" in str(model.guarantee_)
    assert model.guarantee().conditional == ()


def test_where_nothing_is_promised_a_shuffler_adds_nothing():
    fast = LocalKMeans(2, epsilon=2.0, center=100.0, radius=80.0).fit(two_places(20_000))
    with scripted(1):
        played = LocalKMeans(2, epsilon=2.0, center=100.0, radius=80.0, devices="exact").fit(two_places(20_000))
    for model in (fast, played):
        assert not model.guarantee_.valid
        assert model.guarantee_.conditional == ()
        assert "shuffler" not in model.release_.card()


@pytest.mark.parametrize("epsilon", [0, -1, "1", float("nan"), float("inf"), 20, None, True])
def test_the_range_of_epsilon_is_told_at_once(epsilon):
    with pytest.raises(InvalidValue, match="above 0 and at most 10"):
        LocalKMeans(2, epsilon=epsilon, radius=1.0).guarantee()


@pytest.mark.parametrize(
    "parameters",
    [{"n_clusters": 0}, {"n_clusters": 2.5}, {"epsilon": 0}, {"epsilon": 11.0}, {"epsilon": float("inf")}, {"epsilon": "1"},
     {"radius": None}, {"radius": -1.0}, {"radius": "1"}, {"center": [0.0, 0.0, 0.0]}, {"center": float("nan")},
     {"protocol": "magic"}, {"protocol": None}, {"preset": "printed"}, {"preset": "paper"}, {"devices": "cloud"}],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused_in_one_paragraph(parameters):
    model = LocalKMeans(**{"n_clusters": 2, "epsilon": 4.0, "center": 100.0, "radius": 80.0, **parameters})
    with pytest.raises(KveilError) as refusal:
        model.fit(two_places(8191))
    assert "\n" not in str(refusal.value)
    assert "8191" not in str(refusal.value)


def test_no_radius_and_sparse_or_several_rows_of_a_person_are_refused():
    with pytest.raises(BoundsRequired, match="public knowledge"):
        LocalKMeans(2).fit(two_places(100))
    with pytest.raises(KveilError, match="sparse"):
        LocalKMeans(2, radius=1.0).fit(csr_array(np.eye(5)))
    import pandas as pd

    people = pd.DataFrame({"id": [1, 1, 2], "x": [0.1, 0.2, 0.3]})
    with pytest.raises(KveilError, match="one row a person"):
        LocalKMeans(2, radius=1.0).fit(kveil.read(people, person="id", max_rows_per_person=2))


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_a_device_whose_row_is_not_whole_reports_like_the_others(missing):
    """How many report is public under replace-one. If rows were left out, it would tell whose row has a missing cell."""
    rows = two_places(2000)
    rows[3, 0] = np.nan
    asked = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, random_state=0)
    with pytest.raises(InvalidValue, match="its silence would tell"):
        asked.fit(kveil.read(rows, missing=missing))
    assert "2 000;" in str(asked.fit(kveil.read(rows, missing={0: 100.0})).plan_)


def test_auto_refuses_too_few_people_and_a_named_protocol_warns():
    rows = np.zeros((500, 10))
    with pytest.raises(KveilError, match="too few people"):
        LocalKMeans(8, radius=1.0).fit(rows)
    with pytest.warns(UserWarning, match="noise_dominated"):
        model = LocalKMeans(8, radius=1.0, protocol="refine").fit(rows)
    assert any("noise_dominated" in note for note in model.release_.notes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, 0.0])
def test_what_rows_hold_never_raises_or_warns_or_changes_a_shape(value):
    rows = np.full((400, 2), value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        model = LocalKMeans(3, epsilon=8.0, radius=1.0, devices="exact").fit(rows)
    assert model.cluster_centers_.shape == (3, 2)
    assert np.isfinite(model.cluster_centers_).all()


def test_an_empty_table_gives_k_centres():
    with pytest.warns(UserWarning, match="noise_dominated"):
        model = LocalKMeans(3, radius=1.0, protocol="refine").fit(np.empty((0, 2)))
    assert model.cluster_centers_.shape == (3, 2)


def test_nothing_raw_stays_on_the_object():
    rows = two_places(2000)
    rows[0] = [101.23456789, 99.87654321]
    model = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0).fit(rows)
    kept = pickle.dumps(model)
    assert rows[0, 0].tobytes() not in kept
    assert len(kept) < 20_000
    assert not hasattr(model, "labels_")


def test_a_release_is_saved_and_read_back(tmp_path):
    model = LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, devices="exact").fit(two_places(3000))
    back = kveil.load(model.release_.save(tmp_path / "out"))
    assert (back.centers == model.cluster_centers_).all()
    assert back.guarantee == model.guarantee_
    assert "local model" in back.card()
    assert (back.predict(two_places(20)) == model.predict(two_places(20))).all()


def test_the_seed_repeats_a_simulation_and_the_same_rows_in_a_frame_are_the_same():
    import pandas as pd

    rows = two_places(3000)
    models = [LocalKMeans(2, epsilon=4.0, center=100.0, radius=80.0, random_state=3) for _ in range(2)]
    one, two = models[0].fit(rows), models[1].fit(pd.DataFrame(rows, columns=["a", "b"]))
    assert (one.cluster_centers_ == two.cluster_centers_).all()
    assert two.feature_names_in_.tolist() == ["a", "b"]
