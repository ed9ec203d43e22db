"""A table for each round's reports and each campaign's admissions, on PostgreSQL: partitions of `report` and `spent`.

PostgreSQL keeps the place and the transaction of every row, and old versions of rows after they are deleted. So a round that
closes is written anew in the order of its ids, into another table, and the old one is dropped; deleting is dropping. SQLite has
one table in the order of ids, so nothing is done here: `Storage.tidy` is its part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

KEYS = {"report": ("round_id", "report_id"), "spent": ("campaign_id", "key")}


def make(db: Connection, table: str, number: int) -> None:
    if _has_parts(db):
        db.exec_driver_sql(f"CREATE TABLE {name_of(table, number)} PARTITION OF {table} FOR VALUES IN ({number})")


def make_all(db: Connection) -> None:
    """For rounds and campaigns that are there already."""
    for table, source in (("report", "round"), ("spent", "campaign")):
        for (number,) in db.exec_driver_sql(f"SELECT id FROM {source} ORDER BY id").all():
            make(db, table, int(number))


def rewrite(db: Connection, table: str, number: int) -> None:
    """The same rows in the order of their keys, from one transaction; the table that knew more is dropped."""
    if not _has_parts(db):
        return
    name, (column, key) = name_of(table, number), KEYS[table]
    db.exec_driver_sql(f"CREATE TABLE {name}_new (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    db.exec_driver_sql(f"INSERT INTO {name}_new SELECT * FROM {name} ORDER BY {key}")
    db.exec_driver_sql(f"ALTER TABLE {name}_new ADD PRIMARY KEY ({column}, {key})")
    db.exec_driver_sql(
        f"ALTER TABLE {name}_new ADD CONSTRAINT {name}_only CHECK ({column} = {number})"
    )  # so that attaching reads nothing
    db.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")  # the parent first, as readers do
    db.exec_driver_sql(f"DROP TABLE {name}")
    db.exec_driver_sql(f"ALTER TABLE {name}_new RENAME TO {name}")
    db.exec_driver_sql(f"ALTER INDEX {name}_new_pkey RENAME TO {name}_pkey")
    db.exec_driver_sql(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES IN ({number})")
    db.exec_driver_sql(f"ALTER TABLE {name} DROP CONSTRAINT {name}_only")


def drop(db: Connection, table: str, number: int) -> None:
    if _has_parts(db):
        db.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        db.exec_driver_sql(f"DROP TABLE IF EXISTS {name_of(table, number)}")


def empty(db: Connection, table: str, number: int) -> bool:
    """Drop what is in it; False where rows are to be deleted instead."""
    drop(db, table, number)
    make(db, table, number)
    return _has_parts(db)


def name_of(table: str, number: int) -> str:
    return f"{table}_{int(number)}"


def _has_parts(db: Connection) -> bool:
    return db.dialect.name == "postgresql"
