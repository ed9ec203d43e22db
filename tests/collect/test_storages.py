"""What SQLite and PostgreSQL both promise: the same statuses and bytes, no deadlock, no order after a round closes."""

import os
import random
import sqlite3
import threading
from contextlib import closing
from datetime import date

import numpy as np
import pytest
from campaigns import KEY, OPEN, make_campaign, make_collector, noon

from kveil.collect import tables
from kveil.collect.collector import Collector, Status
from kveil.collect.inserting import _spans
from kveil.collect.manifest import Manifest
from kveil.collect.report import Report
from kveil.collect.storage import Storage
from kveil.collect.stored import Proofs, Row
from kveil.errors import InvalidValue, StorageUnavailable

RNG = random.Random(19)  # ids of nobody


def ids(n):
    return [RNG.randbytes(16) for _ in range(n)]


def reports(n):
    return [Report(0, one, i % 4).to_bytes() for i, one in enumerate(ids(n))]


def asked(storage, statement):
    with storage._reading() as db:
        return db.exec_driver_sql(statement).all()


def test_statuses_and_result_are_the_same_on_both(place, tmp_path):
    told = []
    batch = [*reports(60), b"x"]
    for where in (place, tmp_path / "other.db"):
        with make_collector(where, chunk=16) as collector:
            first = collector.open(make_campaign(protocol="refine", epsilon=4, n=200), *OPEN)
            (campaign,) = collector.campaigns()
            statuses = [collector.submit_many(first.hash, batch), collector.submit_many(first.hash, batch[::-1])]
            altered = batch[0][:-2] + b"\3\0"
            statuses.append([collector.submit(first.hash, altered)])
            collector.close(campaign)
            second = collector.next_manifest(campaign, *OPEN)
            statuses.append(collector.submit_many(second.hash, [*batch[:2], Report(0, bytes(16), 0).to_bytes()]))
            statuses.append(collector.submit_many(first.hash, [batch[0], altered, Report(0, bytes(16), 0).to_bytes()]))
            while collector.state(campaign)[1] != "done":
                collector.close(campaign)
                collector.next_manifest(campaign, *OPEN)
            told.append((statuses, collector.result(campaign).to_json()))
    assert told[0] == told[1]
    statuses = told[0][0]
    assert set(statuses[0]) == {Status.NEW, Status.MALFORMED}
    assert set(statuses[1]) == {Status.SAME, Status.MALFORMED}
    assert statuses[2:] == [
        [Status.DIFFERENT],
        [Status.DIFFERENT] * 2 + [Status.NEW],
        [Status.SAME, Status.DIFFERENT, Status.DIFFERENT],
    ]


def test_rows_go_in_by_pieces_that_leave_none_out():
    for n in (0, 1, 2, 127, 128, 129, 1000):
        pieces = list(_spans(n))
        assert [place for start, end in pieces for place in range(start, end)] == list(range(n))
        assert {end - start for start, end in pieces} <= {1, 2, 4, 8, 16, 32, 64, 128}, "few statements are prepared"


def test_a_proof_is_used_once_in_each_round_where_everyone_answers_in_all(place):
    collector, signed, _ = opened(place)
    one, two, three = (Row(report_id, 0, 0) for report_id in sorted(ids(3)))
    for row, once_in, is_taken in ((one, b"first", True), (two, b"first", False), (three, b"second", True)):
        taken = collector._storage.insert(signed.hash, [row], Proofs({row.report_id: bytes(32)}, False, once_in))
        assert (row.report_id in taken.after) == is_taken


def opened(place, **terms):
    collector = make_collector(place)
    signed = collector.open(make_campaign(n=5000, min_reports=0, **terms), *OPEN)
    return collector, signed, collector.campaigns()[0]


def at_once(*works):
    """Run them in threads; what they raised."""
    raised = []

    def run(work):
        try:
            work()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_two_writers_with_the_same_ids_in_opposite_orders_do_not_deadlock(place):
    collector, signed, _ = opened(place)
    other = make_collector(place)
    batches, together = [reports(3000) for _ in range(8)], threading.Barrier(2, timeout=60)

    def send(by, order):
        for batch in batches:
            together.wait()
            assert {status.is_stored for status in by.submit_many(signed.hash, batch[::order])} == {True}

    assert at_once(lambda: send(collector, 1), lambda: send(other, -1)) == []
    assert collector._storage.count(1) == 8 * 3000
    other.dispose()
    collector.dispose()


def test_rows_are_locked_in_the_order_of_their_ids_whichever_way_they_go_in(postgresql):
    """What rules a ring of waiting writers out: PostgreSQL keeps the places in which one statement put its rows."""
    collector, signed, _ = opened(postgresql.database())
    placed = "SELECT report_id FROM report ORDER BY ctid"
    first = reports(50)
    collector.submit_many(signed.hash, first)
    assert [bytes(one) for (one,) in asked(collector._storage, placed)] == sorted(report[4:20] for report in first)
    second = reports(50)
    collector.submit_many(signed.hash, [*second, first[0]])  # one is known, so the others go in the careful way
    assert [bytes(one) for (one,) in asked(collector._storage, placed)][-50:] == sorted(report[4:20] for report in second)
    collector.dispose()


def test_what_is_acknowledged_while_a_round_closes_is_stored_and_nothing_else(place):
    collector, signed, campaign = opened(place)
    other, taken, has_begun = make_collector(place), [], threading.Event()

    def send():
        for _ in range(40):
            batch = reports(20)
            statuses = other.submit_many(signed.hash, batch)
            taken.extend(report for report, status in zip(batch, statuses, strict=True) if status is Status.NEW)
            has_begun.set()
            if Status.CLOSED in statuses:
                return

    def close():
        assert has_begun.wait(60)
        collector.close(campaign)

    assert at_once(send, close) == []
    stored = {
        Report(query, bytes(one), idx).to_bytes()
        for one, query, idx in asked(collector._storage, "SELECT report_id, query, idx FROM report")
    }
    assert stored == set(taken)
    (round_,) = collector._storage.rounds(campaign)
    assert (round_.state, round_.reports) == ("closed", len(taken))
    other.dispose()
    collector.dispose()


def test_postgresql_keeps_neither_order_nor_transaction_of_a_closed_round(postgresql):
    collector, signed, campaign = opened(postgresql.database())
    storage = collector._storage
    for _ in range(5):
        collector.submit_many(signed.hash, reports(30))
    seen = "SELECT report_id, xmin::text FROM report ORDER BY ctid"
    before, table = asked(storage, seen), asked(storage, "SELECT relfilenode FROM pg_class WHERE relname = 'report_1'")
    assert len({xmin for _, xmin in before}) == 5, "while it is open, whoever reads the tables sees what came together"
    collector.close(campaign)
    after = asked(storage, seen)
    assert len({xmin for _, xmin in after}) == 1
    assert [one for one, _ in after] == sorted(one for one, _ in before)
    assert asked(storage, "SELECT relfilenode FROM pg_class WHERE relname = 'report_1'") != table, "another file"
    assert collector.submit(signed.hash, reports(1)[0]) is Status.CLOSED
    assert collector.next_manifest(campaign) is None
    collector.delete(campaign)
    assert storage.count(1) == 0
    assert collector.result(campaign).reports == ((150,),)
    collector.dispose()


def test_postgresql_keeps_neither_order_nor_transaction_of_proofs_after_a_round_closes(postgresql):
    """A proof that lies where its report lay would tie the two together."""
    collector, signed, campaign = opened(postgresql.database())
    storage = collector._storage
    collector.submit_many(signed.hash, reports(30))
    for report_id in ids(5):
        storage.insert(signed.hash, [Row(report_id, 0, 0)], Proofs({report_id: RNG.randbytes(32)}, False))
    seen = "SELECT key, xmin::text FROM spent ORDER BY ctid"
    before = asked(storage, seen)
    assert len({xmin for _, xmin in before}) == 5, "while it is open, whoever reads the tables sees what came together"
    collector.close(campaign)
    after = asked(storage, seen)
    assert len({xmin for _, xmin in after}) == 1
    assert [one for one, _ in after] == sorted(one for one, _ in before)
    collector.dispose()


def test_sqlite_keeps_no_order_in_its_log_or_pages_after_a_round_closes(tmp_path):
    path = tmp_path / "collector.db"
    collector, signed, campaign = opened(path)
    batch = reports(30)
    for report in batch:
        collector.submit(signed.hash, report)
    places = [path.read_bytes().find(one) for one in sorted(report[4:20] for report in batch)]
    assert path.with_name("collector.db-wal").stat().st_size > 0
    collector.close(campaign)
    assert path.with_name("collector.db-wal").stat().st_size == 0
    text = path.read_bytes()
    places = [text.find(one) for one in sorted(report[4:20] for report in batch)]
    assert min(places) > 0
    assert places == sorted(places, reverse=True), "cells fill a page from its end, here in the order of ids"
    assert all(text.count(report[4:20]) == 1 for report in batch)
    collector.dispose()


def test_a_log_that_could_not_be_cut_is_said_and_cut_by_the_next_try(tmp_path, monkeypatch):
    monkeypatch.setattr("kveil.collect.engine.PATIENCE", 1)
    path = tmp_path / "collector.db"
    collector, signed, campaign = opened(path)
    collector.submit_many(signed.hash, reports(30))
    log = path.with_name("collector.db-wal")
    for again in (collector.close, lambda name: collector.next_manifest(name)):
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM report").fetchone()
            with pytest.raises(StorageUnavailable) as told:
                again(campaign)
            assert told.value.is_passing
        assert log.stat().st_size > 0
        assert collector.state(campaign) == (1, "closed"), "no report comes in, and nothing was published"
    collector.close(campaign)
    assert log.stat().st_size == 0
    collector.dispose()


def test_deleting_takes_all_reports_and_leaves_what_was_published(place):
    collector, signed, campaign = opened(place)
    batch = reports(40)
    collector.submit_many(signed.hash, batch)
    with pytest.raises(InvalidValue, match="under way"):
        collector.delete(campaign)
    collector.close(campaign)
    with pytest.raises(InvalidValue, match="under way"):
        collector.delete(campaign)
    collector.next_manifest(campaign)
    assert collector.ended_day(campaign) == date(2030, 1, 5)
    told = collector.result(campaign).to_json()
    collector.delete(campaign)
    collector.delete(campaign)
    assert asked(collector._storage, "SELECT count(*) FROM report") == [(0,)]
    assert asked(collector._storage, "SELECT count(*) FROM checkpoint") == [(0,)]
    assert collector.result(campaign).to_json() == told
    assert len(collector.manifests(campaign)) == 1
    if not isinstance(place, str):
        assert not any(report[4:20] in place.read_bytes() for report in batch)
    collector.delete(campaign, everything=True)
    assert collector.campaigns() == []
    if isinstance(place, str):
        left = asked(collector._storage, "SELECT relname FROM pg_class WHERE relname ~ '^(report|spent)_[0-9]' AND relkind = 'r'")
        assert left == [], "no empty table is left behind"
    collector.dispose()


def test_a_campaign_ends_by_hand_with_a_notice_and_without_reports(place):
    collector, signed, campaign = opened(place)
    collector.submit_many(signed.hash, reports(40))
    with pytest.raises(InvalidValue, match="reason must be"):
        collector.end(campaign, "bored")
    with Collector(place, clock=noon()) as keyless:
        assert keyless.end(campaign, "withdrawn") == 40
        assert keyless.state(campaign) == (1, "ended: withdrawn")
        assert keyless.end_notice(campaign) is None
    with pytest.raises(InvalidValue, match="ended already"):
        collector.end(campaign, "fault")
    assert collector.end(campaign, "withdrawn") == 0
    notice = collector.end_notice(campaign)
    assert notice.verified(KEY.public)["reason"] == "withdrawn"
    with pytest.raises(InvalidValue, match="not signed"):
        type(notice)(notice.body.replace(b"withdrawn", b"fault"), notice.signature).verified(KEY.public)
    with pytest.raises(InvalidValue, match=r"ended: withdrawn\. Nothing was decoded"):
        collector.next_manifest(campaign)
    assert collector.submit(signed.hash, reports(1)[0]) is Status.CLOSED
    assert asked(collector._storage, "SELECT count(*) FROM report") == [(0,)]
    collector.dispose()


def test_a_key_admits_one_report_and_stored_bytes_need_none(place):
    collector, signed, campaign = opened(place)
    storage = collector._storage
    one, two, three = (Row(report_id, 0, 0) for report_id in ids(3))
    storage.add_codes(campaign, [b"a" * 32, b"b" * 32])

    def kept(rows, keys, is_listed=True):
        taken = storage.insert(signed.hash, rows, Proofs(keys, is_listed))
        return {row.report_id in taken.after for row in rows}

    assert kept([one], {}) == {False}
    assert kept([one], {one.report_id: b"c" * 32}) == {False}, "not a code of this campaign"
    assert kept([one], {one.report_id: b"a" * 32}) == {True}
    assert kept([one], {}) == {True}, "a retry"
    assert kept([two], {two.report_id: b"a" * 32}) == {False}, "used"
    taken = storage.insert(signed.hash, [two, three], Proofs({two.report_id: b"b" * 32, three.report_id: b"b" * 32}, True))
    assert [row.report_id in taken.after for row in (two, three)] == [True, False], "one key, one report"
    assert storage.admitted(campaign) == storage.count(1) == 2
    assert kept([three], {three.report_id: b"t" * 32}, is_listed=False) == {True}
    collector.close(campaign)
    collector.next_manifest(campaign)
    assert "every report came with a proof" in collector.result(campaign).forgery[-1]
    collector.dispose()


def test_one_holder_at_a_time_has_a_lease(place):
    make_collector(place).dispose()
    storage = Storage(place)
    assert storage.take_lease("tend", "a", 60)
    assert storage.take_lease("tend", "a", 60)
    assert not storage.take_lease("tend", "b", 60)
    assert storage.take_lease("tend", "a", -1), "it lets go"
    assert storage.take_lease("tend", "b", 60)
    assert not storage.take_lease("tend", "a", 60)
    storage.dispose()


VERSION_1 = """
CREATE TABLE collector (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE round (id INTEGER NOT NULL {serial} PRIMARY KEY, campaign VARCHAR(64) NOT NULL, number INTEGER NOT NULL,
  manifest_hash VARCHAR(64) NOT NULL UNIQUE, state VARCHAR(8) NOT NULL CHECK (state IN ('open','closed','decoded')),
  signed {blob} NOT NULL, notes TEXT NOT NULL, UNIQUE (campaign, number));
CREATE TABLE report (round_id INTEGER NOT NULL REFERENCES round (id), report_id {blob} NOT NULL, query INTEGER NOT NULL,
  idx INTEGER NOT NULL, ingested_day DATE NOT NULL, PRIMARY KEY (round_id, report_id)){without};
CREATE TABLE checkpoint (round_id INTEGER NOT NULL REFERENCES round (id), task VARCHAR(64) NOT NULL,
  manifest_hash VARCHAR(64) NOT NULL, watermark {blob} NOT NULL, statistic {blob} NOT NULL, is_done BOOLEAN NOT NULL,
  PRIMARY KEY (round_id, task));
CREATE TABLE result (round_id INTEGER NOT NULL PRIMARY KEY REFERENCES round (id), result TEXT NOT NULL)
"""


def as_version_1(place, tmp_path):
    """A storage as version 1 wrote it: a campaign in its second round, and one that ended with too few; what it would find."""
    import sqlalchemy

    kept = Storage(source := tmp_path / "source.db")
    collector = make_collector(source)
    for name, least in (("survey", 0), ("few", 50)):
        collector.open(make_campaign(name=name, protocol="refine", epsilon=4, min_reports=least), *OPEN)
    going, few = collector.campaigns()
    collector.submit_many(collector.manifests(going)[0].hash, reports(50))
    collector.close(going)
    second = collector.next_manifest(going, *OPEN)
    manifest, rng = Manifest.from_bytes(second.body), np.random.default_rng(1)
    told = [
        Report(query.id, rng.bytes(16), int(rng.integers(query.M))).to_bytes() for query in manifest.queries for _ in range(9)
    ]
    collector.submit_many(second.hash, told)
    engine = sqlalchemy.create_engine(place if isinstance(place, str) else f"sqlite:///{place}")
    words = {"sqlite": ("", "BLOB", " WITHOUT ROWID", "?"), "postgresql": ("GENERATED BY DEFAULT AS IDENTITY", "BYTEA", "", "%s")}
    serial, blob, without, mark = words[engine.dialect.name]
    with engine.begin() as db:
        for statement in VERSION_1.format(serial=serial, blob=blob, without=without).split(";"):
            db.exec_driver_sql(statement)
        db.exec_driver_sql("INSERT INTO collector VALUES (1)")
        for row in asked(kept, "SELECT campaign, number, manifest_hash, state, signed, notes FROM round ORDER BY id"):
            names = "campaign, number, manifest_hash, state, signed, notes"
            db.exec_driver_sql(f"INSERT INTO round ({names}) VALUES ({', '.join([mark] * 6)})", tuple(row))
        for row in asked(kept, "SELECT round_id, report_id, query, idx FROM report"):
            db.exec_driver_sql(f"INSERT INTO report VALUES ({', '.join([mark] * 4)}, '2030-01-05')", tuple(row))
        (number,) = db.exec_driver_sql(f"SELECT id FROM round WHERE campaign = '{few}'").one()
        db.exec_driver_sql(f"UPDATE round SET state = 'decoded' WHERE id = {number}")
        db.exec_driver_sql(f"INSERT INTO result VALUES ({number}, '{tables.TOO_FEW}')")
    engine.dispose()
    kept.dispose()
    return collector, going, few


def finish(collector, campaign):
    while collector.state(campaign)[1] != "done":
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
    told = collector.result(campaign).to_json()
    collector.dispose()
    return told


def test_a_storage_of_version_1_goes_on_to_the_same_result(place, tmp_path):
    unbroken, going, few = as_version_1(place, tmp_path)
    for _ in range(2):  # the second finds it done
        with make_collector(place) as collector:
            assert collector.campaigns() == [going, few]
            assert collector.state(going) == (2, "open")
            assert collector.state(few) == (1, "ended: too few reports")
            assert [one.reports for one in collector._storage.rounds(going)] == [50, None]
            assert "ingested_day" not in str(asked(collector._storage, "SELECT * FROM report LIMIT 1")[0]._fields)
    copy = tmp_path / "collector.db.version-1"
    if not isinstance(place, str):
        assert os.stat(copy).st_mode & 0o077 == 0
        with closing(sqlite3.connect(copy)) as db:
            assert db.execute("SELECT version FROM collector").fetchall() == [(1,)]
            assert db.execute("SELECT count(*) FROM report WHERE ingested_day = '2030-01-05'").fetchone()[0] > 50
    collector = make_collector(place)
    assert finish(collector, going) == finish(unbroken, going)
    with make_collector(place) as collector:
        collector.delete(going)
    assert not copy.exists(), "the copy held every report"


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(postgresql):
    url = postgresql.database()
    storage = Storage(url)
    storage.check_durable()
    asked_before = storage._reading

    class Off:
        """A server whose fsync is off."""

        def __enter__(self):
            self.db = asked_before()
            return self

        def __exit__(self, *error):
            pass

        def exec_driver_sql(self, statement):
            assert statement.startswith("SHOW")
            return type("Told", (), {"scalar": lambda self: "off" if "fsync" in statement else "on"})()

    storage._reading = Off
    with pytest.raises(InvalidValue, match="runs with fsync off"):
        storage.check_durable()
    storage.dispose()
