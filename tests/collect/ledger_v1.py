"""Ledgers as version 1 of the program wrote them: no hashes, a campaign booked on its first row, a write-ahead log."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

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

COLUMNS = "campaign, round, mode, eps_num, eps_den, manifest_hash, report_blob, state, day, send_at, secure"
YEAR = timedelta(days=365)


def booked(spends, whole):
    """As version 1 booked answers that cost these spends: all of a campaign at first, and anew if that is 365 days ago."""
    made = []
    for spend in spends:
        recent = [one for one in made if one.campaign == spend.campaign and one.epsilon and spend.day - one.day < YEAR]
        made.append(spend._replace(epsilon=spend.epsilon * 0 if recent else whole[spend.campaign], covers="campaign"))
    return made


def write_ledger(path, spends, *, secret=bytes(range(32)), quiet_until="2000-01-01", name="", changes=()):
    """A file of version 1 with these rows; it is left as a process leaves it that was killed, its log beside it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    for statement in SCHEMA.split(";;"):
        db.execute(statement)
    db.execute("INSERT INTO device VALUES (?,?,?,?)", (name, 1, secret, quiet_until))
    for spend in spends:
        values = [*spend[:3], spend.epsilon.numerator, spend.epsilon.denominator, spend.manifest_hash, spend.report, "prepared"]
        values += [spend.day.isoformat(), spend.send_at.isoformat(), int(spend.secure)]
        db.execute(f"INSERT INTO spend(device, {COLUMNS}) VALUES ({','.join('?' * 12)})", [name, *values])
        db.execute("UPDATE spend SET state=? WHERE id=last_insert_rowid() AND state<>?", (spend.state, spend.state))
    for change in changes:
        db.execute("INSERT INTO rotation VALUES (?,?,?,?)", (name, *change))
    return db
