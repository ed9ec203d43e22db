"""Where a collector keeps rounds, reports and half-done sums, so that nothing acknowledged is lost and nothing is counted twice.

How a database is opened is in `opened`, how reports come in is in `inserting`. Here are a campaign's steps: rounds, sums,
results, ends and deletion.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from kveil.collect import engine, round_tables, tables
from kveil.collect.inserting import Inserting
from kveil.collect.stored import Checkpoint, StoredCampaign, StoredRound

if TYPE_CHECKING:
    from sqlalchemy import Connection

DELETED_AT_ONCE = 5_000  # so that nobody waits long for the lock


class Storage(Inserting):
    """A collector's storage at a path (SQLite) or a database URL. Every method is one transaction, unless it says otherwise."""

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
