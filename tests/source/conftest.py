"""One small table in every form it can come in, and the summary that all of them must give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from kveil.kernel.grid import Box

NAMES = ["age", "height", "weight"]
FORMS = [
    "numpy", "fortran", "lists", "memmap", "float32", "pandas", "pandas-nullable", "polars", "pyarrow", "record-batch",
    "csv", "csv.gz", "tsv", "feather", "files", "npy", "npz", "parquet", "folder", "dask-array", "dask-columns", "dask-frame",
]  # fmt: skip


def sums_and_count(block, state):
    """Column sums, sums of squares and the number of rows of a dense block of codes."""
    wide = block.astype(np.int64)
    return wide.sum(axis=0), (wide * wide).sum(axis=0), np.array([len(block)])


def largest(block, state):
    return (np.concatenate([block.astype(np.int64), np.full((1, block.shape[1]), -(2**40))]).max(axis=0),)


def make_table(n_rows, seed=0):
    """Rows that are exact in float32, with everything that must not raise: NaN, infinity, huge and far values."""
    rows = np.random.default_rng(seed).normal(size=(n_rows, 3)).astype(np.float32).astype(np.float64)
    for place, value in [(3, np.nan), (5, np.inf), (7, -np.inf), (11, 2.0**120), (13, -(2.0**120)), (17, 50.0), (19, -0.0)]:
        if place < n_rows:
            rows[place, place % 3] = value
    return rows


def in_form(form, rows, folder, pieces=3):
    """`rows` as `form`, in so many pieces where the form has pieces."""
    frame = pd.DataFrame(rows, columns=NAMES)
    table = pa.table({name: rows[:, place] for place, name in enumerate(NAMES)})
    chunk = max(1, -(-len(rows) // pieces))
    if form == "numpy":
        return rows
    if form == "fortran":
        return np.asfortranarray(rows)
    if form == "lists":
        return rows.tolist() or np.empty((0, 3))
    if form == "float32":
        return rows.astype(np.float32)
    if form == "pandas":
        return frame
    if form == "pandas-nullable":
        return frame.astype({name: pd.Float64Dtype() for name in NAMES})
    if form == "polars":
        return pl.from_arrow(table)
    if form == "pyarrow":
        return table
    if form == "record-batch":
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], names=NAMES)
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if form in ("csv.gz", "tsv"):
        frame.to_csv(folder / f"t.{form}", index=False, sep="\t" if form == "tsv" else ",")
        return folder / f"t.{form}"
    if form == "feather":
        feather.write_feather(table, folder / "t.feather", chunksize=chunk)
        return folder / "t.feather"
    if form == "files":
        for number, start in enumerate(range(0, max(1, len(rows)), chunk)):
            frame[start : start + chunk].to_csv(folder / f"{number:03}.csv", index=False)
        return str(folder / "???.csv")
    if form in ("npy", "memmap"):
        np.save(folder / "t.npy", rows)
        return folder / "t.npy" if form == "npy" or not len(rows) else np.load(folder / "t.npy", mmap_mode="r")
    if form == "npz":
        np.savez_compressed(folder / "t.npz", x=rows, y=np.zeros(2))
        return str(folder / "t.npz")
    if form == "parquet":
        pq.write_table(table, folder / "t.parquet", row_group_size=chunk)
        return folder / "t.parquet"
    if form == "folder":
        (folder / "t").mkdir()
        for number, start in enumerate(range(0, max(1, len(rows)), chunk)):
            pq.write_table(table.slice(start, chunk), folder / "t" / f"{number:03}.parquet")
        return folder / "t"
    return in_dask(form, rows, frame, chunk, pieces)


def in_dask(form, rows, frame, chunk, pieces):
    import dask.array as da
    import dask.dataframe as dd

    if form == "dask-frame":
        return dd.from_pandas(frame, npartitions=pieces)
    return da.from_array(rows, chunks=(chunk, 3 if form == "dask-array" else 2))


@pytest.fixture
def grid():
    return Box([-3.0, -3.0, -4.0], [3.0, 3.0, 4.0])


@pytest.fixture
def table():
    return make_table


@pytest.fixture
def form_of(tmp_path):
    return lambda form, rows, pieces=3: in_form(form, rows, tmp_path, pieces)


@pytest.fixture
def summary(grid):
    """The summary of a source, as lists, so that it can be compared with ==."""
    return lambda source, domain=None: [a.tolist() for a in source.map_reduce(sums_and_count, None, grid=domain or grid)]


@pytest.fixture
def expected(grid):
    """What every source must say about these rows."""
    return lambda rows, domain=None: [a.tolist() for a in sums_and_count((domain or grid).encode(rows), None)]


@pytest.fixture
def columnwise_largest():
    return largest


@pytest.fixture(params=FORMS)
def form(request):
    return request.param
