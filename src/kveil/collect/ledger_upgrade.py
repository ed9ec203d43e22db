"""Ledgers of version 1, which had no hashes and booked a campaign on its first row: read once, and written anew as version 2."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from kveil.collect.seals import FIXED, VERSION, Seals

OLD = "campaign, round, mode, eps_num, eps_den, manifest_hash, report_blob, day, send_at, secure"
TYPES = (str, str, int, str, int, int, str, bytes, str, str, int, str)


class Old(NamedTuple):
    """All rows of a file of version 1."""

    devices: list[Any]
    spends: list[Any]
    changes: list[Any]


def take_out(db: sqlite3.Connection) -> Old:
    """Read the rows and drop the tables, within the caller's transaction. ValueError: they are not what version 1 wrote."""
    devices = db.execute("SELECT name, version, secret, quiet_until FROM device ORDER BY rowid").fetchall()
    spends = db.execute(f"SELECT device, {OLD}, state FROM spend ORDER BY id").fetchall()
    changes = db.execute("SELECT device, serial, old, new FROM rotation ORDER BY serial, old").fetchall()
    names = {name for name, *_ in devices}
    _need({version for _, version, *_ in devices} <= {1})
    _need({name for name, *_ in [*spends, *changes]} <= names)
    for _, _, secret, quiet_until in devices:
        _need(isinstance(secret, bytes) and isinstance(quiet_until, str))
        date.fromisoformat(quiet_until)
    for row in spends:
        _check_spend(row)
    for table in ("spend", "device", "rotation"):  # with their indexes and triggers
        db.execute(f"DROP TABLE {table}")
    return Old(devices, spends, changes)


def put_back(db: sqlite3.Connection, old: Old) -> None:
    """Write these rows into tables of version 2, with their hashes. What they booked stays booked for whole campaigns."""
    marks = ",".join("?" * 14)
    for name, _, secret, quiet_until in old.devices:
        seals = Seals(name, secret, quiet_until)
        end, own = seals.start, [row[1:] for row in old.spends if row[0] == name]
        changes = [row[1:] for row in old.changes if row[0] == name]
        for *told, state in own:
            fixed = [*told, "campaign"]
            end = seals.link(end, fixed)
            db.execute(f"INSERT INTO spend(device, {FIXED}, state, seal) VALUES ({marks})",
                       [name, *fixed, state, seals.row(end, state)])  # fmt: skip
        for change in changes:
            db.execute("INSERT INTO rotation VALUES (?,?,?,?)", (name, *change))
        seal = seals.device(end, len(own), changes)
        db.execute("INSERT INTO device VALUES (?,?,?,?,?)", (name, VERSION, secret, quiet_until, seal))


def _check_spend(row: Any) -> None:
    _need(all(type(value) is kind for value, kind in zip(row, TYPES, strict=True)))
    _, _, _, mode, num, den, _, _, day, send_at, _, state = row
    _need(
        mode in ("one_round", "all_rounds")
        and den > 0
        and 0 <= Fraction(num, den) <= 10
        and state in ("prepared", "sent", "acked")
    )
    date.fromisoformat(day)
    _need(datetime.fromisoformat(send_at).tzinfo is not None)


def _need(is_so: bool) -> None:
    if not is_so:
        raise ValueError("no ledger of version 1")
