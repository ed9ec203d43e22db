"""Where a collector keeps rounds, reports and half-done sums, so that nothing acknowledged is lost and nothing is counted twice.

A SQLite file, or a PostgreSQL database by its URL. Ids are binary, which both order byte by byte; 64-bit words live inside blobs
only. Nothing is kept of a report's sender or of the moment it came; see `tables`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from kveil.collect import engine, round_tables, tables
from kveil.errors import InvalidType, InvalidValue, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_PARAMETERS = 500  # of one statement
DELETED_AT_ONCE = 5_000  # so that nobody waits long for the lock


class StoredRound(NamedTuple):
    """A round as it is kept. state: "open", "closed" or "decoded"; signed: the manifest as devices get it; notes: JSON of the
    protocol's own few numbers for later rounds; reports: how many there were when it closed."""

    id: int
    campaign: str
    number: int
    manifest_hash: str
    state: str
    signed: bytes
    notes: str
    reports: int | None = None


class StoredCampaign(NamedTuple):
    """end_reason, end_notice: of one that ended without a result, and what was signed about it, if somebody with the key did."""

    id: int
    hash: str
    ended_day: date | None
    end_reason: str | None
    end_notice: bytes | None


class Checkpoint(NamedTuple):
    """A sum over the reports up to and including the id `watermark`."""

    watermark: bytes
    statistic: bytes
    is_done: bool


class Row(NamedTuple):
    """What is kept of a report, besides its round."""

    report_id: bytes
    query: int
    idx: int


class Taken(NamedTuple):
    """What an insert found: the round, whether it is open, and what was kept under these ids before and is now, with its round.

    None after: every row is stored as it was sent.
    """

    round_id: int
    is_open: bool
    before: Mapping[bytes, tuple[int, Row]]
    after: Mapping[bytes, tuple[int, Row]] | None


class Proofs(NamedTuple):
    """What admits reports: a key of 32 bytes by the id of its report. is_listed: only keys among the campaign's codes count."""

    keys: Mapping[bytes, bytes]
    is_listed: bool


class Storage:
    """Tables of a collector at a path (SQLite) or a database URL. Every method is one transaction, unless it says otherwise."""

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

    def campaigns(self) -> list[str]:
        """Hashes of all campaigns, in the order they were opened."""
        with self._reading() as db:
            return list(db.execute(self._select("campaign", "hash").order_by(self._tables.campaign.c.id)).scalars())

    def campaign(self, campaign: str) -> StoredCampaign | None:
        with self._reading() as db:
            row = db.execute(self._select("campaign", *StoredCampaign._fields, hash=campaign)).one_or_none()
        return None if row is None else StoredCampaign(*row)

    def rounds(self, campaign: str) -> list[StoredRound]:
        """In order."""
        with self._reading() as db:
            rows = db.execute(self._select("round", *StoredRound._fields, campaign=campaign))
            return sorted((StoredRound(*row) for row in rows), key=lambda one: one.number)

    def round(self, manifest_hash: str) -> StoredRound | None:
        with self._reading() as db:
            row = db.execute(self._select("round", *StoredRound._fields, manifest_hash=manifest_hash)).one_or_none()
        return None if row is None else StoredRound(*row)

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
            values: Any = [(round_id, *row) for row in rows]
            return db.exec_driver_sql("INSERT INTO report VALUES (?,?,?,?) ON CONFLICT DO NOTHING", values).rowcount
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
        fits -= self._found(db, "spent", "key", number, keys.values())
        owners = {key: row_id for row_id, key in keys.items() if key in fits}  # `new` holds the first last, so it has the key
        if owners:
            values: Any = [{"campaign_id": number, "key": key} for key in sorted(owners)]
            db.execute(self._tables.spent.insert(), values)
        return {row_id: new[row_id] for row_id in owners.values()}

    def _found(self, db: Connection, table: str, column: str, campaign_id: int, keys: Any) -> set[bytes]:
        found, listed = set(), sorted(set(keys))
        for start in range(0, len(listed), MOST_PARAMETERS):
            some = listed[start : start + MOST_PARAMETERS]
            asked = self._select(table, column, campaign_id=campaign_id)
            found |= {bytes(key) for key in db.execute(asked.where(getattr(self._tables, table).c[column].in_(some))).scalars()}
        return found

    def count(self, round_id: int) -> int:
        """Reports of a round."""
        with self._reading() as db:
            return self._count(db, round_id)

    def close(self, round_id: int, least: int) -> bool:
        """From open to closed, if at least so many reports are there: no insert can come after. False: too few, still open.

        Rows are left in the order of their ids, and nothing but them says in which order they came (`tidy`).
        """
        table = self._tables.round
        with self._writing() as db:
            state, campaign = db.execute(self._select("round", "state", "campaign", id=round_id).with_for_update()).one()
            if state == "open":
                n = self._count(db, round_id)
                if n < least:
                    return False
                db.execute(table.update().where(table.c.id == round_id).values(state="closed", reports=n))
                number = int(db.execute(self._select("campaign", "id", hash=campaign)).scalar_one())
                round_tables.rewrite(db, "report", round_id)
                round_tables.rewrite(db, "spent", number)
        self.tidy()
        return True

    def tidy(self) -> None:
        """SQLite keeps the order of recent commits in its log, and of rows inside a page: write both anew.

        `StorageUnavailable` if somebody reads all the while, so that the log could not be cut: try it again.
        """
        if self.is_sqlite:
            with self._alone() as db:
                db.exec_driver_sql("VACUUM")
                is_blocked = db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            if is_blocked:
                raise engine.unavailable(is_passing=True)

    def end(self, campaign: str, reason: str, day: date, notice: bytes | None) -> int:
        """Nothing is decoded any more, and reports are deleted; their number. Ended before: only a missing notice is added."""
        table, round_ = self._tables.campaign, self._tables.round
        with self._writing() as db:
            ids = list(db.execute(self._select("round", "id", campaign=campaign).with_for_update()).scalars())
            n = sum(self._count(db, number) for number in ids)
            for number in ids:
                kept = self._sql.func.coalesce(round_.c.reports, self._count(db, number))
                db.execute(round_.update().where(round_.c.id == number).values(state="decoded", reports=kept))
            known = table.update().where(table.c.hash == campaign)
            db.execute(known.where(table.c.ended_day.is_(None)).values(ended_day=day, end_reason=reason))
            db.execute(known.where(table.c.end_notice.is_(None), table.c.end_reason == reason).values(end_notice=notice))
        self.delete_reports(campaign)
        return n

    def delete_reports(self, campaign: str) -> None:
        """Reports, half-done sums and admissions of a campaign, in small transactions: deleted from the storage. Manifests,
        counts, result and notice stay. A copy that a change of versions left beside a SQLite file goes, too."""
        stored = self.campaign(campaign)
        assert stored is not None
        numbers = [one.id for one in self.rounds(campaign)]
        for table, owners in (("report", numbers), ("spent", [stored.id])):
            for owner in owners:
                self._empty(table, owner)
        with self._writing() as db:
            db.execute(self._tables.checkpoint.delete().where(self._tables.checkpoint.c.round_id.in_(numbers)))
            db.execute(self._tables.code.delete().where(self._tables.code.c.campaign_id == stored.id))
        if self._path is not None and os.path.exists(self._path + tables.COPY_SUFFIX):
            os.remove(self._path + tables.COPY_SUFFIX)
        self.tidy()

    def forget(self, campaign: str) -> None:
        """Everything about a campaign: the service then answers as if there had been none."""
        self.delete_reports(campaign)
        all_ = self._tables
        with self._writing() as db:
            ids = self._ids_of(db, campaign)
            for number in ids:
                round_tables.drop(db, "report", number)
            for number in db.execute(self._select("campaign", "id", hash=campaign)).scalars().all():
                round_tables.drop(db, "spent", number)
            db.execute(all_.result.delete().where(all_.result.c.round_id.in_(ids)))
            db.execute(all_.round.delete().where(all_.round.c.campaign == campaign))
            db.execute(all_.campaign.delete().where(all_.campaign.c.hash == campaign))
        self.tidy()

    def _empty(self, table: str, owner: int) -> None:
        column, key = round_tables.KEYS[table]
        while True:
            with self._writing() as db:
                if round_tables.empty(db, table, owner):
                    return
                some = f"SELECT {key} FROM {table} WHERE {column} = ? ORDER BY {key} LIMIT {DELETED_AT_ONCE}"
                done = db.exec_driver_sql(f"DELETE FROM {table} WHERE {column} = ? AND {key} IN ({some})", (owner, owner))
                if done.rowcount < DELETED_AT_ONCE:
                    return

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
            if done is None:
                round_tables.make(db, "spent", self._added(db, "campaign", {"hash": following.campaign}))
            self._decoded(db, done)
            round_tables.make(db, "report", self._added(db, "round", values))

    def add_result(self, done: int, result: str, day: date) -> None:
        """The round `done` is decoded and the campaign has ended, in one step."""
        campaign = self._tables.campaign
        with self._writing() as db:
            self._decoded(db, done)
            db.execute(self._tables.result.insert().values(round_id=done, result=result))
            name = self._select("round", "campaign", id=done).scalar_subquery()
            db.execute(campaign.update().where(campaign.c.hash == name).values(ended_day=day))

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

    def add_codes(self, campaign: str, digests: Sequence[bytes]) -> None:
        """One-time codes of a campaign, by their digests."""
        with self._writing() as db:
            number = db.execute(self._select("campaign", "id", hash=campaign)).scalar_one()
            values: Any = [{"campaign_id": number, "digest": digest} for digest in sorted(digests)]
            db.execute(self._tables.code.insert(), values)

    def admitted(self, campaign: str) -> int:
        """How many proofs were used in a campaign."""
        campaigns, spent = self._tables.campaign, self._tables.spent
        asked = self._sql.select(self._sql.func.count()).select_from(spent.join(campaigns, campaigns.c.id == spent.c.campaign_id))
        with self._reading() as db:
            return int(db.execute(asked.where(campaigns.c.hash == campaign)).scalar_one())

    def add_rotation(self, serial: int, statement: bytes) -> None:
        with self._writing() as db:
            db.execute(self._tables.rotation.insert().values(serial=serial, statement=statement))

    def rotations(self) -> list[bytes]:
        """Statements of key changes, oldest first."""
        with self._reading() as db:
            asked = self._select("rotation", "statement").order_by(self._tables.rotation.c.serial)
            return [bytes(one) for one in db.execute(asked).scalars()]

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Whether `holder` may do what `name` names for so long: nobody else holds it. The database's clock decides."""
        lease = self._tables.lease
        with self._writing() as db:
            is_sqlite = db.dialect.name == "sqlite"
            seconds_now = "(julianday('now') - 2440587.5) * 86400.0" if is_sqlite else "extract(epoch FROM clock_timestamp())"
            now = float(db.exec_driver_sql(f"SELECT {seconds_now}").scalar_one())
            held = db.execute(self._select("lease", "holder", "until", name=name).with_for_update()).one_or_none()
            if held is None:
                db.execute(lease.insert().values(name=name, holder=holder, until=now + seconds))
                return True
            if held[0] != holder and held[1] >= now:
                return False
            db.execute(lease.update().where(lease.c.name == name).values(holder=holder, until=now + seconds))
            return True

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

    def _decoded(self, db: Connection, round_id: int | None) -> None:
        table = self._tables.round
        db.execute(table.update().where(table.c.id == round_id).values(state="decoded"))

    def _added(self, db: Connection, table: str, values: dict[str, Any]) -> int:
        """The id of a new row."""
        made = getattr(self._tables, table)
        return int(db.execute(made.insert().values(**values).returning(made.c.id)).scalar_one())

    def _count(self, db: Connection, round_id: int) -> int:
        asked = self._sql.select(self._sql.func.count()).where(self._tables.report.c.round_id == round_id)
        return int(db.execute(asked).scalar_one())

    def _rows(self, db: Connection, rounds: list[int], rows: Sequence[Row]) -> dict[bytes, tuple[int, Row]]:
        """Reports of these rounds that have the ids of `rows`."""
        report, found = self._tables.report.c, {}
        for start in range(0, len(rows), MOST_PARAMETERS):
            ids = [row.report_id for row in rows[start : start + MOST_PARAMETERS]]
            asked = self._sql.select(report.round_id, report.report_id, report.query, report.idx)
            for number, report_id, query, idx in db.execute(asked.where(report.round_id.in_(rounds), report.report_id.in_(ids))):
                found[bytes(report_id)] = int(number), Row(bytes(report_id), int(query), int(idx))
        return found

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


class _Repeated(Exception):
    """Undoes a transaction whose rows are not all new."""
