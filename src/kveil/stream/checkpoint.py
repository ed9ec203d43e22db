"""A stream's state in a file: whole or absent, for its owner's eyes only, and read without executing anything.

The state is as secret as the rows: in a private summary a leaf with one row holds that row.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import threading
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import npz
from kveil.errors import SourceError
from kveil.source.guard import quietly

SCHEMA = "kveil.stream/1"

_writing = threading.Lock()


def write(path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Put the state at `path`, in place of an older one if there is: a crash leaves the old file or the new one.

    What a crash left half written under another name, as secret as the state itself, is removed by the next one.
    """
    place = Path(path)
    text = json.dumps({"schema": SCHEMA, **document}, sort_keys=True, allow_nan=False)
    data = npz({"document": np.frombuffer(text.encode(), dtype=np.uint8), **arrays})
    fresh = place.with_name(f".{place.name}.{secrets.token_hex(6)}.new")
    unwritten = f"the state could not be written to {place}. What was there is unchanged; check that the folder may be written."
    with _writing:  # another thread's file is not stale
        try:
            quietly(lambda: _put(fresh, place, data + hashlib.sha256(data).digest()), unwritten)
        finally:
            for left in _unfinished(place):
                with suppress(OSError):
                    left.unlink()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The document and the arrays that `write` put there."""
    place = Path(path)
    data = quietly(place.read_bytes, f"there is no state at {place} that can be read.")
    body, digest = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != digest:
        raise SourceError(complaint(place))
    document, arrays = quietly(lambda: _parsed(body), complaint(place))
    if document.get("schema") != SCHEMA:
        raise SourceError(f"{place} was written by another version of kveil ({SCHEMA} is what this one reads).")
    return document, arrays


def complaint(path: str | os.PathLike[str]) -> str:
    """What is said of a file that holds no state, and not more: its content is secret."""
    return f"{os.fspath(path)} is no state of a stream, or is damaged. Resume from another copy, or start the stream anew."


def _unfinished(place: Path) -> list[Path]:
    """Files that saves of this state did not finish."""
    ours = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{12}}\.new")
    with suppress(OSError):
        return [found for found in place.parent.iterdir() if ours.fullmatch(found.name)]
    return []


def _put(fresh: Path, place: Path, data: bytes) -> None:
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, place)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(place.parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems have no such call
                os.fsync(handle)
        finally:
            os.close(handle)


def _parsed(body: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive, np.load(io.BytesIO(body), allow_pickle=False) as file:
        assert archive.testzip() is None
        arrays = {name: file[name] for name in file.files}
    document = json.loads(bytes(arrays.pop("document")))
    assert isinstance(document, dict)
    return document, arrays
