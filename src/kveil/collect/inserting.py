"""Reports as they come in: stored once each, in an open round, and admitted where proofs are asked for.

Nothing is kept of a report's sender or of the moment it came; see `tables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from kveil.collect import engine, round_tables
from kveil.collect.opened import Opened
from kveil.collect.stored import Proofs, Row, Taken
from kveil.errors import InvalidValue

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_PARAMETERS = 500  # of one statement
MOST_ROWS = 128  # of one statement that inserts reports; older SQLite takes 999 parameters


class Inserting(Opened):
    """The part of a storage that takes reports in."""

    def insert(self, manifest_hash: str, rows: Sequence[Row], proofs: Proofs | None = None) -> Taken:
        """Store what is new, if the round is open, and admitted where proofs are asked for. A round that is gone is closed.

        An id is used once in a campaign: a report that was sent to another round, too, is a replay and is not stored.
        """
        unique = sorted(set(rows))  # in the order of ids: two writers with the same ones wait for each other, never in a ring
        if proofs is None and len({row.report_id for row in unique}) == len(unique):
            try:
                return self._insert_new(manifest_hash, unique)
            except _Repeated:  # undone as a whole
                pass
        try:
            return self._insert_others(manifest_hash, rows, proofs)
        except InvalidValue:  # another process used one of these keys at this very moment: tried again, it is found
            raise engine.unavailable(is_passing=True) from None

    def _insert_new(self, manifest_hash: str, rows: list[Row]) -> Taken:
        """The usual case, in two statements: the round is open and every row is new."""
        with self._writing() as db:
            round_id, state, campaign, number = self._locked(db, manifest_hash)
            if state != "open" or (number > 1 and self._rows(db, self._ids_of(db, campaign), rows)):
                raise _Repeated
            if self._hot(db, round_id, rows) != len(rows):
                raise _Repeated
        return Taken(round_id, True, {}, None)

    def _insert_others(self, manifest_hash: str, rows: Sequence[Row], proofs: Proofs | None) -> Taken:
        with self._writing() as db:
            round_id, state, campaign, _ = self._locked(db, manifest_hash)
            rounds = self._ids_of(db, campaign)
            before = self._rows(db, rounds, rows)
            new = {row.report_id: row for row in reversed(rows) if row.report_id not in before}  # the first of equal ids
            if state != "open" or not new:
                return Taken(round_id, state == "open", before, before)
            if proofs is not None:
                new = self._admitted(db, campaign, new, proofs)
            self._hot(db, round_id, sorted(new.values()))
            return Taken(round_id, True, before, self._rows(db, rounds, rows))

    def _locked(self, db: Connection, manifest_hash: str) -> tuple[int, str, str, int]:
        """By the hash, never by an id that was looked up before: after a campaign is deleted its ids may be another's."""
        mark, lock = ("?", "") if db.dialect.name == "sqlite" else ("%s", " FOR SHARE")
        asked = f"SELECT id, state, campaign, number FROM round WHERE manifest_hash = {mark}{lock}"
        found = db.exec_driver_sql(asked, (manifest_hash,)).one_or_none()
        return (0, "gone", "", 1) if found is None else (found[0], found[1], found[2], found[3])

    def _ids_of(self, db: Connection, campaign: str) -> list[int]:
        return list(db.execute(self._select("round", "id", campaign=campaign)).scalars())

    def _hot(self, db: Connection, round_id: int, rows: Sequence[Row]) -> int:
        """Insert what is not there yet; how many were new. Plain statements: the library's own cost four times as much."""
        if not rows:
            return 0
        if db.dialect.name == "sqlite":
            return sum(_few(db, round_id, rows[start:end]) for start, end in _spans(len(rows)))
        statement = (
            f"INSERT INTO {round_tables.name_of('report', round_id)} SELECT {int(round_id)}, i, q, v "
            "FROM unnest(%b::bytea[], %b::int[], %b::int[]) AS t(i, q, v) ON CONFLICT DO NOTHING"
        )
        return db.exec_driver_sql(statement, tuple(map(list, zip(*rows, strict=True)))).rowcount

    def _admitted(self, db: Connection, campaign: str, new: dict[bytes, Row], proofs: Proofs) -> dict[bytes, Row]:
        """Rows whose key was not used before, each key for one of them; the keys count as used with this transaction."""
        number = int(db.execute(self._select("campaign", "id", hash=campaign)).scalar_one())
        keys = {row_id: proofs.keys[row_id] for row_id in new if row_id in proofs.keys}
        fits = self._found(db, "code", "digest", number, keys.values()) if proofs.is_listed else set(keys.values())
        used = self._found(db, "spent", "key", number, [proofs.spent(key) for key in fits])
        fits = {key for key in fits if proofs.spent(key) not in used}
        owners = {key: row_id for row_id, key in keys.items() if key in fits}  # `new` holds the first last, so it has the key
        if owners:
            values: Any = [{"campaign_id": number, "key": key} for key in sorted(map(proofs.spent, owners))]
            db.execute(self._tables.spent.insert(), values)
        return {row_id: new[row_id] for row_id in owners.values()}

    def _found(self, db: Connection, table: str, column: str, campaign_id: int, keys: Any) -> set[bytes]:
        found, listed = set(), sorted(set(keys))
        for start in range(0, len(listed), MOST_PARAMETERS):
            some = listed[start : start + MOST_PARAMETERS]
            asked = self._select(table, column, campaign_id=campaign_id)
            found |= {bytes(key) for key in db.execute(asked.where(getattr(self._tables, table).c[column].in_(some))).scalars()}
        return found

    def _rows(self, db: Connection, rounds: list[int], rows: Sequence[Row]) -> dict[bytes, tuple[int, Row]]:
        """Reports of these rounds that have the ids of `rows`."""
        report, found = self._tables.report.c, {}
        for start in range(0, len(rows), MOST_PARAMETERS):
            ids = [row.report_id for row in rows[start : start + MOST_PARAMETERS]]
            asked = self._sql.select(report.round_id, report.report_id, report.query, report.idx)
            for number, report_id, query, idx in db.execute(asked.where(report.round_id.in_(rounds), report.report_id.in_(ids))):
                found[bytes(report_id)] = int(number), Row(bytes(report_id), int(query), int(idx))
        return found


def _few(db: Connection, round_id: int, rows: Sequence[Row]) -> int:
    """Insert rows into SQLite by one statement, so that the interpreter is let go and asked for again once, not for each row."""
    marks = ",".join([f"({int(round_id)},?,?,?)"] * len(rows))
    values = tuple(chain.from_iterable(rows))
    return db.exec_driver_sql(f"INSERT INTO report VALUES {marks} ON CONFLICT DO NOTHING", values).rowcount


def _spans(n: int) -> Iterator[tuple[int, int]]:
    """Pieces of n rows, each a power of two, so that a few prepared statements do for all."""
    start = 0
    while start < n:
        end = start + min(MOST_ROWS, 1 << (n - start).bit_length() - 1)
        yield start, end
        start = end


class _Repeated(Exception):
    """Undoes a transaction whose rows are not all new."""
