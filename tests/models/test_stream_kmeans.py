"""StreamKMeans: any source of batches, centres at any time without privacy, and one charged release with it."""

import math
import pickle
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from refusals import SECRET, N, says_what_to_do
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

import kveil
from kveil import Ledger, StreamKMeans
from kveil.errors import (
    BoundsRequired,
    BudgetExceeded,
    FewerDistinctPoints,
    InvalidType,
    InvalidValue,
    KveilError,
    NoisyResultWarning,
)
from kveil.questions.leaves import Leaves
from kveil.testing import scripted


def batches_of(rows, n):
    return np.array_split(rows, n)


def same(one, other):
    a, b = one.synopsis_.arrays(), other.synopsis_.arrays()
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.fixture(scope="module")
def many():
    """30 000 made-up rows of eight clusters in five columns."""
    rng = np.random.default_rng(5)
    return rng.uniform(-4, 4, (8, 5))[rng.integers(8, size=30_000)] + 0.2 * rng.standard_normal((30_000, 5))


@pytest.mark.parametrize("is_sorted", [False, True])
def test_few_points_find_the_centres_of_many_rows_in_any_order(many, is_sorted):
    rows = many[np.argsort(many[:, 0])] if is_sorted else many
    model = StreamKMeans(8, memory=400, random_state=0)
    for batch in batches_of(rows, 17):
        model.partial_fit(batch)
    assert -model.score(rows) < 1.01 * KMeans(8, n_init=5, random_state=0).fit(rows).inertia_
    assert model.synopsis_.weights.sum() == len(rows)
    assert model.cluster_weights_.sum() == pytest.approx(1)
    assert model.guarantee_.route == "none"


def test_centres_are_there_at_any_time_and_follow_the_rows():
    model = StreamKMeans(2, memory=50, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    assert not hasattr(model, "cluster_centers_")
    model.partial_fit(np.repeat([[0.0], [1.0]], 20, axis=0))
    assert sorted(model.cluster_centers_.ravel().tolist()) == [0.0, 1.0]
    model.partial_fit(np.repeat([[100.0]], 40, axis=0))
    assert sorted(model.cluster_centers_.ravel().tolist()) == pytest.approx([0.5, 100.0])
    assert model.predict([[0.2], [99.0]]).tolist() == model.predict([[0.9], [200.0]]).tolist()


def test_all_forms_of_a_stream_give_one_synopsis(blobs, tmp_path):
    frame = pd.DataFrame(blobs, columns=["x", "y"])
    frame.to_parquet(tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", blobs)
    import pyarrow.parquet as pq

    forms = {
        "array": blobs,
        "list": blobs.tolist(),
        "frame": frame,
        "parquet": str(tmp_path / "rows.parquet"),
        "npy": tmp_path / "rows.npy",
        "source": kveil.read(blobs),
        "generator": (part for part in batches_of(blobs, 7)),
        "generator of frames": (part for part in (frame[:100], frame[100:1000], frame[1000:])),
        "record batches": pq.ParquetFile(tmp_path / "rows.parquet").iter_batches(500),
    }
    models = {name: StreamKMeans(3, memory=100, random_state=0).fit(form) for name, form in forms.items()}
    reference = models.pop("array")
    for name, model in models.items():
        assert same(model, reference), name
        assert (model.cluster_centers_ == reference.cluster_centers_).all()
    assert models["parquet"].feature_names_in_.tolist() == ["x", "y"]
    assert models["generator of frames"].feature_names_in_.tolist() == ["x", "y"]


def test_streams_merge(many):
    parts = [StreamKMeans(8, memory=400, random_state=0).partial_fit(part) for part in batches_of(many, 3)]
    whole = parts[0].merge(parts[1]).merge(parts[2])
    assert whole.synopsis_.weights.sum() == len(many)
    assert -whole.score(many) < 1.02 * KMeans(8, n_init=5, random_state=0).fit(many).inertia_
    with pytest.raises(InvalidValue, match="twice"):
        whole.merge(parts[2])
    with pytest.raises(InvalidValue, match="twice"):
        whole.merge(whole)
    with pytest.raises(InvalidType):
        whole.merge("another")
    with pytest.raises(InvalidValue, match="private"):
        whole.merge(StreamKMeans(8, epsilon=1.0, bounds=(-5, 5)).partial_fit(many[:10]))


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_batch_counts_once(epsilon):
    model = StreamKMeans(2, memory=64, epsilon=epsilon, bounds=(0, 10))
    rows = np.arange(10.0)[:, None]
    model.partial_fit(rows, source="north", seq=3).partial_fit(rows, source="north", seq=4).partial_fit(rows, source="south")
    for seq in (3, 4, 6):
        with pytest.raises(InvalidValue, match="next one is 5"):
            model.partial_fit(rows, source="north", seq=seq)
    assert model.taken_ == {"north": ((3, 4),), "south": ((0, 0),)}
    total = model.synopsis_.weights.sum() if epsilon is None else model._flow.kept.arrays()["counts"].sum()
    assert total == 30


def n_rows(model):
    return int(model.synopsis_.weights.sum() if model.epsilon is None else model._flow.kept.arrays()["counts"].sum())


def breaking(batches, at):
    for number, batch in enumerate(batches):
        if number == at:
            raise ConnectionError
        yield batch


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("source", [None, "north"])
def test_an_iterator_that_breaks_and_is_begun_again_counts_its_batches_once(epsilon, source):
    batches = [np.full((10, 1), float(number)) for number in range(5)]
    model = StreamKMeans(2, memory=64, epsilon=epsilon, bounds=(0, 10))
    for at in (3, 3, 1, 4):  # again and again, also before where it broke the last time
        with pytest.raises(ConnectionError):
            model.partial_fit(breaking(batches, at), source=source, seq=7)
    model.partial_fit(iter(batches), source=source, seq=7).partial_fit(iter(batches), source=source, seq=7)
    assert list(model.taken_.values()) == [((7, 11),)]
    assert n_rows(model) == 50
    model.partial_fit(iter(batches[:1]), source=source, seq=12)
    assert n_rows(model) == 60
    with pytest.raises(InvalidValue, match="next one is 13"):
        model.partial_fit(iter(batches), source=source, seq=14)  # a gap
    assert n_rows(model) == 60


def test_a_batch_that_is_skipped_is_not_even_opened():
    model = StreamKMeans(2, memory=64, epsilon=1.0, bounds=(0, 10)).partial_fit(iter([np.ones((5, 1))]), seq=0)
    model.partial_fit(iter(["no/such/file.npy", np.ones((5, 1))]), seq=0)
    assert n_rows(model) == 10


def test_an_iterator_goes_on_where_a_saved_stream_left_off(tmp_path):
    batches = [np.full((10, 1), float(number)) for number in range(5)]
    model = StreamKMeans(2, memory=64, epsilon=1.0, bounds=(0, 10))
    with pytest.raises(ConnectionError):
        model.partial_fit(breaking(batches, 2), source="s", seq=0)
    model.save(tmp_path / "state")
    assert n_rows(StreamKMeans.resume(tmp_path / "state").partial_fit(iter(batches), source="s", seq=0)) == 50


@pytest.mark.parametrize("seq", [True, -1, 1.0, "1"])
def test_a_bad_number_of_an_iterator_is_refused(seq):
    with pytest.raises(InvalidType, match="seq"):
        StreamKMeans(2, memory=64).partial_fit(iter([np.ones((5, 1))]), seq=seq)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_batch_is_taken_whole_or_not_at_all(epsilon, tmp_path):
    """The last block of a file has a value that without privacy is refused, and with it counts as the middle."""
    rows = np.zeros((200_000, 1))
    rows[-1] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    for batch in (rows, tmp_path / "rows.npy", pd.DataFrame(rows)):
        model = StreamKMeans(1, memory=64, epsilon=epsilon, bounds=(-1, 1)).partial_fit(np.ones((5, 1)))
        if epsilon is None:
            with pytest.raises(InvalidValue, match="NaN"):
                model.partial_fit(batch)
            assert model.synopsis_.weights.sum() == 5
            assert list(model.taken_.values()) == [((0, 0),)]
        else:
            assert model.partial_fit(batch)._flow.kept.arrays()["counts"].sum() == 200_005


def test_equal_points_and_few_points():
    with pytest.warns(FewerDistinctPoints):
        model = StreamKMeans(3, memory=10).fit(np.full((500, 2), 0.25))
    assert (model.cluster_centers_ == 0.25).all()
    assert model.cluster_centers_.shape == (3, 2)
    with pytest.warns(FewerDistinctPoints):
        assert StreamKMeans(3, memory=10).fit([[0.0], [1.0]]).cluster_centers_.ravel().tolist() == [0.0, 1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        assert StreamKMeans(3, memory=10).fit([[0.0], [1.0], [5.0], [5.0]]).cluster_centers_.shape == (3, 1)


CONTENTS = {
    "no rows": np.empty((0, 2)),
    "one row": np.array([[0.5, 0.5]]),
    "all rows equal": np.full((50, 2), 0.25),
    "all NaN": np.full((20, 2), np.nan),
    "infinite and huge": np.array([[np.inf, -np.inf], [1e308, -1e308], [5e-324, 0.0]] * 10),
    "out of bounds": np.array([[-7.0, 99.0]] * 30),
    "objects": np.array([[0.5, None], [1, np.float32(2)]], dtype=object),
}


@pytest.mark.parametrize("d", [1, 2, 5, 22])
@pytest.mark.parametrize("name", CONTENTS)
def test_what_rows_hold_never_raises_warns_or_changes_a_shape_of_a_private_stream(name, d):
    X = np.repeat(CONTENTS[name], d, axis=1)[:, :d]
    for delta in (0.0, 1e-6):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
            model = StreamKMeans(4, memory=64, epsilon=1.0, delta=delta, bounds=(0, 1)).fit(X)
            assert model.cluster_centers_.shape == (4, d)
            assert np.isfinite(model.cluster_centers_).all()
            assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()
            assert model.cluster_weights_.sum() == pytest.approx(1)
            assert (model.cluster_errors_ > 0).all()
            assert model.predict(X).shape == (len(X),)
            assert math.isfinite(model.score(X))


@pytest.mark.parametrize(("d", "bar"), [(2, 1.02), (5, 1.03)])
def test_a_private_stream_finds_clusters(d, bar):
    rng = np.random.default_rng(d)
    rows = rng.uniform(-0.8, 0.8, (6, d))[rng.integers(6, size=40_000)] + 0.05 * rng.standard_normal((40_000, d))
    floor = KMeans(6, n_init=5, random_state=0).fit(rows).inertia_
    costs = []
    for seed in range(3):
        with scripted(seed):
            model = StreamKMeans(6, epsilon=1.0, bounds=(-1, 1), random_state=seed)
            costs.append(-model.fit(iter(batches_of(rows, 9))).score(rows))
    assert np.mean(costs) < bar * floor
    assert not model.guarantee_.valid


def test_many_columns_are_projected_and_come_back_whole():
    rng = np.random.default_rng(1)
    rows = rng.uniform(-0.7, 0.7, (4, 30))[rng.integers(4, size=40_000)] + 0.1 * rng.standard_normal((40_000, 30))
    with scripted(0):
        model = StreamKMeans(4, epsilon=4.0, bounds=(-1, 1), random_state=0).fit(rows)
    assert -model.score(rows) < 1.1 * KMeans(4, n_init=3, random_state=0).fit(rows).inertia_


def test_the_budget_is_charged_at_every_finish_and_nothing_is_released_before():
    ledger = Ledger.memory("river", 1.0, relation="add-remove")
    rows = np.random.default_rng(0).random((500, 2))
    model = StreamKMeans(2, memory=64, epsilon=0.5, bounds=(0, 1), ledger=ledger)
    assert (model.guarantee().epsilon, model.guarantee().trust) == (0.5, "stream")
    model.partial_fit(rows)
    for name in ("cluster_centers_", "cluster_weights_", "cluster_errors_", "release_", "guarantee_", "synopsis_"):
        with pytest.raises(AttributeError):
            getattr(model, name)
    assert ledger.spent().epsilon == 0
    first = model.finish(go_on=True).cluster_centers_
    assert ledger.spent().epsilon == 0.5
    model.partial_fit(rows).finish()
    assert ledger.spent().epsilon == 1.0
    assert (first != model.cluster_centers_).any()
    assert model.guarantee_ == model.release_.guarantee
    assert model.guarantee_.recompute() == model.guarantee_
    with pytest.raises(NotFittedError):
        model.finish()
    with pytest.raises(BudgetExceeded):
        model.partial_fit(rows).finish()
    assert ledger.spent().epsilon == 1.0
    assert model.cluster_centers_.shape == (2, 2)  # what was released stays


def test_a_further_release_says_that_there_were_others(tmp_path):
    """Each promise is of one release; who has but the second must know that it is not all."""
    model = StreamKMeans(2, memory=64, epsilon=0.5, bounds=(0, 1)).partial_fit([[0.5]])
    assert not any("earlier" in note for note in model.finish(go_on=True).release_.notes)
    model.save(tmp_path / "state")
    assert "up to 1 earlier release" in model.finish(go_on=True).release_.notes[0]
    assert "up to 2 earlier release" in model.finish().release_.card()
    resumed = StreamKMeans.resume(tmp_path / "state")
    fresh = StreamKMeans(2, memory=64, epsilon=0.5, bounds=(0, 1)).partial_fit([[0.5]])
    assert "up to 1 earlier release" in fresh.merge(resumed).finish().release_.notes[0]
    assert not any("earlier" in note for note in fresh.partial_fit([[0.5]]).finish().release_.notes)


def test_streams_of_different_ledgers_are_not_merged(tmp_path):
    """The rows of one would be released at the cost of the other's budget alone, and again at their own."""
    place = tmp_path / "river.db"
    ledgers = [
        None,
        Ledger.create(place, "river", 1.0, relation="add-remove"),
        Ledger.memory("river", 1.0, relation="add-remove"),
    ]
    for mine in ledgers:
        for theirs in ledgers:
            one, other = (
                StreamKMeans(2, memory=64, epsilon=0.5, bounds=(0, 1), ledger=ledger).partial_fit([[0.5]])
                for ledger in (mine, theirs)
            )
            if mine is theirs:
                one.merge(other)
                continue
            with pytest.raises(InvalidValue, match="different ledgers"):
                one.merge(other)
            assert len(one.taken_) == 1
    one, other = (
        StreamKMeans(2, memory=64, epsilon=0.5, bounds=(0, 1), ledger=ledger).partial_fit([[0.5]])
        for ledger in (place, ledgers[1])
    )
    one.merge(other).finish()
    other.finish()
    assert ledgers[1].remaining().epsilon == 0


def batch_forms():
    import polars as pl
    import pyarrow as pa

    return {
        "list": [], "tuple": (), "array": np.empty((0, 2)), "objects": np.empty((0, 2), dtype=object),
        "pandas": pd.DataFrame({"a": [], "b": []}), "pyarrow": pa.table({"a": [], "b": []}),
        "polars": pl.DataFrame({"a": [], "b": []}),
        "missing, pandas": pd.DataFrame({"a": [None], "b": [None]}), "missing, pyarrow": pa.table({"a": [None], "b": [None]}),
        "missing, polars": pl.DataFrame({"a": [None], "b": [0.5]}), "missing, list": [[None, None]],
    }  # fmt: skip


@pytest.mark.parametrize("form", batch_forms())
@pytest.mark.filterwarnings("ignore:X ")  # with and without names: by the form, not by what it holds
def test_a_batch_without_rows_or_values_is_a_batch_of_a_private_stream(form, tmp_path):
    model = StreamKMeans(2, memory=64, epsilon=1.0, bounds=(0, 1)).partial_fit(np.full((3, 2), 0.5))
    model.partial_fit(batch_forms()[form])
    assert model._flow.kept.arrays()["counts"].sum() == 3 + ("missing" in form)
    assert list(model.taken_.values()) == [((0, 1),)]
    batch_forms()["missing, polars"].write_parquet(tmp_path / "rows.parquet")
    assert model.partial_fit(tmp_path / "rows.parquet")._flow.kept.arrays()["counts"].sum() == 4 + ("missing" in form)


def test_a_finished_private_stream_holds_no_rows_and_an_unfinished_one_is_not_copied():
    rows = np.full((3, 2), SECRET)
    model = StreamKMeans(2, memory=64, epsilon=1.0, bounds=(0, 300)).partial_fit(rows)
    for copy in (pickle.dumps, deepcopy):
        with pytest.raises(InvalidType, match="secret"):
            copy(model)
    model.finish()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(rows) == model.predict(rows)).all()
    assert not hasattr(again, "taken_")
    open_books = StreamKMeans(1, memory=64).partial_fit(rows)
    assert same(pickle.loads(pickle.dumps(open_books)), open_books)


def test_the_release_can_be_saved_and_read(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).random((400, 2)), columns=["a", "b"])
    model = StreamKMeans(2, memory=64, epsilon=1.0, bounds={"b": (0, 1), "a": (0, 2)}).fit(rows)
    release = kveil.load(model.release_.save(tmp_path / "out"))
    assert (release.predict(rows) == model.predict(rows)).all()
    assert release.kind == "StreamKMeans"
    assert "stream model" in release.card()


@pytest.mark.filterwarnings("ignore::kveil.errors.ScaleWarning")  # the case in question
def test_columns_of_different_width_are_found_in_their_own_units():
    rng = np.random.default_rng(0)
    rows = np.c_[np.r_[rng.normal(2e5, 1e4, 3000), rng.normal(8e5, 1e4, 3000)], rng.random(6000)]
    with scripted(1):
        model = StreamKMeans(2, epsilon=2.0, bounds=([0, 0], [1e6, 1])).fit(rows)
    assert np.allclose(np.sort(model.cluster_centers_[:, 0]), [2e5, 8e5], rtol=0.05)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_saved_stream_goes_on_as_if_nothing_had_happened(epsilon, tmp_path, many):
    rows = pd.DataFrame(many[:3000], columns=list("abcde"))
    model = StreamKMeans(8, memory=200, epsilon=epsilon, bounds=(-5, 5), random_state=3)
    twin = StreamKMeans(8, memory=200, epsilon=epsilon, bounds=(-5, 5), random_state=3)
    model.partial_fit(rows[:1000], source="s", seq=7).save(tmp_path / "state")
    resumed = StreamKMeans.resume(tmp_path / "state")
    bounds = None if epsilon is None else ([-5.0] * 5, [5.0] * 5)  # a stream without privacy does not look at them
    assert resumed.get_params() == {**model.get_params(), "bounds": bounds}
    assert resumed.taken_ == {"s": ((7, 7),)}
    with pytest.raises(InvalidValue, match="next one is 8"):
        resumed.partial_fit(rows[:1000], source="s", seq=7)
    resumed.partial_fit(rows[1000:], source="s", seq=8)
    twin.partial_fit(rows, source="s", seq=7)
    kept, other = resumed._flow.kept.arrays(), twin._flow.kept.arrays()
    assert all(kept[name].tobytes() == other[name].tobytes() for name in kept)
    with scripted(0):
        found = resumed.finish().cluster_centers_
    with scripted(0):
        assert (found == twin.finish().cluster_centers_).all()


def test_a_stream_goes_on_with_its_ledger_or_not_at_all(tmp_path):
    ledger = Ledger.create(tmp_path / "river.db", "river", 1.0, relation="add-remove")
    model = StreamKMeans(2, memory=64, epsilon=0.1, bounds={"x": (0, 1)}, ledger=ledger)
    model.partial_fit(pd.DataFrame({"x": [0.5]})).save(tmp_path / "state")
    other = Ledger.memory("lake", 1.0, relation="add-remove")
    for wrong in (None, other):
        with pytest.raises(InvalidValue, match='the ledger "river"'):
            StreamKMeans.resume(tmp_path / "state", ledger=wrong)
    resumed = StreamKMeans.resume(tmp_path / "state", ledger=tmp_path / "river.db")
    assert resumed.finish().cluster_centers_.shape == (2, 1)
    assert ledger.spent().epsilon == pytest.approx(0.1)


def test_every_release_of_one_saved_state_is_charged_and_one_that_fails_too(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "river.db", "river", 1.0, relation="add-remove")
    model = StreamKMeans(2, memory=64, epsilon=0.25, bounds=(0, 1), ledger=ledger).partial_fit([[0.5]])
    model.save(tmp_path / "state")
    model.finish()
    StreamKMeans.resume(tmp_path / "state", ledger=ledger).finish()
    assert ledger.spent().epsilon == 0.5
    again = StreamKMeans.resume(tmp_path / "state", ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr("kveil.methods.leaves.LeafReading.run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            again.finish()
    assert ledger.spent().epsilon == 0.75  # charged before the noise: what was reserved is spent
    again.finish()
    with pytest.raises(BudgetExceeded):
        StreamKMeans.resume(tmp_path / "state", ledger=ledger).finish()


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_state_that_was_cut_into_other_cells_is_refused(tmp_path, monkeypatch):
    StreamKMeans(2, memory=64, epsilon=1.0, bounds=(0, 1)).partial_fit([[0.1, 0.2]]).save(tmp_path / "state")
    of = Leaves.of
    monkeypatch.setattr(Leaves, "of", classmethod(lambda cls, box, depth: of(box, depth - 1)))
    with pytest.raises(InvalidValue, match="other cells"):
        StreamKMeans.resume(tmp_path / "state")


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 0}, {"n_clusters": 2.5}, {"n_clusters": 10**12}, {"memory": 5}, {"memory": 1.5}, {"memory": True},
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": "1"}, {"epsilon": 1e-9}, {"epsilon": 1e6},
        {"delta": 1.0}, {"delta": -1.0}, {"bounds": None}, {"bounds": (1.0, 1.0)}, {"bounds": (0, math.inf)}, {"bounds": 3},
        {"bounds": ([0, 0, 0], [1, 1, 1])}, {"bounds": {"a": (0, 1)}}, {"ledger": 5}, {"epsilon": math.inf},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused_before_a_row_is_read(parameters):
    ledger = Ledger.memory("untouched", 10.0, 1e-3, relation="add-remove", rule="approx")
    model = StreamKMeans(**{"n_clusters": 3, "epsilon": 1.0, "bounds": (0.0, 1.0), "ledger": ledger, **parameters})
    with pytest.raises(KveilError) as refusal:
        model.fit(np.full((N, 2), SECRET))
    says_what_to_do(refusal.value)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize(
    "X",
    [np.full(N, SECRET), np.full((N, 2, 2), SECRET), SECRET, np.full((N, 2), str(SECRET)), np.full((N, 2), SECRET + 1j),
     pd.DataFrame({"a": [f"{SECRET}x"] * N, "b": [SECRET] * N}), {"a": SECRET}, None, "no/such/file.npy", [[1.0], [1.0, 2.0]]],
    ids=lambda X: type(X).__name__,
)  # fmt: skip
def test_bad_batches_are_refused_and_the_stream_goes_on(X, epsilon):
    model = StreamKMeans(1, memory=64, epsilon=epsilon, bounds=(0, 300)).partial_fit(np.full((10, 2), SECRET))
    with pytest.raises(KveilError) as refusal:
        model.partial_fit(X)
    says_what_to_do(refusal.value)
    with pytest.raises(KveilError):
        model.partial_fit(iter([np.full((10, 2), SECRET), None]))
    assert list(model.taken_.values()) == [((0, 1),)]  # the first batch of the iterator was good


def test_other_widths_names_sparse_rows_and_people_are_refused():
    from scipy.sparse import csr_array

    frame = pd.DataFrame({"a": [0.0], "b": [1.0]})
    model = StreamKMeans(1, memory=64).partial_fit(frame)
    with pytest.raises(ValueError, match="X has 3 features, but StreamKMeans is expecting 2 features as input"):
        model.partial_fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[["b", "a"]])
    with pytest.raises(InvalidValue, match="other names"):
        model.partial_fit(kveil.read(frame[["b", "a"]]))
    with pytest.raises(InvalidType, match="dense"):
        model.partial_fit(csr_array(np.eye(2)))
    with pytest.raises(InvalidValue, match="person"):
        model.partial_fit(kveil.read(frame.assign(id=1), person="id"))
    with pytest.raises(InvalidValue, match="nothing to charge"):
        StreamKMeans(1, ledger=Ledger.memory("x", 1, relation="add-remove")).fit(frame)
    with pytest.raises(BoundsRequired):
        StreamKMeans(1, epsilon=1.0).fit(frame)
    for empty in (iter([]), np.empty((0, 2))):
        with pytest.raises(NotFittedError):
            StreamKMeans(1).fit(empty)


def test_no_noise_promises_nothing():
    rows = np.repeat([[0.1], [0.9]], 50, axis=0)
    model = StreamKMeans(2, epsilon=math.inf, bounds=(0, 1)).fit(rows)
    assert np.sort(model.cluster_centers_.ravel()) == pytest.approx([0.1, 0.9], abs=1e-3)
    assert model.guarantee_.route == "none"


@pytest.mark.parametrize("tables", [[np.zeros((3, 2))] * 2, [pd.DataFrame({"x": [1.0]})], ["day1.csv", "day2.csv"]])
def test_a_list_of_tables_is_refused_with_what_to_do(tables):
    with pytest.raises(InvalidValue, match=r"Pass iter\(\.\.\.\)"):
        StreamKMeans(2).partial_fit(tables)


def test_a_stream_without_a_ledger_is_not_resumed_with_one(tmp_path):
    StreamKMeans(2, epsilon=1.0, bounds=(0, 1)).partial_fit(np.zeros((3, 2))).save(tmp_path / "state")
    with pytest.raises(InvalidValue, match="Leave ledger out"):
        StreamKMeans.resume(tmp_path / "state", ledger=Ledger.memory("other", 1.0, relation="add-remove"))
