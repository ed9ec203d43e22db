"""PrivateKMedian: what it finds, what it promises, and what it keeps to itself."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans, PrivateKMedian
from kveil.errors import KveilError, NoisyResultWarning
from kveil.solve.wkmedian import owners, thorough_kmedian
from kveil.testing import scripted
from kveil.tuning import KMedian, Lloyd

BOUNDS = (-5.0, 5.0)
GRID = KMedian(recovery="grid")


def fitted(X, seed=1, **parameters):
    with scripted(seed):
        return PrivateKMedian(**{"n_clusters": 3, "bounds": BOUNDS, "random_state": 0, **parameters}).fit(X)


def cost(X, centers):
    return owners(X, centers)[1].sum()


def contaminated(n, d, k, seed=0):
    """k tight groups in the unit ball, and one row in five anywhere in it."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((k, d))
    places *= 0.6 / np.linalg.norm(places, axis=1, keepdims=True)
    rows = places[rng.integers(0, k, n)] + 0.15 / math.sqrt(d) * rng.standard_normal((n, d))
    astray = rng.standard_normal((n, d))
    astray *= rng.random((n, 1)) ** (1 / d) / np.linalg.norm(astray, axis=1, keepdims=True)
    rows = np.where(rng.random((n, 1)) < 0.2, astray, rows)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0), places


# --- what it finds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 2.0},
        {"epsilon": 2.0, "delta": 1e-6},
        {"epsilon": 2.0, "tuning": GRID},
        {"epsilon": 4.0, "method": "candidates"},
        {"epsilon": 2.0, "init": [[-2.0, -2.0], [0.0, 2.0], [2.0, 0.0]]},
        {"epsilon": math.inf},
        {"epsilon": math.inf, "tuning": GRID},
        {"epsilon": math.inf, "method": "candidates"},
        {"epsilon": 2.0, "bounds": ([-5, -4], [5, 9])},
    ],
    ids=str,
)
def test_it_finds_three_places(blobs, parameters):
    model = fitted(blobs, **parameters)
    places = np.median(blobs.reshape(3, 1000, 2), axis=1)
    assert max(np.linalg.norm(model.cluster_centers_ - place, axis=1).min() for place in places) < 0.3
    assert np.allclose(model.cluster_weights_, 1 / 3, atol=0.1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_one_private_median_of_contaminated_rows_costs_at_most_a_hundredth_more_than_the_exact_one(epsilon):
    rows, _ = contaminated(5000, 20, 1)
    floor = cost(rows, thorough_kmedian(rows, np.ones(5000), 1, np.random.default_rng(0)))
    found = [cost(rows, fitted(rows, s, n_clusters=1, bounds=None, radius=1.0, epsilon=epsilon, delta=1e-6).cluster_centers_)
             for s in range(5)]  # fmt: skip
    assert np.mean(found) <= 1.01 * floor


def test_on_contaminated_mixtures_it_beats_means_and_nears_the_exact_medians():
    rows, places = contaminated(10_000, 8, 4)
    floor = cost(rows, np.array([np.median(rows[owners(rows, places)[0] == j], axis=0) for j in range(4)]))
    terms = {"n_clusters": 4, "bounds": None, "radius": 1.0, "epsilon": 1.0, "delta": 1e-6}
    medians = np.mean([cost(rows, fitted(rows, seed, **terms).cluster_centers_) for seed in range(3)])
    means = []
    for seed in range(3):
        with scripted(seed):
            means.append(cost(rows, PrivateKMeans(**terms, random_state=0).fit(rows).cluster_centers_))
    assert medians < 1.005 * floor
    assert medians < np.mean(means)


def test_more_budget_gives_a_lower_cost(blobs):
    costs = [np.mean([-fitted(blobs, seed, epsilon=epsilon).score(blobs) for seed in range(5)]) for epsilon in (0.02, 0.2, 2.0)]
    assert costs[0] > costs[1] > costs[2]


def test_without_noise_one_median_is_the_geometric_median():
    rows = np.random.default_rng(0).gamma(1.0, size=(2000, 5))
    found = fitted(rows, n_clusters=1, bounds=(0, 20), epsilon=math.inf, tuning=KMedian(smoothing=1e-3))
    assert np.allclose(found.cluster_centers_, thorough_kmedian(rows, np.ones(2000), 1, np.random.default_rng(0)), atol=0.01)
    assert (found.cluster_errors_ == 0).all()


@pytest.mark.parametrize("tuning", [None, GRID], ids=["weiszfeld", "grid"])
def test_the_standard_error_is_about_the_noise_in_a_centre(blobs, tuning):
    """Within a factor 2 of the spread over 16 scripted fits."""
    models = [fitted(blobs, seed, epsilon=2.0, tuning=tuning) for seed in range(16)]
    order = [model.cluster_centers_[:, 0].argsort() for model in models]
    centers = np.array([model.cluster_centers_[o] for model, o in zip(models, order, strict=True)])
    errors = np.array([model.cluster_errors_[o] for model, o in zip(models, order, strict=True)])
    actual = np.sqrt(((centers - centers.mean(axis=0)) ** 2).sum(axis=2).mean(axis=0))
    told = np.sqrt((errors**2).mean(axis=0))
    assert (told < 2 * actual).all()
    assert (told > actual / 2).all()


def test_too_little_budget_gives_one_median_and_says_so():
    model = fitted(np.random.default_rng(0).random((500, 60)), n_clusters=6, epsilon=0.01, bounds=(0, 1))
    assert np.ptp(model.cluster_centers_, axis=0).max() == 0
    assert "one private median" in model.release_.notes[0]


def test_a_far_row_does_not_move_a_median_much():
    rows = np.r_[np.zeros((90, 1)), np.full((10, 1), 100.0)]
    median = PrivateKMedian(1, bounds=(-100, 100), epsilon=math.inf).fit(rows)
    mean = PrivateKMeans(1, bounds=(-100, 100), epsilon=math.inf, method="mean").fit(rows)
    assert abs(median.cluster_centers_[0, 0]) < 1
    assert mean.cluster_centers_[0, 0] == pytest.approx(10, abs=0.1)


# --- the guarantee -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1},
        {"epsilon": 0.1, "method": "candidates"},
        {"epsilon": 1.0, "n_steps": 3},
        {"epsilon": 1.0, "init": "spread"},
        {"epsilon": 1.0, "tuning": GRID},
        {"epsilon": 1.0, "delta": 1e-6, "wide": True},
        {"epsilon": 0.3, "delta": 1e-6, "wide": True, "method": "candidates"},
        {"epsilon": 2.0, "relation": "replace-one"},
        {"epsilon": math.inf},
    ],
    ids=str,
)
def test_the_guarantee_is_known_before_the_data_and_the_budget_is_used_up_and_never_passed(blobs, parameters):
    parameters = {"n_clusters": 3, "bounds": BOUNDS, **parameters}
    X = np.hstack([blobs] * 9) if parameters.pop("wide", False) else blobs
    is_private = parameters["epsilon"] < math.inf
    ledger = Ledger.memory(
        "exact", parameters["epsilon"], parameters.get("delta", 0.0), relation=parameters.get("relation", "add-remove")
    ) if is_private else None  # fmt: skip
    model = PrivateKMedian(**parameters, ledger=ledger)
    before = model.guarantee(X.shape[1])
    after = model.fit(X).guarantee_
    assert (before.epsilon, before.delta, before.route, before.charges) == (
        after.epsilon,
        after.delta,
        after.route,
        after.charges,
    )
    assert after.valid
    assert after.recompute() == after
    if is_private:
        assert 0.999 * parameters["epsilon"] < after.epsilon <= parameters["epsilon"]
        assert sum(draw.times for draw in after.draws) == model.release_.receipt["charges"]
        assert ledger.remaining().epsilon < 1e-3


def test_everything_drawn_adds_up_to_the_whole_budget(blobs):
    for parameters in ({}, {"tuning": GRID}, {"method": "candidates"}, {"init": "spread", "n_steps": 7}):
        for delta in (0.0, 1e-6):
            X = blobs if not delta or "tuning" in parameters else np.hstack([blobs] * 3)
            model = PrivateKMedian(3, bounds=BOUNDS, delta=delta, **parameters)
            used, _ = model._pick(False, X.shape[1])
            method = model.methods[used](model._task(used, X.shape[1], kveil.PrivacyUnit()))
            pool, domain = method.budget, method.task.domain
            with Ledger.memory("all", 1.0, pool.delta, relation="add-remove").reserve(pool.plan()) as ticket:
                method.run(pool.open(kveil.read(X), domain, ticket), np.random.default_rng(0))
            assert pool.total * (1 - 1e-9) < pool.spent <= pool.total


def test_people_are_protected_with_all_their_rows(blobs):
    frame = pd.DataFrame(blobs, columns=["x", "y"]).assign(id=np.arange(3000) // 10)
    source = kveil.read(frame, person="id", max_rows_per_person=4)
    model = PrivateKMedian(3, bounds=BOUNDS).fit(source)
    drawn = str(model.guarantee_)
    assert f"pulls: k-norm, l2 sensitivity {4 * 2**20}" in drawn
    assert f"weights: discrete-laplace, l1 sensitivity {4 * 2**20}" in drawn
    drawn = str(PrivateKMedian(3, bounds=BOUNDS, tuning=GRID, relation="replace-one").fit(blobs).guarantee_)
    assert f"medians: select, range sensitivity {2 * 2 * 2**20}" in drawn


def test_private_noise_is_fresh_although_random_state_is_fixed(blobs):
    one, other = (PrivateKMedian(3, bounds=BOUNDS, random_state=0).fit(blobs).cluster_centers_ for _ in range(2))
    assert not np.array_equal(one, other)


# --- what rows hold never matters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "parameters"),
    [(1, {}), (2, {}), (1, {"tuning": GRID}), (2, {"tuning": GRID}), (2, {"method": "candidates"}), (1, {"init": "spread"})],
    ids=str,
)
def test_no_table_is_too_odd(d, parameters):
    rng = np.random.default_rng(0)
    odd = rng.normal(size=(300, d))
    odd[::7], odd[::11], odd[::13] = np.nan, np.inf, 1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        for X in (np.empty((0, d)), np.zeros((1, d)), np.full((200, d), 3.0), np.full((50, d), np.nan), odd):
            for k, epsilon in ((1, 1.0), (4, 0.01), (3, math.inf)):
                model = PrivateKMedian(k, bounds=BOUNDS, epsilon=epsilon, **parameters).fit(X)
                assert model.cluster_centers_.shape == (k, d)
                assert (np.abs(model.cluster_centers_) <= 5).all()
                assert model.cluster_weights_.sum() == pytest.approx(1)
                assert np.isfinite(model.cluster_errors_).all()


def test_a_table_without_rows_draws_as_often_as_a_full_one(blobs):
    """Steps follow released values; what is fixed beforehand is the same for any rows."""
    for parameters in ({"n_steps": 5}, {"tuning": GRID}, {"init": "spread", "n_steps": 2}):
        full, empty = (PrivateKMedian(3, bounds=BOUNDS, **parameters).fit(X).release_ for X in (blobs, blobs[:0]))
        assert full.receipt["charges"] == empty.receipt["charges"]
        assert set(full.parameters) == set(empty.parameters)


# --- the same answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"tuning": GRID},
        {"bounds": ([-5, -1, -3], [5, 2, 3])},
        {"wide": True, "delta": 1e-6, "epsilon": 4.0},
        {"method": "candidates", "epsilon": 2.0},
    ],
    ids=["low", "grid", "uneven", "projected", "candidates"],
)
def test_order_partitions_threads_and_engines_do_not_matter(shape, monkeypatch, tmp_path):
    rows = np.random.default_rng(9).normal(scale=2.0, size=(9000, 3))
    shape = dict(shape)
    X = np.hstack([rows] * 7) if shape.pop("wide", False) else rows

    def bytes_of(X):
        model = fitted(X, 3, n_clusters=4, **shape)
        return model.cluster_centers_.tobytes() + model.cluster_weights_.tobytes() + model.cluster_errors_.tobytes()

    whole = bytes_of(X)
    assert bytes_of(np.asfortranarray(np.random.default_rng(0).permutation(X))) == whole
    dask = pytest.importorskip("dask.array")
    assert bytes_of(dask.from_array(X, chunks=(1300, 2))) == whole
    pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    for threads in ("1", "2"):
        monkeypatch.setenv("KVEIL_THREADS", threads)
        assert bytes_of(kveil.read(tmp_path / "rows.parquet", memory="2MB")) == whole


# --- answers and refusals -------------------------------------------------------------------------------------------------


def test_predict_transform_and_score_agree_and_nothing_raw_is_kept(blobs, tmp_path):
    model = PrivateKMedian(3, bounds=BOUNDS).fit(blobs)
    apart = model.transform(blobs)
    assert np.array_equal(apart.argmin(axis=1), model.predict(blobs))
    assert model.score(blobs) == pytest.approx(-apart.min(axis=1).sum())
    assert len(pickle.dumps(model)) < 10_000
    model.release_.save(tmp_path / "out")
    loaded = kveil.load(tmp_path / "out")
    assert loaded.kind == "PrivateKMedian"
    assert np.array_equal(loaded.predict(blobs), model.predict(blobs))
    assert np.array_equal(loaded.errors, model.cluster_errors_)


def test_auto_says_what_it_picked_and_why(blobs):
    for name, parameters in (("tree", {}), ("tree", {"n_steps": 2}), ("weiszfeld", {"init": "spread"}),
                             ("weiszfeld", {"init": "spread", "tuning": KMedian(smoothing=0.1)})):  # fmt: skip
        method = PrivateKMedian(3, bounds=BOUNDS, **parameters).fit(blobs).release_.method
        assert (method["asked"], method["used"]) == ("auto", name)
        assert len(method["why"]) > 10


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"universe": np.zeros((3, 2))}, "public universe"),
        ({"objective": "k-means"}, "PrivateKMeans"),
        ({"objective": "k-medoids"}, "objective must be one of"),
        ({"method": "lloyd"}, "method must be one of"),
        ({"method": "tree", "init": "spread"}, "init belongs to"),
        ({"tuning": Lloyd()}, r"tuning must be kveil.tuning.KMedian"),
        ({"tuning": KMedian(recovery="magic")}, "recovery must be one of"),
        ({"tuning": KMedian(smoothing=0.0)}, "smoothing must be"),
        ({"tuning": KMedian(smoothing=math.nan)}, "smoothing must be"),
        ({"tuning": KMedian(smoothing="1")}, "smoothing must be"),
        ({"tuning": GRID, "n_steps": 3}, "Leave one of them out"),
        ({"tuning": GRID, "wide": True}, "at most 3 features"),
        ({"tuning": KMedian(bits=40)}, "bits"),
        ({"epsilon": 2**-29}, "too small"),
        ({"epsilon": 1e-4, "n_steps": 10**6}, "too small"),
        ({"bounds": None}, "bounds is missing"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_steps": 0}, "n_steps"),
        ({"sparse": True}, "dense rows"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_charged(parameters, says):
    ledger = Ledger.memory("untouched", 10.0, 1e-3, relation="add-remove")
    parameters = {"n_clusters": 3, "bounds": BOUNDS, "ledger": ledger, **parameters}
    X = np.full((8191, 5 if parameters.pop("wide", False) else 2), 271.828182)
    X = csr_array(X) if parameters.pop("sparse", False) else X
    model = PrivateKMedian(**parameters)
    with pytest.raises(KveilError, match=says) as refusal:
        model.fit(X)
    assert "271.8" not in str(refusal.value)
    assert "8191" not in str(refusal.value)
    assert ledger.spent().epsilon == 0
    assert not hasattr(model, "cluster_centers_")


def test_a_table_declared_huge_is_summed_in_coarser_units(blobs):
    model = PrivateKMedian(3, bounds=BOUNDS).fit(kveil.read(blobs, max_rows=2**50))
    assert f"pulls: k-norm, l2 sensitivity {2**11}" in str(model.guarantee_)
