"""What is refused, in one paragraph and before anything is charged; and what rows hold, which never matters."""

import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import SECRET, N, says_what_to_do
from scipy.sparse import csr_array

import kveil
from kveil import Ledger, PrivateKMeans
from kveil.errors import BoundsRequired, KveilError, NoisyResultWarning
from kveil.testing import scripted

ROWS = np.full((N, 2), SECRET)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 0},
        {"n_clusters": -1},
        {"n_clusters": 2.5},
        {"n_clusters": True},
        {"n_clusters": "8"},
        {"n_clusters": 10**12},
        {"bounds": (0.0, 10**400)},
        {"epsilon": 0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"epsilon": None},
        {"epsilon": 1e-12},
        {"epsilon": 1e6},
        {"delta": -1e-6},
        {"delta": 1.0},
        {"delta": math.nan},
        {"delta": 1e-30},
        {"bounds": None},
        {"bounds": (1.0, 1.0)},
        {"bounds": (2.0, 1.0)},
        {"bounds": (0.0, math.inf)},
        {"bounds": (math.nan, 1.0)},
        {"bounds": (0.0, 1.0, 2.0)},
        {"bounds": 5.0},
        {"bounds": "0,1"},
        {"bounds": ("a", "b")},
        {"bounds": ([0, 0, 0], [1, 1, 1])},
        {"bounds": ([0, 0], [1, 1, 1])},
        {"bounds": (-1e308, 1e308)},
        {"bounds": (0.0, 5e-324)},
        {"radius": 1.0},
        {"center": 0.0},
        {"bounds": None, "radius": 0.0},
        {"bounds": None, "radius": -1.0},
        {"bounds": None, "radius": math.inf},
        {"bounds": None, "radius": "1"},
        {"bounds": None, "radius": 1.0, "center": [0.0, 0.0, 0.0]},
        {"bounds": None, "radius": 1.0, "center": math.nan},
        {"method": "magic"},
        {"method": None},
        {"init": "k-means++"},
        {"init": [[0.0, 0.0]]},
        {"init": [[0.0, math.nan]] * 3},
        {"n_steps": 0},
        {"n_steps": 1.5},
        {"scaling": "standard"},
        {"expected_rows": 0},
        {"expected_rows": "many"},
        {"relation": "swap"},
        {"tuning": {"bits": 16}},
        {"tuning": kveil.tuning.Lloyd(bits=1)},
        {"tuning": kveil.tuning.Lloyd(bits=31)},
        {"tuning": kveil.tuning.Lloyd(noise="loud")},
        {"tuning": kveil.tuning.Lloyd(noise="coordinates"), "delta": 1e-6},
        {"tuning": kveil.tuning.KMedian()},
        {"tuning": kveil.tuning.Tree(frame="pca"), "delta": 1e-6},
        {"tuning": kveil.tuning.SampleAggregate(blocks=0)},
        {"tuning": kveil.tuning.SampleAggregate(blocks=10**9)},
        {"tuning": kveil.tuning.SampleAggregate(blocks=True)},
        {"tuning": kveil.tuning.SampleAggregate(n_steps=0)},
        {"tuning": kveil.tuning.SampleAggregate(bits=26), "epsilon": 2.0**-28},
        {"tuning": kveil.tuning.Grid(hybrid=True, bits=26), "epsilon": 2.0**-28},
        {"method": "sample-aggregate", "n_steps": 3},
        {"ledger": 5},
        {"ledger": "/no/such/ledger.db"},
        {"epsilon": math.inf, "ledger": "x.db"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_charged(parameters):
    ledger = Ledger.memory("untouched", 10.0, 1e-3, relation="add-remove")
    model = PrivateKMeans(**{"n_clusters": 3, "bounds": (0.0, 1.0), "ledger": ledger, **parameters})
    with pytest.raises(KveilError) as refusal:
        model.fit(ROWS)
    says_what_to_do(refusal.value)
    assert ledger.spent().epsilon == 0
    assert not hasattr(model, "cluster_centers_")


def test_missing_bounds_say_why_it_matters():
    with pytest.raises(BoundsRequired, match="would publish its extremes"):
        PrivateKMeans(3).fit(ROWS)


def csv_without_header(path):
    path.write_text(f"{SECRET},{SECRET}\n" * N)


def broken_parquet(path):
    pd.DataFrame(ROWS, columns=["a", "b"]).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


def text_column(path):
    pd.DataFrame({"a": [f"{SECRET}x"] * N, "b": [SECRET] * N}).to_parquet(path)


@pytest.mark.parametrize(
    ("name", "make"),
    [("rows.csv", csv_without_header), ("rows.parquet", broken_parquet), ("text.parquet", text_column)],
    ids=["csv without header", "unreadable parquet footer", "text column"],
)
def test_bad_files_are_refused_before_anything_is_charged(name, make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # messages quote the path, which should hold no accidental numbers
    make(Path(name))
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError) as refusal:
        PrivateKMeans(3, bounds=(0, 1), ledger=ledger).fit(name)
    says_what_to_do(refusal.value)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(
    "X",
    [
        np.full(N, SECRET),
        np.full((N, 2, 2), SECRET),
        SECRET,
        np.full((N, 0), SECRET),
        np.full((N, 2), str(SECRET)),
        np.full((N, 2), SECRET + 1j),
        np.array([[SECRET, {"a": SECRET}]] * N, dtype=object),
        pd.DataFrame({"a": [f"{SECRET}x"] * N, "b": [SECRET] * N}),
        pd.DataFrame({"a": pd.to_datetime(["2026-01-01"] * N)}),
        (row for row in ROWS),
        {"a": SECRET},
        None,
        "no/such/file.parquet",
    ],
    ids=lambda X: type(X).__name__,
)
def test_bad_tables_are_refused_before_anything_is_charged(X):
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError) as refusal:
        PrivateKMeans(3, bounds=(0, 1), ledger=ledger).fit(X)
    says_what_to_do(refusal.value)
    assert ledger.spent().epsilon == 0


def test_sparse_rows_need_a_domain_around_zero():
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError, match="centred at 0"):
        PrivateKMeans(3, bounds=(0, 1), ledger=ledger).fit(csr_array(ROWS))
    assert ledger.spent().epsilon == 0


def test_predict_refuses_other_columns_without_counting_rows():
    model = PrivateKMeans(3, bounds=(0, 300)).fit(ROWS)
    with pytest.raises(ValueError, match="X has 3 features, but PrivateKMeans is expecting 2 features as input") as refusal:
        model.predict(np.full((N, 3), SECRET))
    says_what_to_do(refusal.value)


CONTENTS = {
    "no rows": np.empty((0, 2)),
    "one row": np.array([[0.5, 0.5]]),
    "fewer rows than clusters": np.array([[0.1, 0.2], [0.9, 0.8]]),
    "all rows equal": np.full((50, 2), 0.25),
    "NaN": np.array([[np.nan, 0.5], [0.5, 0.5]] * 20),
    "all NaN": np.full((20, 2), np.nan),
    "infinite": np.array([[np.inf, -np.inf], [0.1, 0.1]] * 20),
    "huge": np.array([[1e308, -1e308], [5e-324, 0.0]] * 20),
    "out of bounds": np.array([[-7.0, 99.0]] * 30),
    "float32": np.full((20, 2), 0.5, dtype=np.float32),
    "integers": np.array([[2**62, -(2**62)]] * 5),
    "booleans": np.array([[True, False]] * 5),
    "objects": np.array([[0.5, None], [1, np.float32(2)]], dtype=object),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("domain", [{"bounds": (0.0, 1.0)}, {"radius": 1.0}], ids=["box", "ball"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", ["lloyd", "tree", "grid", "sample-aggregate", "mean"])
def test_what_rows_hold_never_raises_warns_or_changes_a_shape(name, domain, delta, method):
    X = CONTENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        model = PrivateKMeans(4, delta=delta, method=method, **domain).fit(X)
        assert model.cluster_centers_.shape == (4, 2)
        assert np.isfinite(model.cluster_centers_).all()
        if method != "sample-aggregate":  # which releases no counts
            assert model.cluster_weights_.shape == (4,)
            assert model.cluster_weights_.sum() == pytest.approx(1)
        assert model.predict(X).shape == (len(X),)
        assert model.transform(X).shape == (len(X), 4)
        assert math.isfinite(model.score(X))


def test_no_output_shape_or_charge_depends_on_the_number_of_rows():
    facts = set()
    for n in (0, 1, 2, 3, 7, 8, 20, 21, 54, 55, 148, 149):
        with scripted(n):
            model = PrivateKMeans(5, bounds=(0, 1)).fit(np.full((n, 3), 0.5))
        facts.add((model.cluster_centers_.shape, model.guarantee_.charges, model.release_.receipt["charges"]))
    assert len(facts) == 1
