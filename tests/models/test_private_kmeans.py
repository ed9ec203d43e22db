"""PrivateKMeans: what it finds, what it promises, and what it keeps to itself."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import kveil
from kveil import Ledger, PrivateKMeans
from kveil.errors import BudgetExceeded, KveilError, LedgerMismatch
from kveil.testing import scripted
from kveil.tuning import Lloyd

BOUNDS = (-5.0, 5.0)


def fitted(X, seed=1, **parameters):
    with scripted(seed):
        return PrivateKMeans(**{"n_clusters": 3, "bounds": BOUNDS, "random_state": 0, **parameters}).fit(X)


def worst_distance(centers, places):
    return max(np.linalg.norm(centers - place, axis=1).min() for place in places)


@pytest.mark.parametrize("parameters", [{"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-6}, {"epsilon": math.inf}])
def test_it_finds_three_places(blobs, parameters):
    model = fitted(blobs, **parameters)
    assert worst_distance(model.cluster_centers_, blobs.reshape(3, 1000, 2).mean(axis=1)) < 0.3
    assert np.allclose(model.cluster_weights_, 1 / 3, atol=0.05)


def test_more_budget_gives_a_lower_cost(blobs):
    costs = [np.mean([-fitted(blobs, seed, epsilon=epsilon).score(blobs) for seed in range(10)]) for epsilon in (0.05, 0.5, 5.0)]
    assert costs[0] > costs[1] > costs[2]


def test_without_noise_it_is_lloyd(blobs):
    from sklearn.cluster import KMeans

    start = np.array([[-1.0, -1.0], [0.0, 1.0], [1.0, 0.0]])
    mine = PrivateKMeans(3, epsilon=math.inf, bounds=BOUNDS, init=start, n_steps=8).fit(blobs)
    theirs = KMeans(3, init=start, n_init=1, max_iter=8, tol=0).fit(blobs)
    assert np.allclose(mine.cluster_centers_, theirs.cluster_centers_, atol=1e-3)
    assert "No privacy guarantee" in str(mine.guarantee_)
    assert mine.release_.receipt["charges"] == 0


def test_the_first_lloyd_step_by_hand():
    """Rows 0, 1 | 3, 4 on [0, 4] with 3 bits: codes -3, -1.5 -> -2 (ties to even), 2, 3; no noise."""
    model = PrivateKMeans(
        2, epsilon=math.inf, bounds=(0, 4), init=[[1.0], [3.0]], n_steps=1, tuning=Lloyd(bits=3, reseed=False)
    ).fit([[0.0], [1.0], [3.0], [4.0]])
    assert np.allclose(model.cluster_centers_.ravel(), [2 - 2.5 * 2 / 3, 2 + 2.5 * 2 / 3])
    assert model.cluster_weights_.tolist() == [0.5, 0.5]


# --- the guarantee -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1},
        {"epsilon": 0.1, "method": "lloyd"},
        {"epsilon": 1.0, "n_steps": 3},
        {"epsilon": 1.0, "delta": 1e-6, "bounds": ([-5.0, -4.0], [5.0, 4.0])},
        {"epsilon": 0.5, "delta": 1e-5, "bounds": None, "radius": 6.0, "center": [0.0, 0.0]},
        {"epsilon": 2.0, "relation": "replace-one"},
        {"epsilon": math.inf},
    ],
)
def test_the_guarantee_is_known_before_the_data_and_equals_the_one_after(blobs, parameters):
    model = PrivateKMeans(**{"n_clusters": 3, "bounds": BOUNDS, **parameters})
    before = model.guarantee()
    model.fit(blobs)
    after = model.guarantee_
    assert (before.epsilon, before.delta, before.route) == (after.epsilon, after.delta, after.route)
    assert after.epsilon <= parameters["epsilon"]
    assert after.epsilon > 0.999 * parameters["epsilon"] or after.epsilon == math.inf
    assert after.valid
    assert after.recompute() == after
    if model.method_ == "lloyd":
        assert model.release_.receipt["charges"] == (0 if after.route == "none" else 2 * model.release_.parameters["n_steps"])


def test_where_the_noise_depends_on_the_width_the_guarantee_asks_for_it():
    model = PrivateKMeans(3, epsilon=1.0, delta=1e-6, bounds=BOUNDS)
    with pytest.raises(KveilError, match="n_features"):
        model.guarantee()
    assert model.guarantee(n_features=1).route == "pure"
    assert model.guarantee(n_features=50).route == "zcdp"
    assert PrivateKMeans(3, bounds=([0, 0], [1, 1]), delta=1e-6).guarantee().route == "pure"


def test_scripted_noise_makes_the_guarantee_invalid_for_good(blobs):
    model = fitted(blobs)
    assert not model.guarantee_.valid
    assert "NOT VALID" in str(model.guarantee_)
    assert not model.release_.guarantee.valid
    assert PrivateKMeans(3, bounds=BOUNDS).fit(blobs).guarantee_.valid


def test_people_are_protected_with_all_their_rows(blobs):
    frame = pd.DataFrame(blobs, columns=["x", "y"]).assign(id=np.arange(3000) // 10)
    source = kveil.read(frame, person="id", max_rows_per_person=4)
    model = PrivateKMeans(3, bounds=BOUNDS, epsilon=1.0, method="lloyd").fit(source)
    assert str(model.guarantee_.unit) == 'one person by "id" with at most 4 records'
    assert [charge.sensitivity for charge in model.guarantee_.charges] == [4, 4 * 46340]
    assert model.n_features_in_ == 2


def test_private_noise_is_fresh_although_random_state_is_fixed(blobs):
    one, other = (PrivateKMeans(3, bounds=BOUNDS, random_state=0).fit(blobs).cluster_centers_ for _ in range(2))
    assert not np.array_equal(one, other)


# --- ledger ------------------------------------------------------------------------------------------------------------


def test_fits_are_charged_and_refused(blobs, tmp_path):
    ledger = Ledger.create(tmp_path / "clinic.db", "clinic", 1.0, relation="add-remove")
    model = PrivateKMeans(3, epsilon=0.4, bounds=BOUNDS, ledger=ledger)
    model.fit(blobs)
    clone(model).fit(blobs)  # a clone draws on the same ledger
    with pytest.raises(BudgetExceeded, match="Nothing was drawn and nothing was charged") as refusal:
        PrivateKMeans(3, epsilon=0.4, bounds=BOUNDS, ledger=str(tmp_path / "clinic.db")).fit(blobs)
    assert "3000" not in str(refusal.value)
    assert ledger.spent().epsilon == pytest.approx(0.8)
    assert len(ledger.charges()) == 2
    assert all(entry.committed for entry in ledger.charges())
    assert model.release_.receipt["ledger"] == "clinic"


def test_a_ledger_of_exactly_the_budget_is_enough(blobs):
    for epsilon, delta in [(0.1, 0.0), (1.0, 0.0), (1.0, 1e-6), (0.3, 1e-7)]:
        wide = np.hstack([blobs] * 4)
        ledger = Ledger.memory("exact", epsilon, delta, relation="add-remove")
        PrivateKMeans(3, epsilon=epsilon, delta=delta, bounds=BOUNDS, ledger=ledger).fit(wide)
        with pytest.raises(BudgetExceeded):
            PrivateKMeans(3, epsilon=epsilon, delta=delta, bounds=BOUNDS, ledger=ledger).fit(wide)


def test_a_ledger_of_another_kind_refuses(blobs):
    ledger = Ledger.memory("other", 1.0, relation="replace-one")
    with pytest.raises(LedgerMismatch):
        PrivateKMeans(3, bounds=BOUNDS, ledger=ledger).fit(blobs)
    pure = Ledger.memory("pure", 1.0, relation="add-remove")
    with pytest.raises(LedgerMismatch, match="Gaussian"):
        PrivateKMeans(3, epsilon=0.5, delta=1e-6, bounds=BOUNDS, ledger=pure).fit(np.hstack([blobs] * 10))
    assert ledger.spent().epsilon == pure.spent().epsilon == 0


def test_the_whole_budget_is_charged_before_a_row_is_read(blobs):
    ledger = Ledger.memory("early", 1.0, relation="add-remove")
    seen = []

    class Watched:
        names, n_columns, unit, max_rows, is_sparse = None, 2, kveil.PrivacyUnit(), 2**40, False

        def partitions(self):
            return []

        def check(self, grid):
            seen.append(ledger.spent().epsilon)

        def raw_blocks(self):
            return iter([])

        def map_reduce(self, kernel, state, *, grid, combine=np.add):
            seen.append(ledger.spent().epsilon)
            return kernel(grid.encode(blobs), state)

    PrivateKMeans(3, epsilon=1.0, bounds=BOUNDS, ledger=ledger, n_steps=2).fit(Watched())
    assert seen == [0.0, 1.0, 1.0]


def test_a_fit_that_breaks_midway_stays_charged(blobs):
    ledger = Ledger.memory("broken", 1.0, relation="add-remove")

    class Broken:
        names, n_columns, unit, max_rows, is_sparse = None, 2, kveil.PrivacyUnit(), 2**40, False

        def partitions(self):
            return []

        def check(self, grid):
            pass

        def raw_blocks(self):
            return iter([])

        def map_reduce(self, *args, **kwargs):
            raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        PrivateKMeans(3, epsilon=0.75, bounds=BOUNDS, ledger=ledger).fit(Broken())
    assert ledger.spent().epsilon == 0.75


# --- nothing raw -------------------------------------------------------------------------------------------------------


def test_nothing_raw_is_kept_on_the_object_or_in_its_pickle(blobs):
    model = PrivateKMeans(3, bounds=BOUNDS).fit(blobs)
    assert not {"labels_", "inertia_", "n_iter_", "n_samples_"} & set(vars(model))
    frozen = pickle.dumps(model)
    assert len(frozen) < blobs.nbytes
    assert all(row.tobytes() not in frozen for row in blobs[:100])
    for value in vars(model).values():
        assert not (isinstance(value, np.ndarray) and len(value) == len(blobs))
        assert value != len(blobs) if isinstance(value, int) else True


def test_a_pickled_model_answers_the_same(blobs):
    model = PrivateKMeans(3, bounds=BOUNDS).fit(pd.DataFrame(blobs, columns=["x", "y"]))
    again = pickle.loads(pickle.dumps(model))
    frame = pd.DataFrame(blobs, columns=["x", "y"])
    assert np.array_equal(model.predict(frame), again.predict(frame))
    assert again.guarantee_ == model.guarantee_


def test_the_release_answers_like_the_model(blobs, tmp_path):
    for parameters in ({"bounds": BOUNDS}, {"bounds": None, "radius": 5.0}, {"bounds": ([-5, -9], [5, 9]), "scaling": "bounds"}):
        model = PrivateKMeans(**{"n_clusters": 3, **parameters}).fit(blobs)
        model.release_.save(tmp_path / f"out{len(list(tmp_path.iterdir()))}")
        loaded = kveil.load(sorted(tmp_path.iterdir())[-1])
        assert np.array_equal(loaded.predict(blobs), model.predict(blobs))
        assert np.allclose(loaded.transform(blobs), model.transform(blobs))


# --- answers -----------------------------------------------------------------------------------------------------------


def test_predict_transform_and_score_agree(blobs):
    model = PrivateKMeans(3, bounds=BOUNDS).fit(blobs)
    apart = model.transform(blobs)
    assert apart.shape == (3000, 3)
    assert np.array_equal(apart.argmin(axis=1), model.predict(blobs))
    assert model.score(blobs) == pytest.approx(-(apart.min(axis=1) ** 2).sum())
    assert model.predict(blobs[:0]).shape == (0,)
    assert model.fit_predict(blobs).shape == (3000,)


def test_frames_keep_their_names_and_outputs(blobs):
    for frame in (pd.DataFrame(blobs, columns=["x", "y"]), pl.DataFrame(blobs, schema=["x", "y"])):
        model = PrivateKMeans(3, bounds=BOUNDS).fit(frame)
        assert model.feature_names_in_.tolist() == ["x", "y"]
        assert model.release_.features == ("x", "y")
    model.set_output(transform="pandas")
    out = model.transform(pd.DataFrame(blobs, columns=["x", "y"]))
    assert out.columns.tolist() == ["privatekmeans0", "privatekmeans1", "privatekmeans2"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(blobs, columns=["y", "x"]))


def test_sparse_rows_give_the_centres_of_dense_ones():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((400, 30)) < 0.1, rng.normal(size=(400, 30)), 0.0)
    dense, sparse = (fitted(X, bounds=None, radius=2.0, n_clusters=4, method="lloyd") for X in (rows, csr_array(rows)))
    assert np.array_equal(dense.cluster_centers_, sparse.cluster_centers_)
    assert np.array_equal(dense.predict(rows), sparse.predict(csr_array(rows)))


@pytest.mark.filterwarnings("ignore::kveil.errors.ScaleWarning")  # the case in question
def test_a_narrow_column_keeps_its_mean_beside_a_wide_one():
    rng = np.random.default_rng(0)
    income = np.r_[rng.normal(2e5, 1e4, 3000), rng.normal(8e5, 1e4, 3000)]
    is_member = np.r_[np.ones(3000), np.zeros(3000)]
    model = fitted(np.c_[income, is_member], n_clusters=2, epsilon=5.0, bounds=([0, 0], [1e6, 1]), method="lloyd")
    assert np.allclose(model.cluster_centers_[model.cluster_centers_[:, 0].argsort()], [[2e5, 1], [8e5, 0]], rtol=0.02, atol=0.03)


def test_centres_without_rows_are_moved_to_where_rows_are(blobs):
    start = np.array([[-3.0, -3.0], [5.0, 5.0], [4.9, 4.9]])
    stuck = fitted(blobs, init=start, epsilon=5.0, tuning=Lloyd(reseed=False))
    moved = fitted(blobs, init=start, epsilon=5.0, n_steps=8)
    assert moved.score(blobs) > stuck.score(blobs)


def test_expected_rows_only_steer_choices(blobs):
    for rows, steps, bits in [(10, 2, 16), (10**7, 7, 20)]:
        used = fitted(blobs, method="lloyd", expected_rows=rows).release_.parameters
        assert (used["n_steps"], used["bits"]) == (steps, bits)


def test_bounds_may_be_given_by_name(blobs):
    frame = pd.DataFrame(blobs, columns=["x", "y"])
    named = fitted(frame, bounds={"y": (-6, 6), "x": (-5, 5)})
    assert np.array_equal(named.cluster_centers_, fitted(frame, bounds=([-5, -6], [5, 6])).cluster_centers_)
    assert PrivateKMeans(3, delta=1e-6, bounds={"x": (0, 1), "y": (0, 1)}).guarantee().route == "pure"
    for bounds in ({"x": (-5, 5)}, {"x": (-5, 5), "y": (-5, 5), "z": (0, 1)}, {"x": (-5, 5), "y": 5}):
        with pytest.raises(KveilError, match="bounds by name"):
            PrivateKMeans(3, bounds=bounds).fit(frame)
    with pytest.raises(KveilError, match="bounds by name"):
        PrivateKMeans(3, bounds={"x": (-5, 5), "y": (-5, 5)}).fit(blobs)


def test_the_guarantee_can_be_asked_for_people():
    unit = kveil.PrivacyUnit("person", 3, "id")
    promised = PrivateKMeans(3, bounds=BOUNDS, method="lloyd").guarantee(n_features=2, unit=unit)
    assert promised.unit == unit
    assert [charge.sensitivity for charge in promised.charges] == [3, 3 * 46340]
