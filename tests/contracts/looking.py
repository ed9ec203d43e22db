"""Canaries: marked numbers and marked text, and a search for them in everything that a caller can reach."""

from __future__ import annotations

import functools
import os
import pickle
import sqlite3
import struct
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

NUMBER, TEXT = 0.7391846, "qzx7391846"
NEAR = 2e-7  # a step of the finest grid: a code that was turned back into a number is this near
BYTES = (TEXT.encode(), b"7391846", *(struct.pack(form, NUMBER) for form in ("<d", ">d", "<f", ">f")))
DIGITS = "7391846"


def found_in(thing: Any, name: str = "") -> list[str]:
    """Where in an object, or in anything that it holds or refers to, a canary is; its pickle is searched too."""
    found = [where for where, value in _walk(thing, name, set()) if _is_marked(value)]
    try:
        pickled = pickle.dumps(thing)
    except Exception:  # a budget is never pickled, and a function of a test cannot be
        return found
    return [*found, *([f"{name}: its pickle"] if _is_marked(pickled) else [])]


def found_in_files(folder: Path) -> list[str]:
    """Files with a canary in them."""
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and _is_marked(path.read_bytes())]


@contextmanager
def files_written() -> Iterator[list[str]]:
    """Every file that is opened for writing, those that are gone again at the end too; libraries' own caches are left out."""
    written: list[str] = []
    _watching.append(written)
    try:
        yield written
    finally:
        _watching.remove(written)


def _is_marked(value: Any) -> bool:
    if isinstance(value, bytes | bytearray):
        return any(mark in value for mark in BYTES)
    if isinstance(value, str):
        return TEXT in value or DIGITS in value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            return bool((np.abs(value - NUMBER) < NEAR).any())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "SU" and any(_is_marked(text) for text in value.ravel().tolist())
    return isinstance(value, float | np.floating) and abs(float(value) - NUMBER) < NEAR


def _walk(value: Any, where: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(value) in seen or isinstance(value, type | types.ModuleType):
        return
    seen.add(id(value))
    yield where, value
    for name, inside in _inside(value):
        yield from _walk(inside, f"{where}.{name}", seen)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds. Functions hold what they close over, and a database what is in its tables."""
    if isinstance(value, dict):
        yield from (
            (f"[{key!r}]"[:40], item) for pair in value.items() for key, item in zip((pair[0], pair[0]), pair, strict=True)
        )
    elif isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.dtype == object):
        yield from ((f"[{place}]", item) for place, item in enumerate(value.ravel() if isinstance(value, np.ndarray) else value))
    elif sp.issparse(value):
        yield "data", value.data
    elif isinstance(value, sqlite3.Connection):
        yield "tables", "\n".join(value.iterdump())
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.FunctionType):
        yield from (
            (f"<{name}>", cell.cell_contents)
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        )
        yield "defaults", value.__defaults__
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
    elif isinstance(value, BaseException):
        yield from (("args", value.args), ("cause", value.__cause__), ("context", value.__context__), ("text", str(value)))
    elif not isinstance(value, np.ndarray | np.generic):
        yield from vars(value).items() if hasattr(value, "__dict__") else ()
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        yield from ((name, getattr(value, name)) for name in slots if isinstance(name, str) and hasattr(value, name))


_watching: list[list[str]] = []
CACHES = (".nbi", ".nbc", ".pyc")  # of compilers
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _note(event: str, details: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event == "open" and isinstance(details[2], int) and details[2] & WRITES:
        path = os.fsdecode(details[0]) if isinstance(details[0], str | bytes) else ""
        if path and "__pycache__" not in path and not path.endswith(CACHES) and not path.startswith("/dev/"):
            for written in _watching:
                written.append(path)
    elif event == "sqlite3.connect" and os.fsdecode(details[0]) != ":memory:":
        for written in _watching:
            written.append(os.fsdecode(details[0]))


sys.addaudithook(_note)
