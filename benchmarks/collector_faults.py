"""Kill the collector's service at random moments under load, many times, and count what was acknowledged and is not there.

`python -m benchmarks collector_faults [--kills 1000] [--storage sqlite|postgresql] [--crashes 0]`

--crashes: as often PostgreSQL itself is stopped at once, without a word. At the end the campaign is closed, decoded, and compared
with one that took the same reports in without a break: byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from benchmarks.bar import Bar
from benchmarks.collector import SERVE, opened, storage_of
from benchmarks.collector_load import body_of

HEADERS = {"content-type": "application/vnd.kveil.collect;message=upload-req"}


def run(*arguments: str) -> Iterator[Bar]:
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=30)
    options.add_argument("--crashes", type=int, default=0)
    options.add_argument("--storage", choices=("sqlite", "postgresql"), default="sqlite")
    asked = options.parse_args(arguments)
    with storage_of(asked.storage) as place, tempfile.TemporaryDirectory() as folder:
        faults = Faults(place)
        for number in range(asked.kills):
            faults.once(lambda process: os.kill(process.pid, signal.SIGKILL))
            if number % 50 == 49:
                print(f"  {number + 1} kills, {len(faults.acknowledged)} acknowledged, {faults.lost()} lost", flush=True)
        for _ in range(asked.crashes):
            faults.once(lambda process: faults.crash(place))
        yield Bar(f"{asked.storage}: lost of {len(faults.acknowledged)} acknowledged reports", faults.lost(), 0)
        yield Bar("stored twice", faults.twice(), 0)
        yield Bar("results that differ from an unbroken run", faults.differs(str(Path(folder) / "calm.db")), 0)


@contextmanager
def forked(place: str) -> Iterator[tuple[Any, int]]:
    """The service in a process that begins with kveil loaded: a cold start for each of a thousand kills would take an hour."""
    import warm

    given = {"storage": place, "port": 0, "admin_port": 0, "most_requests": 0}
    with tempfile.TemporaryFile("w+") as said:
        process = warm.Started(SERVE, json.dumps(given), cwd=Path.cwd(), stderr=said)
        try:
            yield process, int(process.stdout.readline().split()[0])
        finally:
            process.close()


class Faults:
    def __init__(self, place: str) -> None:
        self.place, self.manifest = place, opened(place, 10_000_000)
        self.acknowledged: set[bytes] = set()
        self.sent: set[bytes] = set()

    def once(self, fault: Any) -> None:
        done = threading.Event()
        with forked(self.place) as (process, port):
            threads = [threading.Thread(target=self._send, args=(port, done)) for _ in range(6)]
            for thread in threads:
                thread.start()
            time.sleep(random.uniform(0.0, 0.4))
            fault(process)
            done.set()
            for thread in threads:
                thread.join()

    def crash(self, place: str) -> None:
        """The server behind a URL, stopped at once and started again."""
        import postgres

        server = next(one for one in postgres.RUNNING if str(one.folder) in place)
        server.stop("immediate")
        server.start()

    def _send(self, port: int, done: threading.Event) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            while not done.is_set():
                body = body_of(random.choice((1, 1, 1, 5, 40)), 4)
                some = {body[at : at + 22] for at in range(0, len(body), 22)}
                self.sent |= some
                connection.request("POST", f"/v1/manifests/{self.manifest}/reports", body, HEADERS)
                told = connection.getresponse()
                if told.status == 200 and not told.read():
                    self.acknowledged |= some
        except (HTTPException, OSError):
            pass
        finally:
            connection.close()

    def _stored(self) -> list[bytes]:
        from kveil.collect.collector import Collector
        from kveil.collect.report import Report

        with Collector(self.place) as collector, collector._storage._reading() as db:
            rows = db.exec_driver_sql("SELECT query, report_id, idx FROM report").all()
        return [Report(query, bytes(one), idx).to_bytes() for query, one, idx in rows]

    def lost(self) -> int:
        return len(self.acknowledged - set(self._stored()))

    def twice(self) -> int:
        kept = self._stored()
        return len(kept) - len(set(kept)) + len(set(kept) - self.sent)

    def differs(self, calm: str) -> int:
        """Close and decode here, and what was stored here in a storage of its own; whether the results differ."""
        from kveil.collect.collector import Collector
        from kveil.signing import SigningKey

        kept, results = self._stored(), []
        assert opened(calm, 10_000_000) == self.manifest
        for place in (self.place, calm):
            with Collector(place, key=SigningKey(bytes(range(32)))) as collector:
                (campaign,) = collector.campaigns()
                for start in range(0, len(kept) if place == calm else 0, 10_000):
                    collector.submit_many(self.manifest, kept[start : start + 10_000])
                collector.close(campaign)
                collector.next_manifest(campaign)
                results.append(collector.result(campaign).to_json())
        return int(results[0] != results[1])
