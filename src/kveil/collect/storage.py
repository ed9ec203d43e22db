"""Where a collector keeps rounds, reports and half-done sums, so that nothing acknowledged is lost and nothing is counted twice.

SQLite by default, another engine by its URL: PostgreSQL is written for (locks, ON CONFLICT, bytea), but our tests do not run it.
Ids are binary, which both order byte by byte; 64-bit words live inside blobs only. A report is kept with the day it came, and
with nothing else about its sender.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from kveil.errors import InvalidType, InvalidValue, MissingExtra, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

VERSION = 1
MOST_PARAMETERS = 500  # of one statement
PATIENCE = 30_000  # milliseconds to wait for another writer


class StoredRound(NamedTuple):
    """A round as it is kept. state: "open", "closed" or "decoded"; signed: the manifest as devices get it; notes: JSON of the
    protocol's own few numbers for later rounds."""

    id: int
    campaign: str
    number: int
    manifest_hash: str
    state: str
    signed: bytes
    notes: str


class Checkpoint(NamedTuple):
    """A sum over the reports up to and including the id `watermark`."""

    watermark: bytes
    statistic: bytes
    is_done: bool


class Row(NamedTuple):
    """What is kept of a report."""

    round_id: int
    report_id: bytes
    query: int
    idx: int


class Storage:
    """Tables of a collector at a path (SQLite) or a database URL. Every method is one transaction."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._sql = _library()
        self._tables = _tables(self._sql)
        if not isinstance(place, str | os.PathLike):
            raise InvalidType("a collector's storage is the path of a file, or the URL of a database.")
        try:
            self._engine = _engine(self._sql, os.fspath(place))
            with self._writing() as db:
                fits = not self._is_foreign(db) and self._made(db) == [VERSION]
        except (self._sql.exc.SQLAlchemyError, StorageUnavailable, ImportError):  # the driver of another engine may be missing
            fits = False
        if not fits:
            name = "this" if "://" in os.fspath(place) else repr(os.fspath(place))  # a URL may hold a password
            raise InvalidValue(
                f"{name} is no collector's database, or one of another version, or it cannot be reached or written. Choose a new "
                "file in a folder that exists, or the one that a collector has made."
            )

    def campaigns(self) -> list[str]:
        """Hashes of all campaigns, in the order they were opened."""
        with self._reading() as db:
            asked = self._select("round", "campaign", number=1).order_by(self._tables.round.c.id)
            return list(db.execute(asked).scalars())

    def rounds(self, campaign: str) -> list[StoredRound]:
        """In order."""
        with self._reading() as db:
            rows = db.execute(self._select("round", *StoredRound._fields, campaign=campaign))
            return sorted((StoredRound(*row) for row in rows), key=lambda one: one.number)

    def round(self, manifest_hash: str) -> StoredRound | None:
        with self._reading() as db:
            row = db.execute(self._select("round", *StoredRound._fields, manifest_hash=manifest_hash)).one_or_none()
        return None if row is None else StoredRound(*row)

    def insert(self, round_id: int, rows: Sequence[Row], day: date) -> tuple[dict[bytes, Row], dict[bytes, Row]]:
        """Store what is new, if the round is open; what was there under these ids before, and what is there now.

        An id is used once in a campaign: a report that was sent to another round, too, is a replay and is not stored.
        """
        with self._writing() as db:
            asked = self._select("round", "state", "campaign", id=round_id).with_for_update(read=True)
            state, campaign = db.execute(asked).one()
            rounds = list(db.execute(self._select("round", "id", campaign=campaign)).scalars())
            before = self._rows(db, rounds, rows)
            new = {row.report_id: row for row in reversed(rows) if row.report_id not in before}  # the first of equal ids
            if state != "open" or not new:
                return before, before
            values = [{**row._asdict(), "ingested_day": day} for row in new.values()]
            db.execute(self._insert(db)(self._tables.report).on_conflict_do_nothing(), values)
            return before, self._rows(db, rounds, rows)

    def close(self, round_id: int, least: int, end: str | None) -> bool:
        """From open to closed, if at least so many reports are there: no insert can come after.

        With fewer the campaign has ended, with `end` in the place of its result; False if it is None and nothing was done.
        """
        table = self._tables.round
        with self._writing() as db:
            state = db.execute(self._select("round", "state", id=round_id).with_for_update()).scalar_one()
            count = self._sql.select(self._sql.func.count()).where(self._tables.report.c.round_id == round_id)
            if state != "open":
                return True
            if db.execute(count).scalar_one() >= least:
                db.execute(table.update().where(table.c.id == round_id).values(state="closed"))
                return True
            if end is not None:
                self._finish(db, round_id, end)
        return end is not None

    def received(self, round_id: int) -> dict[int, int]:
        """Reports of each query."""
        report = self._tables.report.c
        asked = self._sql.select(report.query, self._sql.func.count()).where(report.round_id == round_id).group_by(report.query)
        with self._reading() as db:
            return {int(query): int(n) for query, n in db.execute(asked)}

    def chunk(self, round_id: int, query: int, after: bytes, most: int) -> tuple[list[bytes], list[int]]:
        """Ids and values of the next reports, in the order of ids."""
        report = self._tables.report.c
        asked = self._sql.select(report.report_id, report.idx).where(report.round_id == round_id, report.query == query)
        asked = asked.where(report.report_id > after).order_by(report.report_id).limit(most)
        with self._reading() as db:
            rows = db.execute(asked).all()
        return [bytes(row[0]) for row in rows], [int(row[1]) for row in rows]

    def checkpoint(self, round_id: int, task: str, manifest_hash: str) -> Checkpoint | None:
        """How far a sum has come. One that was made for another manifest does not count."""
        asked = self._select("checkpoint", *Checkpoint._fields, round_id=round_id, task=task, manifest_hash=manifest_hash)
        with self._reading() as db:
            row = db.execute(asked).one_or_none()
        return None if row is None else Checkpoint(*row)

    def save_checkpoint(self, round_id: int, task: str, manifest_hash: str, checkpoint: Checkpoint) -> None:
        table = self._tables.checkpoint
        with self._writing() as db:
            db.execute(table.delete().where(table.c.round_id == round_id, table.c.task == task))
            terms = {"round_id": round_id, "task": task, "manifest_hash": manifest_hash}
            db.execute(table.insert().values(**terms, **checkpoint._asdict()))

    def add_round(self, done: int | None, following: StoredRound) -> None:
        """The round `done`, if any, is decoded and the next one opens, in one step. Ids are the storage's own."""
        values = {name: value for name, value in following._asdict().items() if name != "id"}
        with self._writing() as db:
            self._decoded(db, done)
            db.execute(self._tables.round.insert().values(**values))

    def add_result(self, done: int, result: str) -> None:
        """The round `done` is decoded and the campaign has ended, in one step."""
        with self._writing() as db:
            self._finish(db, done, result)

    def sign(self, round_id: int, before: bytes, signed: bytes) -> bool:
        """Keep a manifest with more signatures, if it is still what it was `before`."""
        table = self._tables.round
        with self._writing() as db:
            done = db.execute(table.update().where(table.c.id == round_id, table.c.signed == before).values(signed=signed))
        return bool(done.rowcount)

    def result(self, campaign: str) -> str | None:
        joined = self._tables.result.join(self._tables.round, self._tables.result.c.round_id == self._tables.round.c.id)
        asked = self._sql.select(self._tables.result.c.result).select_from(joined)
        with self._reading() as db:
            found = db.execute(asked.where(self._tables.round.c.campaign == campaign)).scalar_one_or_none()
        return None if found is None else str(found)

    def dispose(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    def _is_foreign(self, db: Connection) -> bool:
        """Whether a file holds tables of something else, a device's ledger say. A server may hold many things."""
        return db.dialect.name == "sqlite" and not _is_own(self._sql.inspect(db).get_table_names())

    def _made(self, db: Connection) -> list[int]:
        """The tables, new or old, and the version of whoever made them."""
        self._tables.metadata.create_all(db)
        asked = self._sql.select(self._tables.collector.c.version)
        if not db.execute(asked).scalars().all():
            db.execute(self._tables.collector.insert().values(version=VERSION))
        return list(db.execute(asked).scalars())

    def _finish(self, db: Connection, round_id: int, result: str) -> None:
        self._decoded(db, round_id)
        db.execute(self._tables.result.insert().values(round_id=round_id, result=result))

    def _decoded(self, db: Connection, round_id: int | None) -> None:
        table = self._tables.round
        db.execute(table.update().where(table.c.id == round_id).values(state="decoded"))

    def _rows(self, db: Connection, rounds: list[int], rows: Sequence[Row]) -> dict[bytes, Row]:
        """Reports of these rounds that have the ids of `rows`."""
        report, found = self._tables.report.c, {}
        for start in range(0, len(rows), MOST_PARAMETERS):
            ids = [row.report_id for row in rows[start : start + MOST_PARAMETERS]]
            asked = self._sql.select(report.round_id, report.report_id, report.query, report.idx)
            for number, report_id, query, idx in db.execute(asked.where(report.round_id.in_(rounds), report.report_id.in_(ids))):
                found[bytes(report_id)] = Row(int(number), bytes(report_id), int(query), int(idx))
        return found

    def _select(self, table: str, *names: str, **where: Any) -> Any:
        columns = getattr(self._tables, table).c
        asked = self._sql.select(*(columns[name] for name in names))
        return asked.where(*(columns[name] == value for name, value in where.items()))

    def _insert(self, db: Connection) -> Any:
        """`insert` of the engine's own dialect, the only one with ON CONFLICT."""
        return import_module(f"sqlalchemy.dialects.{db.dialect.name}").insert

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._errors_in_words(), self._engine.execution_options(kveil_writes=True).begin() as db:
            yield db

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._errors_in_words(), self._engine.connect() as db:
            yield db

    @contextmanager
    def _errors_in_words(self) -> Iterator[None]:
        """Errors of a database quote statements and what was to be stored, so none of them leaves here."""
        try:
            yield
        except self._sql.exc.IntegrityError:
            raise InvalidValue(
                "another process was quicker with this very step: see what is there now. Nothing was stored."
            ) from None
        except (self._sql.exc.DBAPIError, self._sql.exc.TimeoutError):
            raise StorageUnavailable(
                "the collector's storage is locked, full, damaged or out of reach. Nothing of this step is relied on: make room, "
                "or wait, and try it again. A report that is sent again is stored once."
            ) from None


def _engine(sql: Any, place: str) -> Engine:
    """SQLite as a durable store: WAL, every commit on the disk before it is acknowledged, and one writer at a time."""
    is_url = "://" in place
    engine: Engine = sql.create_engine(place if is_url else sql.URL.create("sqlite", database=os.path.abspath(place)))
    if engine.dialect.name == "sqlite":

        def connected(db: Any, record: Any) -> None:
            db.isolation_level = None  # transactions begin where we say
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            own = ["journal_mode=WAL"] if _is_own(names) else []  # which would stay with another's file
            for setting in (f"busy_timeout={PATIENCE}", "synchronous=FULL", *own):
                db.execute(f"PRAGMA {setting}")

        def begun(db: Any) -> None:
            db.exec_driver_sql("BEGIN IMMEDIATE" if db.get_execution_options().get("kveil_writes") else "BEGIN")

        sql.event.listen(engine, "connect", connected)
        sql.event.listen(engine, "begin", begun)
    return engine


def _is_own(tables: list[str]) -> bool:
    return not tables or "collector" in tables


class _Tables(NamedTuple):
    metadata: Any
    collector: Any
    round: Any
    report: Any
    checkpoint: Any
    result: Any


def _tables(sql: Any) -> _Tables:
    metadata, column, own = sql.MetaData(), partial(sql.Column, nullable=False), partial(sql.Column, primary_key=True)
    table = partial(_table, sql, metadata)
    hash_, state = sql.String(64), sql.CheckConstraint("state IN ('open','closed','decoded')")
    collector = table("collector", own("version", sql.Integer))
    round_ = table(
        "round", own("id", sql.Integer), column("campaign", hash_), column("number", sql.Integer),
        column("manifest_hash", hash_, unique=True), column("state", sql.String(8), state), column("signed", sql.LargeBinary),
        column("notes", sql.Text), sql.UniqueConstraint("campaign", "number"),
    )  # fmt: skip
    one_round = partial(own, "round_id", sql.Integer)
    report = table(
        "report", one_round(sql.ForeignKey("round.id")), own("report_id", sql.LargeBinary(16)), column("query", sql.Integer),
        column("idx", sql.Integer), column("ingested_day", sql.Date), sqlite_with_rowid=False,
    )  # fmt: skip
    checkpoint = table(
        "checkpoint", one_round(sql.ForeignKey("round.id")), own("task", hash_), column("manifest_hash", hash_),
        column("watermark", sql.LargeBinary), column("statistic", sql.LargeBinary), column("is_done", sql.Boolean),
    )  # fmt: skip
    result = table("result", one_round(sql.ForeignKey("round.id")), column("result", sql.Text))
    return _Tables(metadata, collector, round_, report, checkpoint, result)


def _table(sql: Any, metadata: Any, name: str, *columns: Any, **more: Any) -> Any:
    return sql.Table(name, metadata, *columns, **more)


def _library() -> Any:
    try:
        import sqlalchemy

        return sqlalchemy
    except ImportError:
        missing = MissingExtra('a collector needs the library SQLAlchemy. Install it: pip install "kveil[service]"')
    raise missing
