"""The SQLite file of a device's ledger: its tables, its transactions, and what is checked when it is opened.

A commit is in the file itself, on the disk, before a report leaves: a rollback journal and `synchronous=EXTRA`. There is no
write-ahead log, because a single damaged bit in one makes SQLite drop the last commits without a word.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from typing import Any

from kveil.collect.ledger_upgrade import put_back, take_out
from kveil.collect.seals import VERSION
from kveil.errors import BudgetError, InvalidType, InvalidValue

TABLES = """
CREATE TABLE device(name TEXT PRIMARY KEY, version INTEGER NOT NULL, secret BLOB NOT NULL, quiet_until TEXT NOT NULL,
  seal BLOB NOT NULL);;
CREATE TABLE spend(id INTEGER PRIMARY KEY AUTOINCREMENT, device TEXT NOT NULL, campaign TEXT NOT NULL, round INTEGER NOT NULL,
  mode TEXT NOT NULL, eps_num INTEGER NOT NULL CHECK(eps_num>=0), eps_den INTEGER NOT NULL CHECK(eps_den>0),
  manifest_hash TEXT NOT NULL, report_blob BLOB NOT NULL, day TEXT NOT NULL, send_at TEXT NOT NULL, secure INTEGER NOT NULL,
  covers TEXT NOT NULL CHECK(covers IN ('round','campaign')), state TEXT NOT NULL CHECK(state IN ('prepared','sent','acked')),
  seal BLOB NOT NULL, UNIQUE(device, campaign, round));;
CREATE UNIQUE INDEX one_answer ON spend(device, campaign) WHERE mode<>'all_rounds';;
CREATE TABLE rotation(device TEXT NOT NULL, serial INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
  PRIMARY KEY(device, old, serial))
"""
TRIGGERS = """
CREATE TRIGGER keep BEFORE DELETE ON spend BEGIN SELECT RAISE(ABORT,'spends are never deleted'); END;;
CREATE TRIGGER fixed BEFORE UPDATE ON spend WHEN NOT ((OLD.state='prepared' OR NEW.state='acked') AND NEW.state<>'prepared' AND
  NEW.id=OLD.id AND NEW.device=OLD.device AND NEW.campaign=OLD.campaign AND NEW.round=OLD.round AND NEW.mode=OLD.mode AND
  NEW.eps_num=OLD.eps_num AND NEW.eps_den=OLD.eps_den AND NEW.manifest_hash=OLD.manifest_hash AND NEW.report_blob=OLD.report_blob
  AND NEW.day=OLD.day AND NEW.send_at=OLD.send_at AND NEW.secure=OLD.secure AND NEW.covers=OLD.covers)
  BEGIN SELECT RAISE(ABORT,'spends are never changed'); END;;
CREATE TRIGGER once BEFORE INSERT ON spend WHEN NEW.state<>'prepared' OR EXISTS(SELECT 1 FROM spend WHERE id=NEW.id) OR
  EXISTS(SELECT 1 FROM spend WHERE device=NEW.device AND campaign=NEW.campaign AND (round=NEW.round OR mode<>'all_rounds'))
  BEGIN SELECT RAISE(ABORT,'a round is answered once'); END;;
CREATE TRIGGER once_device BEFORE INSERT ON device WHEN EXISTS(SELECT 1 FROM device WHERE name=NEW.name)
  BEGIN SELECT RAISE(ABORT,'a device is made once'); END;;
CREATE TRIGGER fixed_device BEFORE UPDATE ON device WHEN NOT (NEW.name=OLD.name AND NEW.version=OLD.version AND
  NEW.secret=OLD.secret AND NEW.quiet_until=OLD.quiet_until) BEGIN SELECT RAISE(ABORT,'a device is never changed'); END;;
CREATE TRIGGER keep_device BEFORE DELETE ON device BEGIN SELECT RAISE(ABORT,'a device is never deleted'); END
"""
DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # the second one in the place of the first, if a message quotes damaged text


class LedgerFile:
    """The SQLite file (None: memory) of one device, or of several people, who have nothing in common but the file."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidType("a device's ledger is the path of a file, or None for memory.")
        self._pid, self._lock = os.getpid(), threading.RLock()
        try:
            self._db = _connect(path)
        except sqlite3.Error:
            raise _unusable(path) from None
        try:
            self._db.execute("PRAGMA synchronous=EXTRA")  # less may bring a finished journal back after a power cut
            with self.transaction() as db:
                _prepare(db)
            (mode,) = self._db.execute("PRAGMA journal_mode=DELETE").fetchone()  # version 1 had a write-ahead log
            _need(mode != "wal")
        except (*DAMAGE, BudgetError, ValueError):
            self._db.close()
            raise _unusable(path) from None

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """The only writer, until the end; a second process waits. What is raised inside undoes it."""
        with self._lock, self._errors_in_words():
            if self._db.in_transaction:  # of this very thread: whoever loads a point may not answer meanwhile
                raise BudgetError("the device's ledger is in use by whoever asks. Nothing was drawn.")
            try:
                self._db.execute(begin)
                yield self._db
                self._db.execute("COMMIT")
            finally:
                self._db.rollback()  # nothing, if it was committed

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """What the file holds at one moment; within a transaction of this thread, what that sees."""
        with self._lock, self._errors_in_words():
            if self._db.in_transaction:
                yield self._db
            else:
                with self.transaction("BEGIN") as db:
                    yield db

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _errors_in_words(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise BudgetError("a fork copied this client: open its ledger anew in the new process. Nothing was drawn.")
        try:
            yield
        except DAMAGE:
            raise BudgetError(
                "the device's ledger is locked, full, unwritable, damaged, closed or gone. Nothing was sent."
            ) from None


def _connect(path: str | os.PathLike[str] | None) -> sqlite3.Connection:
    if path is not None and not os.path.exists(path):
        with suppress(OSError):  # for the owner's eyes only; whether it can be written shows soon
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return sqlite3.connect(":memory:" if path is None else path, timeout=30.0, isolation_level=None, check_same_thread=False)


def _prepare(db: sqlite3.Connection) -> None:
    """The tables of this version: made, found, or made from those of version 1. Of two makers the second finds them made."""
    _need(db.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)])  # else what is missing might be taken for new
    found = _shape(db)
    if not found:
        _make(db, TABLES + ";;" + TRIGGERS)
    elif found != _own_shape():
        old = take_out(db)
        _make(db, TABLES)
        put_back(db, old)
        _make(db, TRIGGERS)
    _need(db.execute("SELECT DISTINCT version FROM device").fetchall() in ([], [(VERSION,)]))


def _make(db: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";;"):
        db.execute(statement)


def _shape(db: sqlite3.Connection) -> list[Any]:
    """All tables, indexes and triggers, with the text that made them: a damaged one differs, or is not there."""
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


@lru_cache(maxsize=1)
def _own_shape() -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as db:
        _make(db, TABLES + ";;" + TRIGGERS)
        return _shape(db)


def _need(is_so: bool) -> None:
    if not is_so:
        raise ValueError("no ledger, or a damaged one")


def _unusable(path: str | os.PathLike[str] | None) -> InvalidValue:
    name = "memory" if path is None else repr(os.fspath(path))
    return InvalidValue(
        f"{name} is no ledger of a device, or one of another version, or damaged or in use, or its place cannot be written. "
        "Choose a new file in a folder that exists, or the one that a device has made. A damaged one is set aside: a new one "
        "without is_first=True stays quiet for a year, since nobody knows what was spent."
    )
