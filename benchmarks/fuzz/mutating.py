"""Good bytes, spoilt: at random places, and at places that a parser gets to, inside JSON, archives and SQLite files."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from numpy.lib import format as npy

WORDS = (
    b"", b"\x00", b"\xff", b"\r", b"\n", b'"', b",", b"{}", b"[]", b"null", b"NaN", b"-1", b"0", b"1e999", b"9" * 400, b"\\ud800",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"(0,)", b"(1 << 40, 9)", b"'|O'", b"'<f8'", b"PK\x03\x04", b"PAR1", b"true", b"[" * 2000,
    (2**31).to_bytes(4, "little"), (2**63 - 1).to_bytes(8, "little"), b"\x7f\xff\xff\xff", b"\xff" * 8,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324, float("inf"), float("nan"), "",
    "0", "-1", "1/3", "1/0", "a" * 5000, "\x00", "\ud800", "é", "../../x", "true", "2030-02-30",
    [], {}, [[]], [0], [None], {"a": 1}, [[0] * 50] * 50,
)  # fmt: skip
LONGEST = 2**20


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to four things wrong, the form of what it is mostly kept."""
    if rng.random() < 0.6:
        for start, spoil in FORMS.items():
            if data.startswith(start):
                data = spoil(data, rng)
                break
        else:
            data = _bytes(data, rng)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        data = _bytes(data, rng)
    return data[:LONGEST]


def _bytes(data: bytes, rng: random.Random) -> bytes:
    at, room = rng.randint(0, len(data)), rng.choice((1, 1, 2, 4, 8, 64))
    kind = rng.randrange(7)
    if kind == 0:
        return data[:at] + rng.choice(WORDS) + data[at:]
    if kind == 1:
        return data[:at] + rng.choice(WORDS) + data[at + room :]
    if kind == 2:
        return data[:at] + data[at + room :]
    if kind == 3:
        return data[:at]
    if kind == 4:  # a piece of it again, elsewhere
        start = rng.randint(0, len(data))
        return data[:at] + data[start : start + room * 8] + data[at:]
    if kind == 5:
        return data[:at] + rng.randbytes(room) + data[at + room :]
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :] if at < len(data) else data


def _json(data: bytes, rng: random.Random) -> bytes:
    """One value of a document replaced, renamed, left out or copied; written as canonical JSON again."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(document))
        if not places:
            break
        inside, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            inside.pop(key)
        elif kind == 1 and isinstance(inside, dict):
            inside[rng.choice(("", "x", "v", "schema", str(key) + "0"))] = inside.pop(key)
        elif kind == 2:
            other, name = rng.choice(places)
            is_there = name in other if isinstance(other, dict) else name < len(other)
            inside[key] = deepcopy(other[name]) if is_there else None  # a copy: no document holds itself
        elif kind == 3 and type(inside[key]) in (int, float) and abs(inside[key]) < 1e300:
            inside[key] = rng.choice((-inside[key], inside[key] + 1, inside[key] * 1000, str(inside[key]), float(inside[key])))
        else:
            inside[key] = deepcopy(rng.choice(VALUES))
    try:
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    except RecursionError:
        return _bytes(data, rng)


def _places(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict | list) and depth < 30:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key], depth + 1)


def _archive(data: bytes, rng: random.Random) -> bytes:
    """One member spoilt, left out, renamed or twice there; sums and directory are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # it was spoilt before
        return _bytes(data, rng)
    place = rng.randrange(len(members)) if members else 0
    kind = rng.randrange(6)
    if not members or kind == 0:
        members.insert(place, (rng.choice(("x.npy", "../x.npy", "extra.npy", ".")), rng.choice(WORDS)))
    elif kind == 1:
        members.pop(place)
    elif kind == 2:
        members[place] = (rng.choice(("x.npy", ".", "y", members[0][0])), members[place][1])
    else:
        name, held = members[place]
        members[place] = (name, _array(held, rng))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, held in members:
            if name not in archive.namelist():
                archive.writestr(zipfile.ZipInfo(name), held)  # without the time
    return sink.getvalue()


def _array(data: bytes, rng: random.Random) -> bytes:
    """A .npy file with another type, shape or order than its numbers have, or with spoilt bytes."""
    try:
        file = io.BytesIO(data)
        npy.read_magic(file)
        shape, order, dtype = npy.read_array_header_1_0(file)
        numbers = file.read()
    except Exception:  # it was spoilt before
        return _bytes(data, rng)
    shapes = ((), (0,), (0, 0), (1, 0), (2**40, 2), (2**62, 2**62), (3, 2, 1), (*shape, 1), shape[:-1], shape[::-1], (-1, 2))
    dtypes = ("<f8", ">f8", "<i8", "|b1", "<f4", "<f2", "|S7", "<U3", "<c16", "<M8[D]", "|V8", "|u1", "|O")
    header = {"shape": shape, "fortran_order": order, "descr": npy.dtype_to_descr(dtype)}
    kind = rng.randrange(4)
    if kind == 0:
        header["shape"] = rng.choice(shapes)
    elif kind == 1:
        header["descr"] = rng.choice(dtypes)
    elif kind == 2:
        numbers = _bytes(numbers, rng)
    else:
        header["fortran_order"] = rng.choice((not order, None, 1))
    sink = io.BytesIO()
    npy.write_array_header_1_0(sink, header)  # type: ignore[no-untyped-call]
    return sink.getvalue() + numbers


def _database(data: bytes, rng: random.Random) -> bytes:
    """A SQLite file in which one cell, one row or one table is not what it was, with or without its triggers."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        db.deserialize(_unlogged(data))
        made = db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
        tables = [name for kind, name, _ in made if kind == "table"]
        triggers = [(name, sql) for kind, name, sql in made if kind == "trigger"]
        for name, _ in triggers:
            db.execute(f'DROP TRIGGER "{name}"')
        table = rng.choice(tables)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        kind = rng.randrange(8)
        if kind == 0:
            db.execute(f'DELETE FROM "{table}" WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {rng.randrange(3)})')
        elif kind == 1:
            db.execute(f'DROP TABLE "{table}"')
        elif kind == 2:
            db.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{rng.choice(columns)}" TO "other"')
        else:
            value = rng.choice(VALUES)
            value = json.dumps(value) if isinstance(value, list | dict) else value
            value = value.encode() if isinstance(value, str) and value.isascii() and rng.random() < 0.2 else value
            db.execute("PRAGMA ignore_check_constraints=1")
            db.execute(f'UPDATE OR IGNORE "{table}" SET "{rng.choice(columns)}"=?', (value,))
        for _, sql in triggers if rng.random() < 0.5 else ():
            db.execute(sql)
        return bytes(db.serialize())
    except (sqlite3.Error, OverflowError, UnicodeError, IndexError):
        return _bytes(data, rng)
    finally:
        db.close()


def _unlogged(data: bytes) -> bytes:
    """The file without its mark of a write-ahead log, which memory cannot have."""
    return data[:18] + b"\x01\x01" + data[20:]


FORMS: dict[bytes, Callable[[bytes, random.Random], bytes]] = {
    b"{": _json,
    b"PK": _archive,
    b"\x93NUMPY": _array,
    b"SQLite format 3\x00": _database,
}
