"""A collector's database, opened: a SQLite file, or a PostgreSQL database by its URL. Transactions, and errors in words.

Ids are binary, which both order byte by byte; 64-bit words live inside blobs only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kveil.collect import engine, tables
from kveil.errors import InvalidType, InvalidValue, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Opened:
    """Tables of a collector at a path (SQLite) or a database URL."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._sql = engine.library()
        self._tables = tables.tables(self._sql)
        if not isinstance(place, str | os.PathLike):
            raise InvalidType("a collector's storage is the path of a file, or the URL of a database.")
        self._path = None if "://" in os.fspath(place) else os.path.abspath(os.fspath(place))
        try:
            self._engine = engine.open_engine(self._sql, os.fspath(place))
            self._writes = self._engine.execution_options(kveil="writes")
            if self._path is not None:
                tables.copy_aside(self._path)
            with self._reading() as db:  # no lock is asked for where everything is as it should be
                fits = tables.is_current(self._sql, self._tables, db)
            if not fits:
                with self._writing() as db:
                    fits = not self._is_foreign(db) and tables.prepare(self._sql, self._tables, db)
        except (self._sql.exc.SQLAlchemyError, StorageUnavailable, ImportError, OSError):  # a driver may be missing
            fits = False
        if not fits:
            name = "this" if self._path is None else repr(os.fspath(place))  # a URL may hold a password
            raise InvalidValue(
                f"{name} is no collector's database, or one of another version, or it cannot be reached or written. Choose a new "
                "file in a folder that exists, or the one that a collector has made."
            )

    @property
    def path(self) -> str | None:
        """Of the SQLite file; None for other places."""
        return self._path

    @property
    def is_sqlite(self) -> bool:
        return bool(self._engine.dialect.name == "sqlite")

    def check_durable(self) -> None:
        """Refuse a server that acknowledges what it may lose."""
        if self.is_sqlite:
            return
        with self._reading() as db:
            is_off = [name for name in ("fsync", "full_page_writes") if db.exec_driver_sql(f"SHOW {name}").scalar() != "on"]
        if is_off:
            raise InvalidValue(
                f"this PostgreSQL server runs with {' and '.join(is_off)} off: it could lose reports that it has acknowledged. "
                "Turn it on."
            )

    def dispose(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    def _is_foreign(self, db: Connection) -> bool:
        """Whether a file holds tables of something else, a device's ledger say. A server may hold many things."""
        return db.dialect.name == "sqlite" and not engine.is_own(self._sql.inspect(db).get_table_names())

    def _select(self, table: str, *names: str, **where: Any) -> Any:
        columns = getattr(self._tables, table).c
        asked = self._sql.select(*(columns[name] for name in names))
        return asked.where(*(columns[name] == value for name, value in where.items()))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with engine.errors_in_words(self._sql), self._writes.begin() as db:
            yield db

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with engine.errors_in_words(self._sql), self._engine.connect() as db:
            yield db

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        with engine.errors_in_words(self._sql), self._engine.execution_options(kveil="alone").connect() as db:
            yield db
