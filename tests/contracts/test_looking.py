"""The search for canaries itself: it finds them wherever they are put."""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from looking import NUMBER, TEXT, files_written, found_in, found_in_files

from kveil import Ledger


@dataclass
class Model:
    inside: object


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside: object) -> None:
        self.inside = inside


class Hiding(Model):
    """Its attributes are clean, its pickle is not."""

    def __reduce__(self):
        return (float, (NUMBER,))


def closed_over(rows):
    return lambda: rows


def raised_from(text):
    try:
        try:
            raise ValueError(text)
        except ValueError:
            raise KeyError("clean") from None
    except KeyError as error:
        return error


def noted(text):
    ledger = Ledger.memory("one", 1.0, relation="add-remove", rule="pure")
    ledger._book._rows["token"] = [text]
    return ledger


def tabled(text):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE other(x)")
    database.execute("INSERT INTO other VALUES (?)", (text,))
    return database


ROW = np.array([[0.1, NUMBER]])
PLACES = {
    "a float": NUMBER,
    "a float of 32 bits": np.float32(NUMBER),
    "an array": ROW,
    "narrow numbers": ROW.astype(np.float32),
    "a code turned back": ROW + 1e-7,
    "objects": np.array([None, {"x": [NUMBER]}], dtype=object),
    "a sparse matrix": sp.csr_array(ROW),
    "a key": {TEXT: 1},
    "a text in an array": np.array(["a", TEXT]),
    "a message": f"row {NUMBER} is odd",
    "bytes": ROW.tobytes(),
    "an attribute": Model({"a": [Model(ROW)]}),
    "a slot": Slotted(ROW),
    "a closure": closed_over(ROW),
    "a partial": partial(max, NUMBER),
    "a pickle": Hiding(None),
    "a context": raised_from(TEXT),
    "a charge": noted(TEXT),
    "a table": tabled(TEXT),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_canary_is_found(name):
    assert found_in({"held": PLACES[name]})


def test_nothing_is_found_where_nothing_is():
    clean = [part("clean") for part in (Slotted, noted, tabled, raised_from)]
    assert not found_in([Model(np.linspace(0, 1, 1000)), closed_over([0.5]), *clean])


def test_files_that_are_gone_again_are_seen(empty_folder):
    with files_written() as written:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        Path("kept.bin").write_bytes(pickle.dumps(ROW))
        Path("kept.bin").read_bytes()
    gone = [path for path in written if Path(path).parent.resolve() == empty_folder.resolve() and Path(path).name != "kept.bin"]
    assert gone
    assert "kept.bin" in written
    assert [Path(path).name for path in found_in_files(empty_folder)] == ["kept.bin"]
