"""A party's books of runs and answers: durable, so that a restarted party sends the same bytes again and never draws twice.

An answer is written in two steps: first that it was asked, before anything is charged or drawn, then its bytes. A row without
bytes means that a crash came between: the answer is lost for ever, and what it cost stays spent. Runs in which rows were asked
about are never deleted: one that was forgotten could be asked again, and two draws of one answer average the noise away. Of those
that were agreed to and never followed up the newest few are kept.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from typing import NamedTuple

from kveil.errors import InvalidValue
from kveil.federate.messages import FIRST_LINK, next_link

Path = str | os.PathLike[str]

SCHEMA = """
CREATE TABLE journal(one INTEGER PRIMARY KEY CHECK(one=1), version INTEGER NOT NULL, party TEXT NOT NULL);
CREATE TABLE run(id TEXT PRIMARY KEY, plan BLOB NOT NULL, expires INTEGER NOT NULL, next INTEGER NOT NULL, chain TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CHECK(state IN ('open','closed')));
CREATE TABLE answer(run TEXT NOT NULL REFERENCES run(id), seq INTEGER NOT NULL, request TEXT NOT NULL, part INTEGER NOT NULL,
  reply BLOB, token TEXT, PRIMARY KEY(run, seq));
CREATE TRIGGER once BEFORE INSERT ON answer WHEN EXISTS(SELECT 1 FROM answer WHERE run=NEW.run AND seq=NEW.seq)
  BEGIN SELECT RAISE(ABORT,'an answer is asked once'); END;
CREATE TRIGGER fixed BEFORE UPDATE ON answer WHEN OLD.reply IS NOT NULL OR NEW.run<>OLD.run OR NEW.seq<>OLD.seq OR
  NEW.request<>OLD.request OR (OLD.token IS NOT NULL AND NEW.token<>OLD.token)
  BEGIN SELECT RAISE(ABORT,'an answer is never changed'); END;
CREATE TRIGGER new_run BEFORE INSERT ON run WHEN EXISTS(SELECT 1 FROM run WHERE id=NEW.id)
  BEGIN SELECT RAISE(ABORT,'a run is opened once'); END;
CREATE TRIGGER shut BEFORE UPDATE ON run WHEN OLD.state='closed' OR NEW.id<>OLD.id OR NEW.plan<>OLD.plan
  BEGIN SELECT RAISE(ABORT,'a closed run stays closed'); END;
"""

# Older journals have stricter ones: these replace them. Nothing was drawn in a run without a part of its plan in use, so that
# whatever is drawn under its name later is drawn, and charged, for the first time.
KEEP = """
DROP TRIGGER IF EXISTS keep;
CREATE TRIGGER keep BEFORE DELETE ON answer WHEN EXISTS(SELECT 1 FROM answer WHERE run=OLD.run AND part>=0)
  OR EXISTS(SELECT 1 FROM run WHERE id=OLD.run AND state='open')
  BEGIN SELECT RAISE(ABORT,'answers about rows are never deleted'); END;
DROP TRIGGER IF EXISTS keep_run;
CREATE TRIGGER keep_run BEFORE DELETE ON run WHEN OLD.state='open' OR EXISTS(SELECT 1 FROM answer WHERE run=OLD.id)
  BEGIN SELECT RAISE(ABORT,'runs with answers are never deleted'); END;
"""
EMPTY = """SELECT id FROM run WHERE state='closed' AND NOT EXISTS(SELECT 1 FROM answer WHERE answer.run=run.id AND part>=0)
  ORDER BY rowid DESC LIMIT -1 OFFSET ?"""
MOST_EMPTY = 64  # runs that are kept though nothing was asked in them, so that a repeated plan gets the same bytes back


class Run(NamedTuple):
    """A run as the journal knows it: its plan's bytes, the place of the next message, and the receipt so far."""

    id: str
    plan: bytes
    expires: int
    next: int
    chain: str
    is_open: bool


class Answer(NamedTuple):
    """Digest of what was asked, and the bytes that answered it; None if they were lost."""

    request: str
    reply: bytes | None


class Journal:
    """One SQLite file (or memory) that one party writes at a time."""

    def __init__(self, path: Path | None, party: str | None) -> None:
        """`party` None: anybody's journal, which must exist."""
        self._lock = threading.RLock()
        if path is not None and party is not None and not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False, timeout=30.0)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("BEGIN EXCLUSIVE")
            if party and not self._db.execute("SELECT 1 FROM sqlite_master WHERE name='journal'").fetchone():
                for statement in _statements(SCHEMA):
                    self._db.execute(statement)
                self._db.execute("INSERT INTO journal VALUES (1, 1, ?)", (party,))
            for statement in _statements(KEEP):
                self._db.execute(statement)
            self._db.execute("COMMIT")
            owner = self._db.execute("SELECT party FROM journal WHERE version=1").fetchone()
            self.open_runs()  # a damaged file shows here, before anything is answered
            self.tokens()
        except (sqlite3.DatabaseError, UnicodeError):  # SQLite quotes damaged names, which may be no text
            owner = None
        if owner is None or party not in (None, *owner):
            self._db.close()
            raise InvalidValue(
                f"{os.fspath(path or '')!r} is no journal of {'a party' if party is None else f'a party called {party!r}'}. "
                "Each keeps its own beside its ledger: use "
                "the keys and the ledger that belong together, or name another journal."
            )

    def close(self) -> None:
        with self._lock, closing(self._db):
            pass

    def run(self, run: str) -> Run | None:
        with self._lock:
            row = self._db.execute("SELECT id, plan, expires, next, chain, state FROM run WHERE id=?", (run,)).fetchone()
        return None if row is None else _run(row)

    def open_runs(self) -> list[Run]:
        with self._lock:
            rows = self._db.execute("SELECT id, plan, expires, next, chain, state FROM run WHERE state='open'").fetchall()
        return [_run(row) for row in rows]

    def answer(self, run: str, seq: int) -> Answer | None:
        with self._lock:
            row = self._db.execute("SELECT request, reply FROM answer WHERE run=? AND seq=?", (run, seq)).fetchone()
        return None if row is None else Answer(*row)

    def used(self, run: str) -> dict[int, int]:
        """How often each part of its plan a run has asked for, answered or lost; parts have their place in the plan."""
        query = "SELECT part, COUNT(*) FROM answer WHERE run=? AND part>=0 GROUP BY part"
        with self._lock:
            return dict(self._db.execute(query, (run,)).fetchall())

    def tokens(self) -> set[str]:
        """The reservations that answers were paid from."""
        with self._lock:
            return {row[0] for row in self._db.execute("SELECT token FROM answer WHERE token IS NOT NULL")}

    def open(self, run: str, plan: bytes, expires: int, request: bytes, digest: str, reply: bytes) -> None:
        """Accept a plan: the run is open, and its first answer is in the books."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for (old,) in self._db.execute(EMPTY, (MOST_EMPTY,)).fetchall():
                self._db.execute("DELETE FROM answer WHERE run=?", (old,))
                self._db.execute("DELETE FROM run WHERE id=?", (old,))
            chain = next_link(FIRST_LINK, request, reply)
            self._db.execute("INSERT INTO run(id, plan, expires, next, chain) VALUES (?,?,?,1,?)", (run, plan, expires, chain))
            self._db.execute("INSERT INTO answer(run, seq, request, part, reply) VALUES (?,0,?,-1,?)", (run, digest, reply))

    def ask(self, run: str, seq: int, digest: str, part: int = -1) -> None:
        """Note that an answer was asked, and for which part of the plan, before anything is charged."""
        with self._lock:
            self._db.execute("INSERT INTO answer(run, seq, request, part) VALUES (?,?,?,?)", (run, seq, digest, part))

    def charge(self, run: str, seq: int, token: str) -> None:
        """Note which reservation pays for an answer."""
        with self._lock:
            self._db.execute("UPDATE answer SET token=? WHERE run=? AND seq=?", (token, run, seq))

    def store(self, run: str, seq: int, request: bytes, reply: bytes, *, closes: bool = False) -> None:
        """Keep the bytes of an answer and move on; from here on they are what a repeated request gets."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            (chain,) = self._db.execute("SELECT chain FROM run WHERE id=?", (run,)).fetchone()
            self._db.execute("UPDATE answer SET reply=? WHERE run=? AND seq=?", (reply, run, seq))
            self._db.execute(
                "UPDATE run SET next=?, chain=?, state=? WHERE id=?",
                (seq + 1, next_link(chain, request, reply), "closed" if closes else "open", run),
            )

    def shut(self, run: str) -> None:
        with self._lock:
            self._db.execute("UPDATE run SET state='closed' WHERE id=? AND state='open'", (run,))


def _run(row: tuple[str, bytes, int, int, str, str]) -> Run:
    return Run(row[0], row[1], row[2], row[3], row[4], row[5] == "open")


def _statements(script: str) -> list[str]:
    """The statements of a script; triggers hold semicolons of their own."""
    found, rest = [], ""
    for part in script.split(";"):
        rest += part + ";"
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found
