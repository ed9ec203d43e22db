"""The tables of a collector, version 2, and how a storage of version 1 becomes one.

A report is its round, its id and what it says: no time, no order and no sender. PostgreSQL keeps the order in which rows came
and their transactions; there every round has a table of its own (`round_tables`), which is written anew when the round closes.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kveil.collect import round_tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION = 2
COPY_SUFFIX = ".version-1"  # of the copy of a SQLite file that is kept beside it; it holds all reports of then
TOO_FEW = "ended: too few reports"  # what version 1 kept in the place of a result


class Tables(NamedTuple):
    metadata: Any
    collector: Any
    campaign: Any
    round: Any
    report: Any
    checkpoint: Any
    result: Any
    spent: Any
    code: Any
    rotation: Any
    lease: Any


def tables(sql: Any) -> Tables:
    metadata, column, own = sql.MetaData(), partial(sql.Column, nullable=False), partial(sql.Column, primary_key=True)
    table = partial(_table, sql, metadata)
    hash_, state = sql.String(64), sql.CheckConstraint("state IN ('open','closed','decoded')")
    collector = table("collector", own("version", sql.Integer))
    campaign = table(
        "campaign", own("id", sql.Integer), column("hash", hash_, unique=True), sql.Column("ended_day", sql.Date),
        sql.Column("end_reason", sql.String(16)), sql.Column("end_notice", sql.LargeBinary),
    )  # fmt: skip
    round_ = table(
        "round", own("id", sql.Integer), column("campaign", hash_), column("number", sql.Integer),
        column("manifest_hash", hash_, unique=True), column("state", sql.String(8), state), column("signed", sql.LargeBinary),
        column("notes", sql.Text), sql.Column("reports", sql.Integer), sql.UniqueConstraint("campaign", "number"),
    )  # fmt: skip
    one_round, key = partial(own, "round_id", sql.Integer), sql.LargeBinary(32)
    report = table(
        "report", own("round_id", sql.Integer, autoincrement=False), own("report_id", sql.LargeBinary(16)),
        column("query", sql.Integer), column("idx", sql.Integer),
        sqlite_with_rowid=False, postgresql_partition_by="LIST (round_id)",
    )  # fmt: skip
    checkpoint = table(
        "checkpoint", one_round(sql.ForeignKey("round.id")), own("task", hash_), column("manifest_hash", hash_),
        column("watermark", sql.LargeBinary), column("statistic", sql.LargeBinary), column("is_done", sql.Boolean),
    )  # fmt: skip
    result = table("result", one_round(sql.ForeignKey("round.id")), column("result", sql.Text))
    spent = table(
        "spent", own("campaign_id", sql.Integer, autoincrement=False), own("key", key),
        sqlite_with_rowid=False, postgresql_partition_by="LIST (campaign_id)",
    )  # fmt: skip
    code = table("code", own("campaign_id", sql.Integer, autoincrement=False), own("digest", key), sqlite_with_rowid=False)
    rotation = table("rotation", own("serial", sql.Integer, autoincrement=False), column("statement", sql.LargeBinary))
    lease = table("lease", own("name", sql.String(16)), column("holder", hash_), column("until", sql.Float))
    return Tables(metadata, collector, campaign, round_, report, checkpoint, result, spent, code, rotation, lease)


def is_current(sql: Any, made: Tables, db: Connection) -> bool:
    """Whether tables of this version are there."""
    return bool(sql.inspect(db).has_table("collector")) and list(db.execute(sql.select(made.collector.c.version)).scalars()) == [
        VERSION
    ]


def prepare(sql: Any, made: Tables, db: Connection) -> bool:
    """Tables that are there, new or brought up to date in this transaction; False if another version has made them."""
    if db.dialect.name == "postgresql":
        db.exec_driver_sql("SELECT pg_advisory_xact_lock(5496)")  # whoever starts at the same moment waits, and finds them
    if sql.inspect(db).has_table("collector"):
        found = list(db.execute(sql.select(made.collector.c.version)).scalars())
        if found == [1]:
            _upgrade(sql, made, db)
        return found in ([1], [VERSION])
    made.metadata.create_all(db)
    db.execute(made.collector.insert().values(version=VERSION))
    return True


def copy_aside(path: str) -> None:
    """Keep a SQLite file of version 1 as it was, beside it, for its owner alone. Anything else is left alone."""
    copy = path + COPY_SUFFIX
    if not os.path.isfile(path) or os.path.exists(copy):
        return
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as old:
        try:
            found = old.execute("SELECT version FROM collector").fetchall()
        except sqlite3.DatabaseError:  # not ours: `Storage` says so
            return
        if found == [(1,)]:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(copy)) as new:
                old.backup(new)


def _upgrade(sql: Any, made: Tables, db: Connection) -> None:
    """From version 1: days of reports are dropped, and campaigns, their ends and closed rounds' counts get rows of their own."""
    db.exec_driver_sql("ALTER TABLE round ADD COLUMN reports INTEGER")
    if db.dialect.name == "sqlite":
        db.exec_driver_sql("ALTER TABLE report DROP COLUMN ingested_day")
        made.metadata.create_all(db)
    else:
        db.exec_driver_sql("ALTER TABLE report RENAME TO report_version_1")
        db.exec_driver_sql("ALTER INDEX report_pkey RENAME TO report_version_1_pkey")
        made.metadata.create_all(db)
    for name in db.execute(sql.select(made.round.c.campaign).where(made.round.c.number == 1).order_by(made.round.c.id)).scalars():
        db.execute(made.campaign.insert().values(hash=name))
    round_tables.make_all(db)
    if db.dialect.name != "sqlite":
        columns = "round_id, report_id, query, idx"
        db.exec_driver_sql(f"INSERT INTO report SELECT {columns} FROM report_version_1 ORDER BY round_id, report_id")
        db.exec_driver_sql("DROP TABLE report_version_1")
    db.exec_driver_sql("UPDATE round SET reports = (SELECT count(*) FROM report WHERE round_id = round.id) WHERE state <> 'open'")
    few = sql.select(made.round.c.campaign).join(made.result, made.result.c.round_id == made.round.c.id)
    few = few.where(made.result.c.result == TOO_FEW)
    today = sql.func.current_date()
    ended = made.campaign.update().where(made.campaign.c.hash.in_(few.scalar_subquery()))
    db.execute(ended.values(end_reason="few reports", ended_day=today))
    db.execute(made.result.delete().where(made.result.c.result == TOO_FEW))
    db.execute(made.collector.update().values(version=VERSION))


def _table(sql: Any, metadata: Any, name: str, *columns: Any, **more: Any) -> Any:
    return sql.Table(name, metadata, *columns, **more)
