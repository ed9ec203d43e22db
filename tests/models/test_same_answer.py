"""With the noise scripted, the same rows give the same bytes: whatever the order, partitions, threads, file or engine."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kveil
from kveil import PrivateKMeans
from kveil.testing import scripted


def centers_of(X, **parameters):
    with scripted(3):
        model = PrivateKMeans(**{"n_clusters": 4, "bounds": (-5, 5), "random_state": 1, "n_steps": 4, **parameters}).fit(X)
    found = (model.cluster_centers_, model.cluster_weights_, model.cluster_errors_)
    return b"".join(array.tobytes() for array in found if array is not None)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(9).normal(scale=2.0, size=(20_000, 3))


@pytest.fixture(scope="module")
def expected(rows):
    return centers_of(rows)


def test_another_script_gives_another_answer(rows, expected):
    with scripted(4):
        other = PrivateKMeans(4, bounds=(-5, 5), random_state=1, n_steps=4).fit(rows)
    assert other.cluster_centers_.tobytes() not in expected


def test_order_and_layout_do_not_matter(rows, expected):
    shuffled = np.random.default_rng(0).permutation(rows)
    for X in (shuffled, rows[::-1], np.asfortranarray(rows), rows.tolist(), np.ma.asarray(rows).data):
        assert centers_of(X) == expected


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_do_not_matter(rows, expected, threads, monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", threads)
    assert centers_of(kveil.read(rows, memory="2MB")) == expected


@pytest.mark.parametrize("n", [1, 7, 64])
def test_partitions_do_not_matter(rows, expected, n, tmp_path):
    for i, part in enumerate(np.array_split(np.random.default_rng(n).permutation(rows), n)):
        pd.DataFrame(part, columns=["a", "b", "c"]).to_parquet(tmp_path / f"part-{i:03}.parquet", row_group_size=500)
    assert centers_of(tmp_path) == expected
    dask = pytest.importorskip("dask.array")
    assert centers_of(dask.from_array(rows, chunks=(-(-len(rows) // n), 2))) == expected


def test_containers_and_files_do_not_matter(rows, expected, tmp_path):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=3000)
    np.savez(tmp_path / "rows.npz", x=rows)
    np.save(tmp_path / "rows.npy", rows)
    dask = pytest.importorskip("dask.dataframe")
    given = [frame, pl.DataFrame(frame), pa.table(frame), dask.from_pandas(frame, npartitions=7)]
    given += [tmp_path / f"rows.{kind}" for kind in ("csv", "parquet", "npz", "npy")]
    for X in given:
        assert centers_of(X) == expected, type(X)


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"bounds": None, "radius": 4.0, "delta": 1e-6},
        {"bounds": ([-5, -1, -3], [5, 2, 3])},
        {"wide": True, "delta": 1e-6},
        {"method": "grid"},
        {"method": "grid", "tuning": kveil.tuning.Grid(hybrid=True), "delta": 1e-6, "expected_rows": 300},
        {"method": "lloyd", "tuning": kveil.tuning.Lloyd(noise="coordinates")},
        {"method": "sample-aggregate"},
        {"method": "sample-aggregate", "bounds": ([-5, -1, -3], [5, 2, 3]), "delta": 1e-6, "init": "spread"},
        {
            "method": "sample-aggregate",
            "bounds": None,
            "radius": 4.0,
            "tuning": kveil.tuning.SampleAggregate(blocks=7, n_steps=3),
        },
        {"method": "mean"},
        {"method": "candidates", "epsilon": 8.0},
        {"method": "candidates", "wide": True, "delta": 1e-6, "epsilon": 8.0},
    ],
    ids=str,
)
def test_no_method_depends_on_order_partitions_threads_or_engine(rows, shape, monkeypatch, tmp_path):
    shape = {"n_steps": None, "method": "tree", "epsilon": 2.0, **shape}
    X = np.hstack([rows[:8000]] * 7) if shape.pop("wide", False) else rows  # wide: too large to be kept between passes
    whole = centers_of(X, **shape)
    assert centers_of(np.random.default_rng(0).permutation(X), **shape) == whole
    assert centers_of(np.asfortranarray(X[::-1]), **shape) == whole
    dask = pytest.importorskip("dask.array")
    assert centers_of(dask.from_array(X, chunks=(3000, 2)), **shape) == whole
    names = [f"x{i}" for i in range(X.shape[1])]
    pd.DataFrame(X, columns=names).to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    for threads in ("1", "2"):
        monkeypatch.setenv("KVEIL_THREADS", threads)
        assert centers_of(kveil.read(tmp_path / "rows.parquet", memory="1MiB"), **shape) == whole


def test_a_ball_and_the_gaussian_do_not_depend_on_partitions_either(rows):
    shape = {"bounds": None, "radius": 4.0, "delta": 1e-6, "epsilon": 0.5}
    wide = np.hstack([rows, rows])
    whole = centers_of(wide, **shape)
    assert centers_of(np.random.default_rng(1).permutation(wide), **shape) == whole
    assert centers_of(kveil.read(wide, memory="2MB"), **shape) == whole
