"""Kills, full disks, locks and lost connections: what was acknowledged is there, once, and service goes on without a restart."""

import json
import random
import re
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException

import pytest
from serving import KEY, PLAIN, opened, problem, reports, serving, stored, until

from kveil.collect.collector import Collector

pytestmark = pytest.mark.journey


def sending(service, manifest, acknowledged, sent, done):
    """One sender: bodies of a few reports on one connection, until it breaks or all is done."""
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    path = f"/v1/manifests/{manifest}/reports"
    try:
        while not done.is_set():
            batch = reports(random.randint(1, 5))
            sent.extend(batch)
            connection.request("POST", path, b"".join(batch), PLAIN)
            told = connection.getresponse()
            if told.status == 200 and not told.read():
                acknowledged.extend(batch)
    except (HTTPException, OSError):
        pass
    finally:
        connection.close()


def killed_while_sending(place, manifest, seconds, kill, senders=4):
    """What was acknowledged and sent before the service, or its storage, was killed after about so many seconds."""
    acknowledged, sent, done = [], [], threading.Event()
    with serving(place) as service:
        threads = [threading.Thread(target=sending, args=(service, manifest, acknowledged, sent, done)) for _ in range(senders)]
        for thread in threads:
            thread.start()
        until(lambda: acknowledged)
        time.sleep(seconds)
        kill(service)
        done.set()
        for thread in threads:
            thread.join()
    return acknowledged, sent


def test_a_killed_service_has_lost_nothing_that_it_acknowledged_and_ends_as_an_unbroken_one(place, tmp_path):
    from signal import SIGKILL

    first = datetime.now(UTC).date()  # of both campaigns, also at midnight
    campaign, manifest = opened(place, first, n=20_000, min_reports=0)
    acknowledged, sent = [], []
    for _ in range(3):
        told, tried = killed_while_sending(place, manifest, random.uniform(0, 0.15), lambda service: service.stop(SIGKILL))
        acknowledged += told
        sent += tried
        kept = stored(place)
        assert set(acknowledged) <= kept <= set(sent)
    calm = tmp_path / "calm.db"
    results = []
    for where in (place, calm):
        with Collector(where, key=KEY) as collector:
            if where == calm:
                header = Collector(place).manifests(campaign)[0]
                opened(calm, first, n=20_000, min_reports=0)
                assert collector.campaigns() == [campaign]
                assert collector.submit_many(header.hash, sorted(kept))
            collector.close(campaign)
            if where == place:
                kept = stored(place)  # anew: PostgreSQL may have ended a transaction that the killed process had asked for
                assert set(acknowledged) <= kept <= set(sent)
            collector.next_manifest(campaign)
            results.append(collector.result(campaign).to_json())
    assert results[0] == results[1]


def test_a_postgresql_that_crashes_has_lost_nothing_that_was_acknowledged(postgresql):
    place = postgresql.database()
    _, manifest = opened(place, n=20_000)
    acknowledged, sent, done = [], [], threading.Event()
    with serving(place) as service:
        thread = threading.Thread(target=sending, args=(service, manifest, acknowledged, sent, done))
        thread.start()
        until(lambda: len(acknowledged) >= 20)
        postgresql.stop("immediate")
        (late,) = reports(1)
        told = service.send(manifest, late)
        assert problem(told) == "storage"
        assert 15 <= int(told[1]["retry-after"]) <= 30
        assert service.request("GET", "/ready")[0] == 503
        postgresql.start()
        assert service.send(manifest, late)[::2] == (200, b""), "without a restart"
        assert service.request("GET", "/ready")[0] == 200
        done.set()
        thread.join()
        said = service.said()
    assert set(acknowledged) | {late} <= stored(place) <= set(sent) | {late}
    assert "sqlalchemy" not in said.lower().replace("storageunavailable", "")
    assert "INSERT" not in said


def test_a_locked_file_is_503_and_taken_again_afterwards(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place)
    one, two = reports(2)
    with serving(place, limits={"intake.PAUSE": 0.001, "engine.PATIENCE": 20}) as service:
        assert service.send(manifest, one)[0] == 200
        with closing(sqlite3.connect(place, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert problem(service.send(manifest, two)) == "storage"
            assert problem(service.request("GET", "/ready")) == "busy"
        assert service.send(manifest, two)[::2] == (200, b"")
        assert service.request("GET", "/ready")[0] == 200
        told = [line for line in map(json.loads, service.said().splitlines()) if line["event"] == "storage"]
    assert stored(place) == {one, two}
    assert {tuple(line) for line in told} == {("event", "at", "fault", "is_passing")}, "no id, and nothing else of what waited"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", line["at"]) for line in told), "no time finer than the minute"


def test_a_full_disk_is_503_and_taken_again_once_there_is_room(tmp_path):
    """The process may write files of so many bytes and no more, as a disk that is full; then there is room again."""
    import resource

    place = tmp_path / "collector.db"
    _, manifest = opened(place, n=50_000)
    taken, refused = [], []
    with serving(place) as service:
        (first,) = reports(1)
        assert service.send(manifest, first)[0] == 200
        size = place.with_name("collector.db-wal").stat().st_size + 100_000
        _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        for _ in range(12):
            batch = reports(500)
            told = service.send(manifest, b"".join(batch))
            assert told[0] in (200, 503)
            (taken if told[0] == 200 else refused).append(batch)
        assert refused
        assert service.request("GET", "/ready")[0] == 503
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        for batch in refused:
            assert service.send(manifest, b"".join(batch))[::2] == (200, b"")
        assert '"is_passing": false' in service.said()
    assert stored(place) == {first, *(one for batch in taken + refused for one in batch)}


def test_what_waits_beyond_the_limit_is_refused_before_it_is_queued(tmp_path):
    place = tmp_path / "collector.db"
    _, manifest = opened(place)
    batches, told = [reports(50) for _ in range(12)], {}

    def send(service, i):
        told[i] = service.send(manifest, b"".join(batches[i]))

    with serving(place, most_waiting=60) as service, closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # nothing is committed meanwhile
        threads = [threading.Thread(target=send, args=(service, i)) for i in range(12)]
        for thread in threads:
            thread.start()
        gives_up = time.monotonic() + 20  # one is being written and one waits; without a limit all would wait
        while len(told) < 10 and time.monotonic() < gives_up:
            time.sleep(0.01)
        other.execute("ROLLBACK")
        for thread in threads:
            thread.join()
    assert {one[0] for one in told.values()} == {200, 503}
    assert {problem(one) for one in told.values() if one[0] == 503} == {"busy"}
    assert stored(place) == {report for i, one in told.items() if one[0] == 200 for report in batches[i]}


def test_an_acknowledgement_leaves_after_the_sync(tmp_path):
    """Every system call of the process in order: between a request and its 200 there is a sync of the storage's log."""
    import shutil
    import subprocess

    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: apt-get install strace")
    place, trace = tmp_path / "collector.db", tmp_path / "trace"
    _, manifest = opened(place)
    with serving(place) as service:
        command = ["strace", "-f", "-e", "trace=fdatasync,fsync,sendto,send,write,writev,sendmsg", "-o", str(trace), "-p"]
        watching = subprocess.Popen([*command, str(service.process.pid)], stderr=subprocess.PIPE)
        assert watching.stderr is not None
        if b"attached" not in watching.stderr.readline():
            watching.kill()
            pytest.skip("processes cannot be traced here")
        for one in reports(3):
            assert service.send(manifest, one)[0] == 200
        service.stop()
        watching.wait(30)
    lines = [line for line in trace.read_text().splitlines() if "sync(" in line or "HTTP/1.1 200" in line]
    events = ["sync" if "sync(" in line else "200" for line in lines]
    assert events.count("200") == 3
    before = [events[place - 1] for place, event in enumerate(events) if event == "200"]
    assert before == ["sync"] * 3
