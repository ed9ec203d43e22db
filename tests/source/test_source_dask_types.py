"""A Dask collection announces types; its partitions are brought to them, and what they say when they fail is told to nobody."""

import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kveil import Ledger, PrivateKMeans
from kveil.errors import SourceError
from kveil.kernel.grid import Box
from kveil.source import dask_source as cluster
from kveil.source import read

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SECRET = "87654321"
GRID = Box([-8.0], [8.0])


@pytest.fixture(autouse=True, params=["synchronous", "threads"])
def scheduler(request):
    with dask.config.set({"scheduler": request.param, "dataframe.convert-string": False}):  # Dask shall not convert for us
        yield


def sum_and_count(block, state):
    return np.array([block.astype(np.int64).sum()]), np.array([len(block)])


def summary(source):
    return [array.tolist() for array in source.map_reduce(sum_and_count, None, grid=GRID)]


def frame_of(parts, **types):
    """A Dask frame that announces `types` and has these partitions, whatever theirs are."""
    meta = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in types.items()})
    return dd.from_map(lambda number: parts[number], range(len(parts)), meta=meta, enforce_metadata=False)


def check_silence(error):
    assert isinstance(error, SourceError)
    assert error.__context__ is None
    assert error.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (["0.5", f"name {SECRET}", "1"], [0.5, np.nan, 1]),
        ([0.5, f"name {SECRET}", None], [0.5, np.nan, np.nan]),
        (pd.array(["0.5", SECRET + "x", None], dtype="string[pyarrow]"), [0.5, np.nan, np.nan]),
        (pd.Categorical([1, 2, 1]), [1, 2, 1]),
        (pd.to_datetime(["2020-01-01"] * 3), [np.nan] * 3),
        ([1j, 2j, 3j], [np.nan] * 3),
        ([[1], np.array([1.0]), np.complex64(1)], [np.nan] * 3),
        (pd.array([1, None, 3], dtype="Int64"), [1, np.nan, 3]),
        ([True, False, True], [1, 0, 1]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_partition_of_another_type_is_read_cell_by_cell(column, numbers):
    first = pd.DataFrame({"x": [0.0, 0.5]})
    table = frame_of([first, pd.DataFrame({"x": column})], x=float)
    expected = read(np.concatenate([first.to_numpy(), np.array(numbers, dtype=float)[:, None]]))
    assert summary(read(table)) == summary(expected)


@pytest.mark.filterwarnings("error")
def test_a_collection_keeps_its_mark():
    marks = [read(da.ones((4, 1)), private=private).is_private for private in (False, True)]
    assert marks == [False, True]


def test_a_chunk_of_another_type_is_read_cell_by_cell():
    chunks = [np.array([[0.5]]), np.array([["1.5"], ["x"]]), np.array([[2.0], [None]], dtype=object), np.array([[3]])]
    late = [*chunks, np.array([["2020-01-01"]], dtype="datetime64[ns]"), np.array([[1j]])]
    blocks = [da.from_delayed(dask.delayed(chunk, traverse=False), (len(chunk), 1), dtype=float) for chunk in late]
    expected = read(np.array([[0.5, 1.5, np.nan, 2, np.nan, 3, np.nan, np.nan]]).T)
    assert summary(read(da.concatenate(blocks))) == summary(expected)


@pytest.mark.parametrize(
    "ids",
    [[1, None, 12], [1.0, np.nan, 12.0], pd.array([1, None, 12], dtype="Int64"), ["1", SECRET + "x", "12"],
     pd.Series([1, 2.5, 12], dtype=object), pd.Categorical([1, None, 12]), [1, 2.0**60, 12],
     np.array([1, 2**63, 12], dtype=np.uint64)],
)  # fmt: skip
def test_integer_ids_of_another_type_in_one_partition_are_the_same_people(ids):
    parts = [pd.DataFrame({"id": [11, 12], "x": [1.0, 1.0]}), pd.DataFrame({"id": ids, "x": [1.0, 1.0, 1.0]})]
    assert summary(read(frame_of(parts, id="int64", x=float), person="id"))[1] == [3]  # 11, 12 and 1


@pytest.mark.parametrize(
    "ids", [["a", None, "c"], [1, 2, 3], [True, False, None], pd.Categorical(["a", None, "c"]), [1, "a", "c"]]
)
@pytest.mark.parametrize("kind", [object, "string[pyarrow]", "string[python]"])
def test_ids_that_are_text_stay_text_and_all_else_is_missing(ids, kind):
    parts = [pd.DataFrame({"id": ["a", "b"], "x": [1.0, 1.0]}), pd.DataFrame({"id": ids, "x": [1.0, 1.0, 1.0]})]
    n_new = int("c" in list(ids))
    assert summary(read(frame_of(parts, id=kind, x=float), person="id"))[1] == [2 + n_new]


def test_a_missing_id_in_a_folder_of_parquet_files_is_read_as_it_is_without_dask(tmp_path):
    for number, ids in enumerate([[1, 2, 3], [None, 2, 13]]):
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "x": [0.0, 0.5, 1.0]}), tmp_path / f"{number}.parquet")
    assert summary(read(dd.read_parquet(tmp_path), person="id")) == summary(read(tmp_path, person="id"))


def test_unknown_categories_are_no_announced_type_of_ids():
    frame = dd.from_pandas(pd.DataFrame({"id": pd.Categorical([1, 2]), "x": [1.0, 2.0]}), npartitions=1)
    assert summary(read(frame, person="id"))[1] == [2]
    with pytest.raises(SourceError, match="integers or strings"):
        read(frame.assign(id=frame["id"].cat.as_unknown()), person="id")


def test_a_cell_that_the_users_own_graph_cannot_read_is_quoted_nowhere(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1.0,2.0\n" * 3000 + f"HIV-{SECRET},1.0\n")
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    model = PrivateKMeans(2, epsilon=1.0, bounds=(0, 1), ledger=ledger)
    with pytest.raises(SourceError, match="Dask collection could not be computed") as caught:
        model.fit(dd.read_csv(tmp_path / "t.csv", sample=1000, blocksize=10_000))
    check_silence(caught.value)


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("n_parts", [1, 20])
def test_a_task_that_fails_returns_a_mark_and_no_error(person, n_parts, monkeypatch):
    def stumble(choice, part):
        raise ValueError(f"cannot convert {SECRET}")

    assert isinstance(cluster.guarded(stumble, None, None), cluster.Failed)
    monkeypatch.setattr(cluster, "_frame_part", stumble)
    parts = [pd.DataFrame({"id": [1], "x": [1.0]})] * n_parts
    source = read(frame_of(parts, id="int64", x=float), person=person, columns=["x"])
    with pytest.raises(SourceError, match="Dask collection could not be computed") as caught:
        summary(source)
    check_silence(caught.value)
