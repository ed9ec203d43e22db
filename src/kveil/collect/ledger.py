"""What a device has promised and sent: its own durable ledger, and the secret that decides its cohorts.

A report is stored before it is sent and sent again as the same bytes, never drawn again: two draws would cost twice. Rows are
never deleted, and change only from prepared to sent to acknowledged. Everything happens within one SQLite file, which must not
be backed up: an old copy that is restored forgets what was spent. A file that was lost starts over with a quiet year, since
nobody knows what the lost one had promised.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from kveil.errors import BudgetError, BudgetExceeded, InvalidType, InvalidValue

VERSION = 1
WINDOW = timedelta(days=365)
STATES = ("prepared", "sent", "acked")
COLUMNS = "campaign, round, mode, eps_num, eps_den, manifest_hash, report_blob, state, day, send_at, secure"

SCHEMA = """
CREATE TABLE device(name TEXT PRIMARY KEY, version INTEGER NOT NULL, secret BLOB NOT NULL, quiet_until TEXT NOT NULL);;
CREATE TABLE spend(id INTEGER PRIMARY KEY AUTOINCREMENT, device TEXT NOT NULL, campaign TEXT NOT NULL, round INTEGER NOT NULL,
  mode TEXT NOT NULL, eps_num INTEGER NOT NULL CHECK(eps_num>=0), eps_den INTEGER NOT NULL CHECK(eps_den>0),
  manifest_hash TEXT NOT NULL, report_blob BLOB NOT NULL, state TEXT NOT NULL CHECK(state IN ('prepared','sent','acked')),
  day TEXT NOT NULL, send_at TEXT NOT NULL, secure INTEGER NOT NULL, UNIQUE(device, campaign, round));;
CREATE UNIQUE INDEX one_answer ON spend(device, campaign) WHERE mode<>'all_rounds';;
CREATE TABLE rotation(device TEXT NOT NULL, serial INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
  PRIMARY KEY(device, old, serial));;
CREATE TRIGGER keep BEFORE DELETE ON spend BEGIN SELECT RAISE(ABORT,'spends are never deleted'); END;;
CREATE TRIGGER fixed BEFORE UPDATE ON spend WHEN NOT ((OLD.state='prepared' OR NEW.state='acked') AND NEW.state<>'prepared' AND
  NEW.id=OLD.id AND NEW.device=OLD.device AND NEW.campaign=OLD.campaign AND NEW.round=OLD.round AND NEW.mode=OLD.mode AND
  NEW.eps_num=OLD.eps_num AND NEW.eps_den=OLD.eps_den AND NEW.manifest_hash=OLD.manifest_hash AND NEW.report_blob=OLD.report_blob
  AND NEW.day=OLD.day AND NEW.send_at=OLD.send_at AND NEW.secure=OLD.secure)
  BEGIN SELECT RAISE(ABORT,'spends are never changed'); END;;
CREATE TRIGGER once BEFORE INSERT ON spend WHEN NEW.state<>'prepared' OR EXISTS(SELECT 1 FROM spend WHERE id=NEW.id) OR
  EXISTS(SELECT 1 FROM spend WHERE device=NEW.device AND campaign=NEW.campaign AND (round=NEW.round OR mode<>'all_rounds'))
  BEGIN SELECT RAISE(ABORT,'a round is answered once'); END;;
CREATE TRIGGER once_device BEFORE INSERT ON device WHEN EXISTS(SELECT 1 FROM device WHERE name=NEW.name)
  BEGIN SELECT RAISE(ABORT,'a device is made once'); END;;
CREATE TRIGGER fixed_device BEFORE UPDATE ON device BEGIN SELECT RAISE(ABORT,'a device is never changed'); END;;
CREATE TRIGGER keep_device BEFORE DELETE ON device BEGIN SELECT RAISE(ABORT,'a device is never deleted'); END;
"""


class Spend(NamedTuple):
    """One report as it was stored. `send_at` was drawn before the point was read; `secure` is false for scripted noise."""

    campaign: str
    round: int
    mode: str
    epsilon: Fraction
    manifest_hash: str
    report: bytes
    state: str
    day: date
    send_at: datetime
    secure: bool


@dataclass(frozen=True)
class Book:
    """What a ledger says at one moment."""

    spends: tuple[Spend, ...]  # oldest first
    quiet_until: date

    def today(self, clock: date) -> date:
        """The clock's day, or that of the last row if it is later: turning a clock back gives no budget back."""
        return max([clock, *(spend.day for spend in self.spends)])

    def find(self, campaign: str, number: int, mode: str) -> Spend | None:
        """The row that an answer in this round would repeat: any of the campaign, if people answer once."""
        same = [spend for spend in self.spends if spend.campaign == campaign and (spend.round == number or mode != "all_rounds")]
        return same[0] if same else None

    def cost(self, campaign: str, whole: Fraction, today: date) -> Fraction:
        """All of a campaign is charged with its first answer, and anew if that is so long ago that it no longer counts."""
        is_paid = any(spend.campaign == campaign and spend.epsilon for spend in self._counting(today))
        return Fraction(0) if is_paid else whole

    def left(self, cap: Fraction, today: date) -> Fraction:
        """Epsilon that may be spent, of `cap` in 365 days."""
        spent = sum(spend.epsilon for spend in self._counting(today))
        return Fraction(0) if today < self.quiet_until else cap - spent

    def check(self, cost: Fraction, cap: Fraction, today: date) -> None:
        """Refuse what cannot be paid."""
        if today < self.quiet_until:
            raise BudgetExceeded(
                f"this device has no record of what it has spent before, and stays quiet until {self.quiet_until}. If it has "
                "never answered, or its owner wants to begin anew, set it up with is_first=True. Nothing was drawn."
            )
        if cost > (left := self.left(cap, today)):
            raise BudgetExceeded(
                f"an answer costs epsilon {float(cost):.4g}; {float(left):.4g} of {float(cap):.4g} is left for these 365 days. "
                "Nothing was drawn and nothing was charged."
            )

    def _counting(self, today: date) -> list[Spend]:
        return [spend for spend in self.spends if spend.day > today - WINDOW]


class LedgerFile:
    """The SQLite file (None: memory) of one device, or of several people, who have nothing in common but the file."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidType("a device's ledger is the path of a file, or None for memory.")
        self._pid, self._lock = os.getpid(), threading.RLock()
        try:
            self._db = _connect(path)
            with self.transaction() as db:
                if not db.execute("SELECT 1 FROM sqlite_master").fetchone():  # of two makers the second finds it made
                    for statement in SCHEMA.split(";;"):
                        db.execute(statement)
                versions = db.execute("SELECT DISTINCT version FROM device").fetchall()
            known = versions in ([], [(VERSION,)])
        except (sqlite3.DatabaseError, BudgetError):
            known = False
        if not known:
            name = "memory" if path is None else repr(os.fspath(path))
            raise InvalidValue(
                f"{name} is no ledger of a device, or one of another version, or its place cannot be written. Choose a new file "
                "in a folder that exists, or the one that a device has made."
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The only writer, until the end; a second process waits. What is raised inside undoes it."""
        with self._lock:
            if os.getpid() != self._pid:
                raise BudgetError("a fork copied this client: open its ledger anew in the new process. Nothing was drawn.")
            if self._db.in_transaction:  # of this very thread: whoever loads a point may not answer meanwhile
                raise BudgetError("the device's ledger is in use by whoever asks. Nothing was drawn.")
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error:
                raise BudgetError("the device's ledger is locked, full, unwritable or gone. Nothing was sent.") from None
            finally:
                if self._db.in_transaction:
                    self._db.rollback()

    def settle(self) -> None:
        """Copy what is committed from the write-ahead log into the file itself: whoever moves that may forget the log."""
        with self._lock, suppress(sqlite3.Error):  # it is on the disk either way
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def rows(self, sql: str, *terms: Any) -> list[Any]:
        """What a query finds."""
        with self._lock:
            try:
                return self._db.execute(sql, terms).fetchall()
            except sqlite3.Error:
                raise BudgetError("the device's ledger is closed, damaged or gone. Nothing was sent.") from None

    def close(self) -> None:
        self._db.close()


class DeviceLedger:
    """The rows of one device. `secret` is for a new one; `is_first` says that none was lost, so that it may answer at once."""

    def __init__(self, file: LedgerFile, name: str, secret: bytes, today: date, *, is_first: bool) -> None:
        self.file, self.name = file, name
        quiet = today if is_first else today + WINDOW
        with file.transaction() as db:
            if not db.execute("SELECT 1 FROM device WHERE name=?", (name,)).fetchone():
                db.execute("INSERT INTO device VALUES (?,?,?,?)", (name, VERSION, secret, quiet.isoformat()))
        ((own, until),) = file.rows("SELECT secret, quiet_until FROM device WHERE name=?", name)
        self.secret, self.quiet_until = bytes(own), date.fromisoformat(until)

    def insert(self, db: sqlite3.Connection, spend: Spend) -> None:
        """Within a transaction that checked what is left."""
        values = [*spend[:3], spend.epsilon.numerator, spend.epsilon.denominator, *spend[4:7]]
        times = [spend.day.isoformat(), spend.send_at.isoformat(), int(spend.secure)]
        marks = ",".join("?" * 12)
        db.execute(f"INSERT INTO spend(device, {COLUMNS}) VALUES ({marks})", [self.name, *values, *times])

    def move(self, manifest_hash: str, state: str) -> None:
        """Note that a report was sent, or acknowledged. Bookkeeping: the bytes stay."""
        earlier = STATES[: STATES.index(state)]
        marks = ",".join("?" * len(earlier))
        with self.file.transaction() as db:
            terms = (state, self.name, manifest_hash, *earlier)
            db.execute(f"UPDATE spend SET state=? WHERE device=? AND manifest_hash=? AND state IN ({marks})", terms)

    def book(self) -> Book:
        """All rows."""
        rows = self.file.rows(f"SELECT {COLUMNS} FROM spend WHERE device=? ORDER BY id", self.name)
        return Book(tuple(_spend(*row) for row in rows), self.quiet_until)

    def rotations(self) -> list[tuple[int, str, str]]:
        """Changes of the trusted key, in order: serial, old, new."""
        return self.file.rows("SELECT serial, old, new FROM rotation WHERE device=? ORDER BY serial", self.name)

    def rotate(self, serial: int, old: str, new: str) -> None:
        with self.file.transaction() as db:
            asked = "SELECT COALESCE(MAX(serial), 0) FROM rotation WHERE device=? AND ? IN (old, new)"  # of this collector alone
            if serial <= db.execute(asked, (self.name, old)).fetchone()[0]:
                raise InvalidValue("this change of keys is older than one that this device has made. Nothing was changed.")
            db.execute("INSERT INTO rotation VALUES (?,?,?,?)", (self.name, serial, old, new))


def _spend(campaign: str, number: int, mode: str, num: int, den: int, *rest: Any) -> Spend:
    manifest_hash, report, state, day, send_at, secure = rest
    times = (date.fromisoformat(day), datetime.fromisoformat(send_at))
    return Spend(campaign, number, mode, Fraction(num, den), manifest_hash, bytes(report), state, *times, bool(secure))


def _connect(path: str | os.PathLike[str] | None) -> sqlite3.Connection:
    if path is not None and not os.path.exists(path):
        with suppress(OSError):  # for the owner's eyes only; whether it can be written shows soon
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    db = sqlite3.connect(":memory:" if path is None else path, timeout=30.0, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits of a WAL: a report sent and forgotten
    return db
