"""What is raised, warned or logged about rows that cannot be used: no word of them, in no part of an exception."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from looking import NUMBER, TEXT, found_in

from kveil import Ledger, PrivateKMeans, find_bounds
from kveil.errors import BoundsNotFound, KveilError
from kveil.federate import Party, Policy


def a_file(name: str, data: bytes) -> str:
    Path(name).write_bytes(data)
    return name


def damaged_parquet() -> str:
    pq.write_table(pa.table({"age": [NUMBER] * 500, "who": [TEXT] * 500}), "good.parquet", compression="none")
    data = bytearray(Path("good.parquet").read_bytes())
    data[8:40] = b"\xff" * 32
    return a_file("bad.parquet", bytes(data))


class Odd:
    """An object that tells what it holds."""

    def __repr__(self) -> str:
        return TEXT

    def __float__(self) -> float:
        raise ValueError(TEXT)


FITS: dict[str, Any] = {
    "a csv without header": lambda: a_file("rows.csv", f"{NUMBER},{TEXT}\n1,2\n".encode()),
    "a csv that is no text": lambda: a_file("rows.csv", b"\xff\xfe" + TEXT.encode("utf-16-le")),
    "a damaged parquet file": damaged_parquet,
    "a damaged npz file": lambda: a_file("rows.npz", b"PK\x03\x04" + TEXT.encode() * 9),
    "a column of text": lambda: pd.DataFrame({"age": [NUMBER], "who": [TEXT]}),
    "an array of text": lambda: np.array([[TEXT, "x"]]),
    "objects": lambda: np.array([[NUMBER, Odd()]], dtype=object),
    "rows of different length": lambda: [[NUMBER, 1.0], [NUMBER]],
    "one row as a list": lambda: [NUMBER, NUMBER],
    "complex numbers": lambda: np.array([[NUMBER + 1j]]),
    "no table": lambda: Odd(),
}


@pytest.mark.parametrize("name", FITS)
def test_a_refusal_quotes_no_row(name, caplog):
    rows = FITS[name]()
    ledger = Ledger.memory("one", 1.0, relation="add-remove")
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(KveilError) as refused:
            PrivateKMeans(2, epsilon=1.0, bounds=(-1, 1), ledger=ledger).fit(rows)
    assert not found_in(refused.value, "error")
    assert not found_in([caplog.text, *(str(one.message) for one in warned)], "said")


def test_a_search_that_fails_quotes_no_row():
    with pytest.raises(BoundsNotFound) as refused:
        find_bounds([[NUMBER]], 1e-6, ledger=Ledger.memory("one", 1.0, relation="add-remove"))
    assert not found_in(refused.value, "error")


def test_a_party_that_stumbles_over_its_rows_says_nothing(caplog):
    """The rows are gone when they are asked for: the reply is silence, and the log has the kind of error alone."""
    from benchmarks.fuzz.wire import run_through

    frame = pd.DataFrame({"age": [NUMBER] * 9, "height": [0.5] * 9})
    frame.to_parquet(TEXT + ".parquet")
    party = Party(TEXT + ".parquet", bounds=(-1, 1), name="a", policy=Policy(epsilon_per_run=40.0))
    Path(TEXT + ".parquet").write_bytes(TEXT.encode())
    with caplog.at_level(logging.DEBUG, "kveil"), pytest.raises(KveilError) as refused:
        run_through(party)
    assert not found_in(refused.value, "error")
    assert "an answer failed" in caplog.text
    assert not found_in(caplog.text, "log")
