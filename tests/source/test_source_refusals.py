"""What cannot be read is refused from the schema, in words that quote no row, no row count and no library."""

import datetime
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from kveil.errors import GridOverflow, InvalidType, InvalidValue, KveilError, SourceError
from kveil.kernel.grid import Box
from kveil.source import read

pytestmark = pytest.mark.filterwarnings("error")

SECRET = "87654321"  # stands in every bad table; must stand in no message
N_ROWS = 4391  # nor may the number of rows


def refusal(call, *args, **options):
    """The error of a call, checked to tell nothing about rows, not even on the errors it may carry along."""
    with pytest.raises(KveilError) as caught:
        call(*args, **options)
    error = caught.value
    assert error.__context__ is None
    assert error.__cause__ is None
    assert SECRET not in str(error)
    assert str(N_ROWS) not in str(error)
    assert ". " in str(error), "a sentence for what is wrong and one for what to do"
    return error


def column(value, n_rows=N_ROWS):
    return [value] * n_rows


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (np.full(N_ROWS, 87654321.0), InvalidValue, "Expected 2D array, got 1D array instead"),
        (pd.Series(column(87654321.0)), InvalidValue, "Reshape your data"),
        (pl.Series(column(87654321.0)), InvalidValue, "Reshape your data"),
        (np.float64(87654321), InvalidValue, "Expected 2D array, got scalar array instead"),
        (np.full((N_ROWS, 2, 2), 87654321.0), InvalidValue, "got 3D array instead"),
        (np.empty((N_ROWS, 0)), InvalidValue, r"0 feature\(s\).*while a minimum of 1 is required"),
        (pd.DataFrame(index=range(N_ROWS)), InvalidValue, r"0 feature\(s\).*while a minimum of 1 is required"),
        (sp.csr_array((N_ROWS, 0)), InvalidValue, r"0 feature\(s\).*while a minimum of 1 is required"),
        (np.full((N_ROWS, 2), 87654321j), InvalidValue, "Complex data not supported"),
        (sp.csr_array(np.full((N_ROWS, 2), 87654321j)), InvalidValue, "Complex data not supported"),
        (pd.DataFrame({"a": column(87654321j)}), InvalidValue, "Complex data not supported"),
        (np.array([[87654321j, 1.0]], dtype=object), InvalidValue, "Complex data not supported"),
        (np.full((N_ROWS, 2), SECRET), InvalidType, "argument must be .* string.* number"),
        ([[SECRET, 1.0]], InvalidType, "argument must be .* string.* number"),
        (np.full((N_ROWS, 2), SECRET, dtype=object), InvalidType, "argument must be .* string.* number"),
        (np.array([[{"foo": SECRET}, 1.0]], dtype=object), InvalidType, "argument must be .* string.* number"),
        (np.full((N_ROWS, 2), "2020-01-01", dtype="datetime64[D]"), InvalidType, "datetime64"),
        (np.zeros(N_ROWS, dtype=[("a", float)]), InvalidType, "pass a frame"),
        ([[1.0, 2.0], [87654321.0]], SourceError, "same length"),
        (pd.DataFrame({"a": column(1.0), "town": column(SECRET)}), SourceError, r'"town".*columns=\['),
        (pd.DataFrame({"a": column(1.0), "day": column(datetime.datetime(2020, 1, 1))}), SourceError, '"day"'),
        (pd.DataFrame({"a": column(1.0), "mix": column([1, SECRET])}), SourceError, '"mix"'),
        (pl.DataFrame({"a": column(1.0), "list": column([1, 2])}), SourceError, '"list"'),
        (pa.table({"a": column(1.0), "town": column(SECRET)}), SourceError, '"town"'),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), SourceError, "names"),
        (pl.LazyFrame({"a": [1.0]}), InvalidType, "Collect"),
        ((row for row in [[1.0]]), InvalidType, "generator"),
        ({"a": [1.0]}, InvalidType, "dict"),
        (None, InvalidType, "NoneType"),
        (3.0, InvalidType, "float"),
        ("87,65,43,21", SourceError, "no file"),
    ],
)
def test_bad_tables_are_refused_by_their_schema(data, kind, text):
    error = refusal(read, data)
    assert isinstance(error, kind)
    assert re.search(text, str(error)), str(error)


def test_bad_dask_collections_are_refused_by_their_schema():
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame({"a": column(1.0), "town": column(SECRET)}), npartitions=2)
    assert '"town"' in str(refusal(read, frame))
    assert "Reshape" in str(refusal(read, frame["a"]))
    assert "Reshape" in str(refusal(read, da.zeros(N_ROWS)))
    assert "Complex" in str(refusal(read, da.zeros((N_ROWS, 2), dtype=complex)))
    assert isinstance(refusal(read, da.from_array(np.full((9, 2), SECRET, dtype=object), chunks=(3, 2))), InvalidType)
    assert isinstance(refusal(read, db.from_sequence([1])), InvalidType)


def test_unknown_and_repeated_columns_are_named_with_those_there_are():
    frame = pd.DataFrame({"age": [87654321.0], "height": [1.0]})
    for options in ({"columns": ["agee"]}, {"person": "id"}):
        assert '"age", "height"' in str(refusal(read, frame, **options))
    assert '"age", "height"' in str(refusal(read, frame, columns=["age", "age"]))
    assert "0, 1" in str(refusal(read, frame.to_numpy(), columns=[2]))
    assert "cannot be a feature" in str(refusal(read, frame, columns=["age", "height"], person="height"))
    assert "0 feature(s)" in str(refusal(read, frame, columns=[]))
    assert isinstance(refusal(read, frame, columns="age"), InvalidType)
    assert isinstance(refusal(read, frame, columns=[1.5]), InvalidType)


def test_columns_are_used_in_the_order_asked_for(form_of, table, form):
    if form in ("numpy", "fortran", "lists", "memmap", "float32", "npy", "npz", "dask-array", "dask-columns"):
        source = read(form_of(form, table(30)), columns=[2, 0])
        assert source.names is None
    else:
        source = read(form_of(form, table(30)), columns=["weight", "age"])
        assert source.names == ("weight", "age")
    assert source.n_columns == 2
    np.testing.assert_array_equal(np.concatenate(list(source.raw_blocks())), table(30)[:, [2, 0]])


def test_a_frame_with_numbered_columns_has_no_names():
    source = read(pd.DataFrame(np.eye(3)), columns=[2, 1])
    assert source.names is None
    assert next(source.raw_blocks()).tolist() == [[0, 0], [0, 1], [1, 0]]


class TestFiles:
    @pytest.mark.parametrize("name", ["t.parquet", "t.npy", "t.npz"])
    @pytest.mark.parametrize("wrap", [b"", b"PAR1", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
    @pytest.mark.parametrize("n", [0, 100])
    def test_files_that_are_not_what_they_say_are_refused(self, name, wrap, n, tmp_path):
        content = wrap + SECRET.encode() * n + wrap
        (tmp_path / name).write_bytes(content)
        assert isinstance(refusal(read, tmp_path / name), SourceError)

    @pytest.mark.parametrize("form", ["parquet", "npy", "npz"])
    def test_truncated_files_are_refused(self, form, form_of, table, summary):
        path = Path(form_of(form, table(2000)))
        content = path.read_bytes()
        for length in (20, len(content) // 2, len(content) - 30):
            path.write_bytes(content[:length])
            assert isinstance(refusal(lambda: summary(read(path))), SourceError)

    def test_a_parquet_file_damaged_inside_is_refused_when_it_is_read(self, form_of, table, summary):
        path = form_of("parquet", table(5000))
        content = bytearray(path.read_bytes())
        content[4:2000] = b"\xff" * 1996
        path.write_bytes(content)
        assert "damaged" in str(refusal(summary, read(path)))

    def test_a_damaged_archive_is_refused_when_it_is_read(self, form_of, table, summary):
        path = Path(form_of("npz", table(5000)))
        content = bytearray(path.read_bytes())
        content[400:3000] = b"\xff" * 2600
        path.write_bytes(content)
        assert isinstance(refusal(lambda: summary(read(path))), SourceError)

    def test_folders_without_parquet_files_or_with_different_columns_are_refused(self, tmp_path):
        assert "no .parquet files" in str(refusal(read, tmp_path))
        pq.write_table(pa.table({"a": [87654321.0]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"b": [87654321.0]}), tmp_path / "2.parquet")
        assert "different columns" in str(refusal(read, tmp_path))
        pq.write_table(pa.table({"a": [SECRET]}), tmp_path / "2.parquet")
        assert '"a" (string)' in str(refusal(read, tmp_path))

    def test_archives_without_x_and_pickled_arrays_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", rows=np.ones((2, 2)))
        assert "rows" in str(refusal(read, tmp_path / "a.npz"))
        for name, save in (("b.npz", lambda path, x: np.savez(path, x=x)), ("b.npy", np.save)):
            save(tmp_path / name, np.array([[SECRET, 1.0]], dtype=object))
            assert "pickle" in str(refusal(read, tmp_path / name))

    def test_unknown_kinds_of_files_are_refused(self, tmp_path):
        (tmp_path / "t.xlsx").write_bytes(b"87654321")
        assert ".parquet" in str(refusal(read, tmp_path / "t.xlsx"))
        assert isinstance(refusal(read, b"t.csv"), InvalidType)

    def test_parquet_takes_every_type_of_number_and_ignores_a_stored_index(self, tmp_path, summary, expected):
        from decimal import Decimal

        types = [pa.float16(), pa.decimal128(10, 2), pa.bool_()]
        values = [np.array([1, 2], dtype=np.float16), [Decimal("1.25"), None], [True, None]]
        columns = {f"c{place}": pa.array(v, t) for place, (v, t) in enumerate(zip(values, types, strict=True))}
        pq.write_table(pa.table({**columns, "__index_level_0__": ["a", "b"]}), tmp_path / "t.parquet")
        source = read(tmp_path / "t.parquet")
        assert source.names == ("c0", "c1", "c2")
        assert summary(source) == expected(np.array([[1.0, 1.25, 1.0], [2.0, np.nan, np.nan]]))


@pytest.mark.parametrize("form", ["pyarrow", "polars", "pandas", "parquet"])
def test_integers_beyond_float64_are_rounded_and_not_quoted(form, tmp_path):
    frame = {"big": pa.array([2**63 - 1, None, 2**53 + 1], pa.int64()), "huge": pa.array([2**64 - 1, 1, None], pa.uint64())}
    table = pa.table(frame)
    pq.write_table(table, tmp_path / "t.parquet")
    data = {"pyarrow": table, "polars": pl.from_arrow(table), "parquet": tmp_path / "t.parquet"}.get(form)
    data = table.to_pandas(types_mapper=pd.ArrowDtype) if data is None else data
    rows = np.concatenate(list(read(data).raw_blocks()))
    np.testing.assert_array_equal(rows, [[2.0**63, 2.0**64], [np.nan, 1], [2.0**53, np.nan]])


def test_a_domain_of_the_wrong_size_is_refused_before_a_row_is_read(grid):
    source = read(np.full((N_ROWS, 2), 87654321.0))
    source._reader.blocks = None  # reading would fail otherwise
    assert "3 feature(s) and the data has 2" in str(refusal(source.map_reduce, None, None, grid=grid))


def test_an_overflow_is_refused_before_a_row_is_read():
    source = read(np.full((N_ROWS, 1), 1.0), max_rows=2**60)
    source._reader.blocks = None
    with pytest.raises(GridOverflow):
        source.map_reduce(None, None, grid=Box([-1.0], [1.0]))


def test_sparse_rows_on_a_domain_off_zero_are_refused_before_a_row_is_read():
    source = read(sp.csr_array(np.eye(3)))
    source._reader.blocks = None
    with pytest.raises(InvalidValue, match="centred at 0"):
        source.map_reduce(None, None, grid=Box([0.0] * 3, [1.0] * 3))


def test_read_looks_at_no_rows(tmp_path):
    class Guarded(np.ndarray):
        def __getitem__(self, key):
            raise AssertionError("rows were read")

    read(np.ones((4, 2)).view(Guarded))
    source = read(np.ones((4, 2)))
    assert "_parts" not in vars(source)


def test_a_stream_of_arrow_is_refused_with_what_makes_a_table_of_it():
    """`connection.sql(...).arrow()` of DuckDB is one, and a fit reads its rows several times."""
    stream = pa.table({"x": [float(SECRET)]}).to_reader()
    assert str(refusal(read, stream)).endswith("It has .read_all(): pass what that returns.")
