"""Tables and graphs on disk."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from benchmarks.fuzz.reading import Reader, if_allowed
from kveil import Graph, inspect, read
from kveil.kernel.grid import Box

ROWS = np.array([[0.5, -1.0], [2.5, 3.0], [0.25, 0.5], [np.nan, 1.0], [1e308, -5e-324]])
HEADER = b"who,age,height,sex\n"
LINES = b'7,0.5,1,f\n8, 2.5 ,-3,"m"\r\n8,nan,,"f,x"\n9,"1""2",0x1p3,\xff\n,1_0,1e400,f\n'
EDGES = np.array([[0, 1], [1, 2]])
MOST = 64  # columns, and a thousand vertices: more only takes longer


def readers(folder: Path) -> Iterator[tuple[str, Reader]]:
    """By name; files are written to `folder`."""
    yield (
        "csv",
        Reader((HEADER + LINES, b"\xef\xbb\xbfage,height\n1,2\n", b'"a b",c\n"1",2\n'), Table(folder / "t.csv"), share=0.5),
    )
    yield "csv rows", Reader((LINES, b'"' + LINES), Rows(folder / "r.csv"), refuses=False, share=0.25)
    yield (
        "csv.gz",
        Reader((gzip.compress(HEADER + LINES), gzip.compress(HEADER) + gzip.compress(LINES)), Table(folder / "t.csv.gz")),
    )
    yield (
        "tsv",
        Reader(tuple(text.replace(b",", b"\t") for text in (HEADER + LINES, b"a,b\n1,2\n")), Table(folder / "t.tsv"), share=0.5),
    )
    yield "feather", Reader(tuple(feathers()), Feather(folder / "t.feather"))
    yield "npy", Reader(tuple(map(npy, (ROWS, ROWS[:3].astype(np.int32), ROWS.T))), Table(folder / "t.npy"))
    yield "npz", Reader((npz(x=ROWS), npz(x=ROWS[:0], y=ROWS)), Table(folder / "t.npz"))
    yield "parquet", Reader(tuple(parquets()), Table(folder / "t.parquet"))
    yield (
        "edges",
        Reader((b"0 1 2.5\n1 2 0.5 # a lane\n2 0 1\n", b"a\tb\nb\tc\n", b"3,4,1e3\n"), Edges(folder / "g.txt"), share=2),
    )
    yield "edges npz", Reader((npz(edges=EDGES, w=np.ones(2), n=np.array(3)), npz(edges=EDGES)), Edges(folder / "g.npz"))

    yield (
        "places of vertices",
        Reader((b"0 1 2\n1 0.5 -3 # a lane\n2,0,1e3\n", b"2\t1\t1\n0\t0\t0\n1\t4\t4\n"), Spots(folder / "xy.txt")),
    )
    yield (
        "places npz",
        Reader(
            (npz(edges=EDGES, xy=np.ones((3, 2))), npz(edges=EDGES, xy=np.zeros((3, 2)), n=np.array(3))), Edges(folder / "p.npz")
        ),
    )


class Table:
    """A whole file, read as a fit reads it, and openly."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, data: bytes) -> None:
        self.path.write_bytes(data)
        drain(read(self.path))
        inspect(self.path)


class Rows(Table):
    """The rows of a file whose header is sound: whatever they hold, nothing is refused."""

    def __call__(self, data: bytes) -> None:
        self.path.write_bytes(HEADER + data)
        drain(read(self.path, columns=["age", "height"], missing="drop"))
        people = {"person": "who", "max_rows_per_person": 2, "columns": ["age", "sex"], "categories": {"sex": ("f", "m")}}
        drain(read(self.path, **people))


class Feather(Table):
    """With ids, which are text: what a damaged file says of it must not be followed anywhere."""

    def __call__(self, data: bytes) -> None:
        self.path.write_bytes(data)
        if_allowed(lambda: drain(read(self.path, person="who", max_rows_per_person=2)))
        drain(read(self.path, columns=["age", "n"]))


class Edges(Table):
    def __call__(self, data: bytes) -> None:
        self.path.write_bytes(data)
        graph = Graph.read(self.path)
        graph.find(["0", "a", "no such"])
        if graph.n_points <= 1000:
            graph.distances([0])


class Spots(Table):
    def __call__(self, data: bytes) -> None:
        self.path.write_bytes(data)
        roads = self.path.with_suffix(".edges")
        roads.write_text("0 1\n1 2\n")
        Graph.read(roads, xy=self.path).snap([[0.0, 1.0], [float("nan"), 2.0]])


def drain(source: Any) -> None:
    n = source.n_columns
    if n <= MOST:
        source.map_reduce(_sums, None, grid=Box(np.full(n, -1.0), np.full(n, 1.0)))


def _sums(block: Any, state: Any) -> tuple[Any, ...]:
    return (np.asarray(block, dtype=np.int64).sum(axis=0),)


def npy(rows: Any) -> bytes:
    sink = io.BytesIO()
    np.save(sink, rows)
    return sink.getvalue()


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def feathers() -> Iterator[bytes]:
    who = pa.array(["a", "b", "b", None, "c"])
    table = pa.table({"age": pa.array(ROWS[:, 0]), "n": pa.array([1, None, 3, 4, 2**40]), "who": who})
    for options in ({"compression": "uncompressed"}, {"compression": "lz4", "chunksize": 2}):
        sink = io.BytesIO()
        feather.write_feather(table, sink, **options)
        yield sink.getvalue()


def parquets() -> Iterator[bytes]:
    table = pa.table({"age": pa.array(ROWS[:, 0]), "n": pa.array([1, None, 3, 4, 2**40])})
    for options in ({"compression": "none"}, {"compression": "snappy", "use_dictionary": False, "row_group_size": 2}):
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        yield sink.getvalue()
