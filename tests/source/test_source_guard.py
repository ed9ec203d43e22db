"""What rows hold neither raises nor warns, and what a library says about them is told to nobody."""

import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from kveil import PrivacyUnit, PrivateKMeans
from kveil.errors import InvalidValue, NoisyResultWarning, SourceError
from kveil.kernel.grid import Box
from kveil.source import guard, ids, read

SECRET = "87654321"
SIGNALLING, SIGNALLING_32 = 0x7FF0000000000001, 0x7F800001


def stumble(*args, **options):
    raise ValueError(f"cannot convert {SECRET}")


def told(error):
    """Everything an error says, with all that it carries along."""
    return "".join(traceback.format_exception(error)) + repr(error.args)


class Panic(BaseException):
    pass


Panic.__name__ = "PanicException"


@pytest.mark.parametrize("kind", [ValueError, MemoryError, UserWarning, pa.ArrowInvalid, ArithmeticError, Panic])
def test_an_error_loses_its_words_its_context_and_its_cause(kind):
    def fail():
        raise kind(SECRET)

    with pytest.raises(SourceError) as caught:
        guard.quietly(fail)
    assert caught.value.__context__ is None
    assert SECRET not in told(caught.value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, InvalidValue])
def test_our_own_errors_and_requests_to_stop_go_through(kind):
    def stop():
        raise kind("stop")

    with pytest.raises(kind, match="stop"):
        guard.quietly(stop)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("method", ["parts", "blocks"])
def test_a_reader_that_fails_after_the_charge_quotes_nothing(method, person, threads, monkeypatch, grid):
    monkeypatch.setenv("KVEIL_THREADS", threads)
    frame = pd.DataFrame({"a": [1.0], "b": 2.0, "c": 3.0, "id": 4})
    source = read(frame if person else frame[["a", "b", "c"]], person=person)

    def failing_blocks(*args):
        yield from [stumble()]

    setattr(source._reader, method, stumble if method == "parts" else failing_blocks)
    with pytest.raises(SourceError, match="could not be read to the end") as caught:
        source.map_reduce(lambda block, state: (np.zeros(1, dtype=np.int64),), None, grid=grid)
    assert caught.value.__context__ is None
    assert SECRET not in told(caught.value)


def odd_floats():
    """Four rows of three columns, the first an id: whatever a float64 can be."""
    rows = np.array([[1, 0.1, 0.2], [2, np.inf, -np.inf], [3, 1e300, 5e-324], [4, -0.0, 1e-200]])
    rows = np.concatenate([rows, [[np.nan, 0.0, 1.0], [np.inf, 0.0, 1.0], [1e300, 0.0, 1.0], [0.5, np.nan, 0.0]]])
    rows.view(np.uint64)[0, 1] = rows.view(np.uint64)[4, 0] = SIGNALLING
    return rows


def odd_narrow_floats():
    rows = np.array([[0.1, 0.2], [np.inf, 1e-40], [0.5, -0.0]], dtype=np.float32)
    rows.view(np.uint32)[0, 1] = SIGNALLING_32
    return rows


def odd_table(kind):
    values = odd_narrow_floats() if kind == np.float32 else odd_floats()[:, 1:]
    return pa.table({"a": pa.array(values[:, 0]), "b": pa.array(values[:, 1]), "id": np.arange(len(values))})


def odd_source(form, folder):
    if form == "array":
        return read(odd_floats(), person=0)
    if form == "narrow-array":
        return read(odd_narrow_floats())
    if form == "wide-array":
        return read(np.array([[np.longdouble("1e4000"), np.longdouble("1e-4000")], [np.nan, 0.5]]))
    if form == "list":
        return read([[1.5, np.ma.masked], [10**400, None], [np.float32(1e-40), np.longdouble("1e4000")]])
    if form == "sparse":
        return read(sp.csr_array((odd_floats()[:, 1], [0] * 8, [0, 2, 3, 8]), shape=(3, 2)))
    if form == "csv":
        (folder / "t.csv").write_bytes(b'a,b,id\n1,2,x\n1e999,-1e999,\xff\nnan,\x00,z\n5,6\n7,\xfc,1,2\n"8,9,a\n1e-320,,\n')
        return read(folder / "t.csv", person="id")
    if form == "parquet":
        pq.write_table(odd_table(np.float32), folder / "t.parquet")
        return read(folder / "t.parquet", person="id")
    if form == "dask":
        dd = pytest.importorskip("dask.dataframe")
        return read(dd.from_pandas(odd_table(np.float64).to_pandas(), npartitions=2), person="id")
    table = odd_table(np.float32 if form.startswith("narrow") else np.float64)
    return read({"polars": pl.from_arrow(table), "arrow": table, "pandas": table.to_pandas()}[form.split("-")[1]], person="id")


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    "form",
    ["array", "narrow-array", "wide-array", "list", "sparse", "csv", "parquet", "dask"]
    + [f"{width}-{frame}" for width in ("narrow", "wide") for frame in ("polars", "arrow", "pandas")],
)  # fmt: skip
def test_the_whole_private_path_is_silent_whatever_numbers_rows_hold(form, threads, tmp_path, monkeypatch):
    monkeypatch.setenv("KVEIL_THREADS", threads)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        source = odd_source(form, tmp_path)
        model = PrivateKMeans(2, epsilon=1.0, bounds=(-1, 1), n_steps=2, random_state=0).fit(source)
    assert model.cluster_centers_.shape == (2, source.n_columns)
    assert source.unit.kind == ("record" if form in ("narrow-array", "wide-array", "list", "sparse") else "person")
    assert isinstance(source.unit, PrivacyUnit)


def test_ids_of_every_type_become_the_one_type_or_are_missing():
    objects = [7, np.int8(7), 7.0, "7", b"7", 2**63, -1, 2.5, 2.0**53, True, "x", None, pd.NA, (7,), np.nan, np.float32(7)]
    assert ids.from_objects(objects, ids.SIGNED).to_pylist() == [7] * 5 + [None, -1] + [None] * 9
    assert ids.from_objects(objects, ids.UNSIGNED).to_pylist() == [7] * 5 + [2**63] + [None] * 10
    assert ids.from_objects(objects, ids.TEXT).to_pylist() == [None] * 3 + [b"7"] + [None] * 6 + [b"x"] + [None] * 5
    numbers = np.array([2**63, 2**64 - 1, 5], dtype=np.uint64)
    assert ids.from_array(numbers, ids.SIGNED).to_pylist() == [None, None, 5]
    assert ids.from_array(np.array([-1, 2**63 - 1]), ids.UNSIGNED).to_pylist() == [None, 2**63 - 1]
    assert ids.from_array(np.array([7, 8]), ids.TEXT).to_pylist() == [None, None]
    assert ids.from_array(np.array(["7", "x"]), ids.SIGNED).to_pylist() == [7, None]
    assert ids.from_array(np.array(["2020-01-01"], dtype="datetime64[ns]"), ids.SIGNED).to_pylist() == [None]
    assert ids.from_arrow(pa.array([2**63, 5], pa.uint64()), ids.SIGNED).to_pylist() == [None, 5]
    assert ids.from_arrow(pa.array(["7", "x", None]), ids.SIGNED).to_pylist() == [7, None, None]
    assert ids.from_arrow(pa.array([7.0, 2.5, 2.0**60]), ids.SIGNED).to_pylist() == [7, None, None]
    assert ids.from_arrow(pa.array([b"\xff"]).view(pa.string()), ids.TEXT).to_pylist() == [b"\xff"]
    assert ids.from_arrow(pa.chunked_array([], pa.string()), ids.TEXT).type == pa.large_binary()


def over_what_rows_hold(block, state):
    """A question whose floats overflow, and divide by nothing, by what rows hold."""
    found = (1e300 * block.astype(np.float64) ** 200 / (block == block).sum(axis=0) / block).sum()
    return (np.array([block.shape[0], np.isnan(found)], dtype=np.int64),)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("rows", [1, 5000])
def test_settings_of_the_caller_do_not_let_questions_raise(rows, threads, monkeypatch):
    """One part of the blocks is the caller's thread's, which has the caller's settings, and others have none."""
    monkeypatch.setenv("KVEIL_THREADS", threads)
    source = read(np.tile([0.0, 1.0], (rows, 1)), memory="1MiB")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        (told,) = source.map_reduce(over_what_rows_hold, None, grid=Box([-1.0, -1.0], [1.0, 1.0]))
    assert told[0] == rows
