"""PrivateKMeans(metric="cosine"): which method, what is refused, and that a release answers, saves and judges itself."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, PrivateKMedian, evaluate, load, tuning
from kveil.errors import InvalidType, KveilError, NoisyResultWarning
from kveil.questions.frame import FEW_COLUMNS
from kveil.testing import scripted

RNG = np.random.default_rng(0)
MIDDLES = np.array([[1.0, 0.1, 0, 0, 0], [0, 1.0, 0.2, 0, 0], [0, 0, 0.1, 1.0, 0.3]])
LABEL = RNG.integers(0, 3, 3000)
ROWS = (MIDDLES[LABEL] + 0.05 * RNG.standard_normal((3000, 5))) * RNG.uniform(0.01, 50, (3000, 1))
WIDE = np.hstack([np.repeat(ROWS, 8, axis=1), np.zeros((3000, 1100))])  # 40 columns that matter, and many that do not


@pytest.fixture(scope="module")
def model():
    with scripted(0):
        return PrivateKMeans(3, epsilon=2.0, delta=1e-6, metric="cosine", random_state=0).fit(ROWS)


@pytest.mark.parametrize(
    ("is_sparse", "d", "terms", "used"),
    [
        (True, FEW_COLUMNS + 1, {"delta": 1e-6}, "spherical"),
        (True, FEW_COLUMNS, {"delta": 1e-6}, "tree"),
        (False, FEW_COLUMNS + 1, {"delta": 1e-6}, "tree"),
        (True, FEW_COLUMNS + 1, {}, "tree"),
        (True, FEW_COLUMNS + 1, {"tuning": tuning.Spherical(nonzeros=9)}, "spherical"),
        (True, FEW_COLUMNS + 1, {"epsilon": float("inf")}, "spherical"),
        (True, FEW_COLUMNS + 1, {"delta": 1e-6, "tuning": tuning.Tree()}, "tree"),
    ],
)
def test_auto_follows_from_public_facts(is_sparse, d, terms, used):
    model = PrivateKMeans(2, metric="cosine", **terms)
    assert model.prepared(d, is_sparse=is_sparse)[0] == used


def test_directions_are_found_whatever_the_lengths_of_rows(model):
    assert model.method_ == "tree"
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    groups = [np.bincount(model.predict(ROWS)[j == LABEL], minlength=3) for j in range(3)]
    assert sorted(int(g.argmax()) for g in groups) == [0, 1, 2]
    assert model.score(ROWS) > 0.99
    away = model.transform(ROWS)
    assert model.score(ROWS) == pytest.approx(1 - away.min(axis=1).mean())
    cosines = ROWS @ model.cluster_centers_.T / np.linalg.norm(ROWS, axis=1, keepdims=True)
    assert np.allclose(away, 1 - cosines)
    assert (cosines.argmax(axis=1) == model.predict(ROWS)).mean() > 0.999
    assert model.predict(np.array([[0.0] * 5, [np.nan] * 5])).tolist() == [0, 0]
    assert PrivateKMeans(2, metric="cosine", epsilon=50.0).fit(np.zeros((0, 3))).score(np.zeros((0, 3))) == 0.0


def test_errors_are_chords_of_centres_that_were_made_longer(model):
    step = model.release_.synopsis.steps[-1]
    lengths = np.linalg.norm(step.centers + step.moves, axis=1)
    assert (lengths < 1).all()
    assert np.allclose(model.cluster_errors_, step.errors / lengths)


def test_sparse_and_dense_rows_give_the_same_bytes():
    found = []
    for rows in (ROWS, csr_array(ROWS)):
        with scripted(0):
            found.append(PrivateKMeans(3, epsilon=2.0, delta=1e-6, metric="cosine", random_state=0).fit(rows))
    assert found[0].cluster_centers_.tobytes() == found[1].cluster_centers_.tobytes()
    assert np.array_equal(found[0].predict(ROWS), found[1].predict(csr_array(ROWS)))


@pytest.mark.parametrize("wide", [False, True])
def test_a_release_is_saved_and_answers_as_the_model_does(model, wide, tmp_path):
    rows = ROWS
    if wide:
        rows = csr_array(WIDE)
        with scripted(1):
            model = PrivateKMeans(3, epsilon=4.0, delta=1e-6, metric="cosine", random_state=0).fit(rows)
    release = load(model.release_.save(tmp_path / "out"))
    assert release.parameters["metric"] == "cosine"
    assert not {"bounds", "center", "radius"} & release.parameters.keys()
    assert np.array_equal(release.predict(rows), model.predict(rows))
    assert np.array_equal(release.transform(rows), model.transform(rows))
    assert release.verdict().word == model.verdict_.word
    assert "cosine" in release.card()
    if wide:
        for ask in (lambda: release.recluster(2), release.cost_curve, lambda: release.sample(3)):
            with pytest.raises(KveilError, match=r'method="spherical" releases sums .* Fit with method="tree"'):
                ask()
    else:
        again = release.recluster(2)
        assert np.allclose(np.linalg.norm(again.centers, axis=1), 1)
        assert np.allclose(np.linalg.norm(release.sample(20), axis=1), 1)


@pytest.mark.parametrize("wide", [False, True])
def test_nobody_is_told_to_narrow_bounds_that_directions_do_not_have(wide):
    model = PrivateKMeans(3, epsilon=0.01, delta=1e-6, metric="cosine", random_state=0)
    with scripted(1), pytest.warns(NoisyResultWarning, match="Use fewer centres, a larger epsilon or delta > 0"):
        model.fit(csr_array(WIDE) if wide else ROWS)
    assert "bounds" not in str(model.verdict_)


def test_a_release_of_directions_is_evaluated_by_squared_chords(model):
    ledger = Ledger.memory("rows", 50.0, relation="add-remove")
    with scripted(0):
        found = evaluate(model.release_, csr_array(ROWS), 20.0, ledger=ledger)
    mean = 2 * (1 - model.score(ROWS))
    assert found.cost.low <= mean * len(ROWS) * 1.02
    assert found.cost.high >= 0.9 * mean * len(ROWS)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"bounds": (0, 1)}, "Leave out bounds"),
        ({"radius": 1.0}, "Leave out radius"),
        ({"center": 0.0}, "Leave out center"),
        ({"scaling": "bounds"}, "Leave out scaling"),
        ({"method": "lloyd"}, 'method="tree" or "spherical"'),
        ({"n_steps": 3}, 'method="tree" or "spherical"'),
        ({"metric": "manhattan"}, "metric must be one of"),
        ({"metric": "euclidean", "method": "spherical", "bounds": (0, 1)}, "pass metric"),
        ({"metric": "euclidean", "tuning": tuning.Spherical(), "bounds": (0, 1)}, "pass metric"),
        ({"method": "spherical", "n_clusters": "auto"}, "n_clusters"),
        ({"method": "spherical", "tuning": tuning.Tree()}, "tuning must be"),
    ],
)
def test_what_directions_have_no_use_for_is_refused_before_anything_is_spent(terms, message):
    ledger = Ledger.memory("untouched", 9.0, 1e-6, relation="add-remove")
    with pytest.raises((KveilError, InvalidType), match=message):
        PrivateKMeans(**{"n_clusters": 2, "metric": "cosine", "delta": 1e-6, "ledger": ledger, **terms}).fit(ROWS)
    assert ledger.spent().epsilon == 0


def test_categories_and_medians_have_no_directions():
    import pandas as pd

    table = kveil.read(pd.DataFrame({"x": [1.0], "sex": ["f"]}), categories={"sex": ("f", "m")})
    with pytest.raises(KveilError, match="levels of categories"):
        PrivateKMeans(1, metric="cosine").fit(table)
    with pytest.raises(TypeError, match="metric"):
        PrivateKMedian(2, metric="cosine")


def test_the_number_of_clusters_is_chosen_for_dense_directions():
    with scripted(0):
        model = PrivateKMeans("auto", k_range=(2, 6), epsilon=4.0, delta=1e-6, metric="cosine", random_state=0).fit(ROWS)
    assert len(model.cluster_centers_) == 3


def test_a_plan_forecasts_and_tries_directions():
    model = PrivateKMeans(3, epsilon=2.0, delta=1e-6, metric="cosine")
    told = kveil.plan(model, rows=3000, n_features=5)
    assert told.figures.word == "good"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = kveil.plan(model, rows=3000, sample=ROWS[:1500], n_runs=1, epsilons=(1.0, 4.0), random_state=0)
    assert 0.9 < tried.ratio < 3


def test_people_of_sparse_rows_are_protected():
    ids = np.repeat(np.arange(1, 1001), 3)[:, None]
    wide = csr_array(np.hstack([ids, WIDE]))
    with scripted(0):
        model = PrivateKMeans(3, epsilon=4.0, delta=1e-6, metric="cosine", random_state=0)
        model.fit(kveil.read(wide, person=0, max_rows_per_person=2))
    assert model.cluster_centers_.shape == (3, 1140)
    assert model.guarantee_.unit.max_rows_per_person == 2
    lengths = {draw.sensitivity for draw in model.guarantee_.draws if "direction" in draw.label or "totals" in draw.label}
    assert lengths == {2 * 2**16, 2}
