"""What a device has promised and sent: its own durable ledger, and the secret that decides its cohorts.

A report is stored before it is sent and sent again as the same bytes, never drawn again: two draws would cost twice. Rows are
never deleted, and change only from prepared to sent to acknowledged. Before anything is read from a ledger its hashes are
checked (`seals`), and what does not fit is a refusal. Everything happens within one SQLite file, which must not be backed up: an
old copy that is restored forgets what was spent. A file that was lost starts over with a quiet year, since nobody knows what the
lost one had promised.
"""

from __future__ import annotations

import sqlite3
from datetime import date, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from kveil.collect.book import WINDOW, Book, Change, Spend
from kveil.collect.ledger_file import LedgerFile
from kveil.collect.seals import FIXED, VERSION, Seals
from kveil.errors import BudgetError, InvalidValue

STATES = ("prepared", "sent", "acked")


class DeviceLedger:
    """The rows of one device. `secret` is for a new one; `is_first` says that none was lost, so that it may answer at once."""

    def __init__(self, file: LedgerFile, name: str, secret: bytes, today: date, *, is_first: bool) -> None:
        self.file, self.name = file, name
        quiet = (today if is_first else today + WINDOW).isoformat()
        with file.transaction() as db:
            if not db.execute("SELECT 1 FROM device WHERE name=?", (name,)).fetchone():
                seals = Seals(name, secret, quiet)
                db.execute(
                    "INSERT INTO device VALUES (?,?,?,?,?)", (name, VERSION, secret, quiet, seals.device(seals.start, 0, []))
                )
            self.secret = self._kept(db).secret  # which refuses rows of a device that was not there

    def insert(self, db: sqlite3.Connection, spend: Spend) -> None:
        """Within a transaction that checked what is left."""
        kept = self._kept(db)
        eps = (spend.epsilon.numerator, spend.epsilon.denominator)
        times = (spend.day.isoformat(), spend.send_at.isoformat())
        fixed = (*spend[:3], *eps, spend.manifest_hash, spend.report, *times, int(spend.secure), spend.covers)
        end = kept.seals.link(kept.end, fixed)
        values = [self.name, *fixed, spend.state, kept.seals.row(end, spend.state)]
        db.execute(f"INSERT INTO spend(device, {FIXED}, state, seal) VALUES ({','.join('?' * len(values))})", values)
        self._close_chain(db, kept.seals.device(end, len(kept.rows) + 1, kept.book.changes))

    def move(self, manifest_hash: str, state: str) -> None:
        """Note that a report was sent, or acknowledged. Bookkeeping: the bytes stay."""
        earlier = STATES[: STATES.index(state)]
        with self.file.transaction() as db:
            kept = self._kept(db)
            for row in kept.rows:
                if row.spend.manifest_hash == manifest_hash and row.spend.state in earlier:
                    seal = kept.seals.row(row.link, state)
                    db.execute("UPDATE spend SET state=?, seal=? WHERE id=?", (state, seal, row.id))

    def rotate(self, change: Change) -> None:
        with self.file.transaction() as db:
            kept = self._kept(db)
            before = [one.serial for one in kept.book.changes if change.old in (one.old, one.new)]  # of this collector alone
            if change.serial <= max(before, default=0):
                raise InvalidValue("this change of keys is older than one that this device has made. Nothing was changed.")
            db.execute("INSERT INTO rotation VALUES (?,?,?,?)", (self.name, *change))
            self._close_chain(db, kept.seals.device(kept.end, len(kept.rows), self._changes(db)))

    def book(self) -> Book:
        """All rows."""
        with self.file.reading() as db:
            return self._kept(db).book

    def _close_chain(self, db: sqlite3.Connection, seal: bytes) -> None:
        db.execute("UPDATE device SET seal=? WHERE name=?", (seal, self.name))

    def _changes(self, db: sqlite3.Connection) -> list[tuple[Any, ...]]:
        return db.execute("SELECT serial, old, new FROM rotation WHERE device=? ORDER BY serial, old", (self.name,)).fetchall()

    def _kept(self, db: sqlite3.Connection) -> _Kept:
        """What is there, once every hash was found to be right; nothing of it is looked at before."""
        found = db.execute("SELECT secret, quiet_until, version, seal FROM device WHERE name=?", (self.name,)).fetchall()
        stored = db.execute(f"SELECT {FIXED}, state, seal, id FROM spend WHERE device=? ORDER BY id", (self.name,)).fetchall()
        changes = self._changes(db)
        if len(found) != 1 or not isinstance(secret := found[0][0], bytes):
            raise _damaged()
        _, quiet_until, version, own_seal = found[0]
        seals = Seals(self.name, secret, quiet_until, version)
        end, links = seals.start, []
        for *fixed, state, seal, _ in stored:
            end = seals.link(end, fixed)
            links.append(end)
            if seal != seals.row(end, state):
                raise _damaged()
        if own_seal != seals.device(end, len(stored), changes):
            raise _damaged()
        rows = tuple(_Row(row[-1], link, _spend(*row[:-2])) for row, link in zip(stored, links, strict=True))
        spends = tuple(row.spend for row in rows)
        book = Book(spends, date.fromisoformat(quiet_until), tuple(Change(*change) for change in changes))
        return _Kept(secret, seals, rows, end, book)


class _Row(NamedTuple):
    id: int
    link: bytes
    spend: Spend


class _Kept(NamedTuple):
    secret: bytes
    seals: Seals
    rows: tuple[_Row, ...]
    end: bytes
    book: Book


def _spend(campaign: str, number: int, mode: str, num: int, den: int, *rest: Any) -> Spend:
    manifest_hash, report, day, send_at, secure, covers, state = rest
    times = (date.fromisoformat(day), datetime.fromisoformat(send_at))
    return Spend(campaign, number, mode, Fraction(num, den), manifest_hash, report, state, *times, bool(secure), covers)


def _damaged() -> BudgetError:
    return BudgetError(
        "the device's ledger is damaged: it holds something else than what was written. Nothing was drawn and nothing was sent. "
        "Set the file aside; a new one without is_first=True stays quiet for a year, since nobody knows what was spent."
    )
