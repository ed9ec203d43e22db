"""The database behind a collector: durable commits, one writer at a time on SQLite, and its errors as ours.

SQLite by default: WAL, every commit on the disk before it is acknowledged. PostgreSQL by its URL, `postgresql+psycopg://...`.
Parameters are hidden in every error and log of the library: they are reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kveil.errors import InvalidValue, MissingExtra, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Engine

PATIENCE = 30_000  # milliseconds to wait for another writer
CHECKPOINT = 4_000  # pages of the log before they are copied into the file: with fewer, busy pages are copied often
PASSING = ("08", "40", "55P03", "57P")  # beginnings of SQLSTATE: connection, conflict, lock, server stopped
SPENT_AT_ONCE = "another process was quicker with this very step: see what is there now. Nothing was stored."


def library() -> Any:
    try:
        import sqlalchemy

        return sqlalchemy
    except ImportError:
        missing = MissingExtra('a collector needs the library SQLAlchemy. Install it: pip install "kveil[service]"')
    raise missing


def open_engine(sql: Any, place: str) -> Engine:
    address = place if "://" in place else sql.URL.create("sqlite", database=os.path.abspath(place))
    engine: Engine = sql.create_engine(address, hide_parameters=True)
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _sqlite_connected)
        sql.event.listen(engine, "begin", _sqlite_begun)
    elif engine.dialect.name == "postgresql":
        sql.event.listen(engine, "connect", _postgresql_connected)
    else:
        raise InvalidValue(
            "a collector's storage is a SQLite file, or a PostgreSQL database: postgresql+psycopg://user@host/name."
        )
    return engine


def is_own(tables: list[str]) -> bool:
    return not tables or "collector" in tables


@contextmanager
def errors_in_words(sql: Any) -> Iterator[None]:
    """Errors of a database quote statements, so none of them leaves here."""
    try:
        yield
    except sql.exc.IntegrityError:
        raise InvalidValue(SPENT_AT_ONCE) from None
    except sql.exc.SQLAlchemyError as error:
        raise unavailable(is_passing=_is_passing(sql, error)) from None


def unavailable(*, is_passing: bool) -> StorageUnavailable:
    return StorageUnavailable(
        "the collector's storage is locked, full, damaged or out of reach. Nothing of this step is relied on: make room, "
        "or wait, and try it again. A report that is sent again is stored once.",
        is_passing=is_passing,
    )


def _is_passing(sql: Any, error: Any) -> bool:
    """Whether trying again soon may help: a lock, a conflict, a lost connection. A full disk stays full for a while."""
    if isinstance(error, sql.exc.TimeoutError):
        return True
    cause = getattr(error, "orig", None)
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return str(state).startswith(PASSING)
    is_lost = bool(getattr(error, "connection_invalidated", False))
    return is_lost or type(cause).__module__.startswith("psycopg") or "locked" in str(cause)


def _sqlite_connected(db: Any, record: Any) -> None:
    db.isolation_level = None  # transactions begin where we say
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    own = ["journal_mode=WAL", "secure_delete=ON"] if is_own(names) else []  # which would stay with another's file
    always = (f"busy_timeout={PATIENCE}", "synchronous=FULL", f"wal_autocheckpoint={CHECKPOINT}", "temp_store=MEMORY")
    for setting in (*always, *own):  # what a statement keeps for undoing itself holds reports, so it stays out of files
        db.execute(f"PRAGMA {setting}")


def _sqlite_begun(db: Any) -> None:
    """Writers take the lock at once; "alone" is for statements that stand outside any transaction."""
    how = db.get_execution_options().get("kveil", "reads")
    if how != "alone":
        db.exec_driver_sql("BEGIN IMMEDIATE" if how == "writes" else "BEGIN")


def _postgresql_connected(db: Any, record: Any) -> None:
    with db.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")  # an acknowledgement means the disk, whatever the server's default
    db.commit()
