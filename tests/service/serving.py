"""The real service in a process of its own, on loopback; and the reports of nobody."""

from __future__ import annotations

import json
import random
import signal
import socket
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import warm
from kveil.collect.campaign import Campaign
from kveil.collect.collector import Collector
from kveil.collect.report import Report
from kveil.signing import SigningKey

KEY = SigningKey(bytes(range(32)))
PLAIN = {"content-type": "application/vnd.kveil.collect;message=upload-req"}
RNG = random.Random(5)

SERVE = """
import json, sys
from kveil.service.server import serve
from kveil.service.settings import Settings
given = json.loads(sys.argv[1])
limits = given.pop("limits", {})
from kveil.collect import engine
from kveil.service import guarded, intake, upload
for name, value in limits.items():
    module, _, name = name.rpartition(".")
    owner = {"engine": engine, "guarded": guarded.Guarded, "intake": intake, "upload": upload}[module]
    assert hasattr(owner, name)
    setattr(owner, name, value)
serve(Settings(**given), lambda *ports: print(*ports, flush=True))
"""


class Service:
    """A process that serves, its ports, and what it wrote."""

    def __init__(self, place: Any, **settings: Any) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 closed in `close`
        given = {"storage": str(place), "port": 0, "admin_port": 0, **settings}
        self.process = warm.Started(SERVE, json.dumps(given), cwd=Path.cwd(), stderr=self._said)
        line = self.process.stdout.readline().split()
        assert line, self.said()
        self.port, self.admin_port = map(int, line)

    def said(self) -> str:
        self._said.seek(0)
        return self._said.read()

    def request(self, method: str, path: str, body: bytes | None = None, headers: Any = None, *, admin: bool = False) -> Any:
        """The status, the headers in lower case, and the body."""
        connection = HTTPConnection("127.0.0.1", self.admin_port if admin else self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            told = connection.getresponse()
            return told.status, {name.lower(): value for name, value in told.getheaders()}, told.read()
        finally:
            connection.close()

    def send(self, manifest_hash: str, body: bytes, **headers: str) -> Any:
        return self.request("POST", f"/v1/manifests/{manifest_hash}/reports", body, {**PLAIN, **headers})

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=15)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(by)
        return self.process.wait(60)

    def close(self) -> None:
        self.process.close()
        self._said.close()


@contextmanager
def serving(place: Any, **settings: Any) -> Any:
    service = Service(place, **settings)
    try:
        yield service
    finally:
        service.close()


def opened(place: Any, first: date | None = None, **terms: Any) -> tuple[str, str]:
    """A campaign that is open now, from today on or from `first`: its hash, and that of its first manifest."""
    first = first or datetime.now(UTC).date()
    stated = {"name": "survey", "n": 5000, "n_clusters": 2, "epsilon": 1, "center": [0, 0], "radius": 1.0, "protocol": "grid"}
    with Collector(place, key=KEY) as collector:
        signed = collector.open(Campaign(**{**stated, **terms}), first, first + timedelta(days=9))
        return collector.campaigns()[-1], signed.hash


def reports(n: int) -> list[bytes]:
    return [Report(0, RNG.randbytes(16), RNG.randrange(4)).to_bytes() for _ in range(n)]


def stored(place: Any) -> set[bytes]:
    with Collector(place) as collector, collector._storage._reading() as db:
        rows = db.exec_driver_sql("SELECT query, report_id, idx FROM report").all()
    found = {Report(query, bytes(one), idx).to_bytes() for query, one, idx in rows}
    assert len(found) == len(rows)
    return found


def until(claim: Any) -> None:
    """Wait until it is so; what never comes is a failure and no test that hangs."""
    gives_up = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < gives_up, "it never came"
        time.sleep(0.001)


def problem(told: Any) -> str:
    """The name of a problem, whose status is that of the answer."""
    status, headers, body = told
    assert headers["content-type"] == "application/problem+json"
    data = json.loads(body)
    assert data["status"] == status
    assert set(data) == {"type", "title", "status"}
    return data["type"].removeprefix("urn:kveil:problem:")
