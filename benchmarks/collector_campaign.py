"""A campaign of 5000 devices by commands alone, unattended: what it costs beside the forecast.

`kveil collect keys new`, `init`, `serve --auto-close` and `result` run unchanged, each in a process of its own. Rounds last days,
so libfaketime gives these processes a clock that is moved on by a day at a time. The devices are real clients with that clock:
each asks when a round is published, and sends over HTTP once its own drawn moment has come. Nothing else touches the storage.

`python -m benchmarks collector_campaign [runs]`
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bar import Bar

PEOPLE, K, EPSILON, DAYS, GRACE = 5000, 3, 4, 10, 2
TERMS = ["--name", "benchmark", "--people", PEOPLE, "--k", K, "--epsilon", EPSILON, "--center", "0,0", "--radius", 1]
PLACES = np.array([[-0.5, -0.3], [0.1, 0.6], [0.55, -0.35]])
PATIENCE = 300.0  # seconds that the service has to close a round, decode it and publish the next
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


def run(runs: str = "1") -> Iterator[Bar]:
    if not LIBRARIES:
        print("  skipped: libfaketime is missing, by which the commands' clock is moved (on Debian: apt-get install faketime)")
        return
    rng = np.random.default_rng(0)  # made-up people
    points = PLACES[rng.integers(K, size=PEOPLE)] + rng.normal(0, 0.05, (PEOPLE, 2))
    for _ in range(int(runs)):
        with tempfile.TemporaryDirectory() as folder:
            yield from _campaign(Clock(Path(folder)), points)


class Clock:
    """This machine's clock, some days ahead. libfaketime reads how many from a file, whenever a command looks at its clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._days, self._file = folder, 0, folder / "clock"
        self.forward(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=self._days)

    def forward(self, days: int) -> None:
        self._days += days
        written = self._file.with_suffix(".new")
        written.write_text(f"+{self._days}d\n", encoding="ascii")
        written.replace(self._file)

    def start(self, *command: object, **how: Any) -> subprocess.Popen[str]:
        """`kveil collect` and so on, under this clock."""
        faked = {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1"}
        words = [sys.executable, "-m", "kveil", "collect", *map(str, command)]
        return subprocess.Popen(words, cwd=self.folder, env={**os.environ, **faked}, stdout=subprocess.PIPE, text=True, **how)

    def told(self, *command: object) -> str:
        with self.start(*command) as process:
            said = process.communicate()[0]
        assert process.returncode == 0, command
        return said


def _campaign(clock: Clock, points: Any) -> Iterator[Bar]:
    clock.told("keys", "new", "c.key")
    opened = json.loads(clock.told(
        "init", "--storage", "c.db", *TERMS, "--protocol", "refine", "--days", DAYS, "--key", "c.key", "--json",
    ))  # fmt: skip
    people = Devices((clock.folder / "c.key.pub"), points, clock)
    with _served(clock) as url:
        days = people.answer_until_done(url)
        steps = _steps(clock.folder / "log", 2 * opened["rounds"])
    found = np.array(json.loads(clock.told("result", opened["campaign"][:12], "--storage", "c.db", "--json"))["centers"])
    ratio = _cost(points, found) / _cost(points, PLACES)
    forecast, rounds = opened["ratio"], opened["rounds"]
    print(f"  {rounds} rounds in {days} days, {steps} steps; cost {ratio:.4f}, forecast {forecast:.4f}", flush=True)
    yield Bar("reports of 5000 devices that the service acknowledged", people.stored, PEOPLE, at_least=True)
    yield Bar("steps that the service did by itself, two per round", steps, 2 * rounds, at_least=True)
    yield Bar("cost over that of the true centres, beside twice the forecast's excess", ratio, 1 + 2 * (forecast - 1))


@contextmanager
def _served(clock: Clock) -> Iterator[str]:
    """The address of `serve --auto-close`, which ends with the block by a signal, in order."""
    own = ["--auto-close", "--key", "c.key", "--days", DAYS, "--grace", GRACE, "--port", 0, "--admin-port", 0]
    with (clock.folder / "log").open("w") as log, clock.start("serve", "--storage", "c.db", *own, stderr=log) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2].rstrip(",")
        finally:
            process.terminate()
            assert process.wait(60) == 0, "the service did not end in order"


class Devices:
    """All people's devices. A round's reports wait in their ledgers until the moments that were drawn for them."""

    def __init__(self, public: Path, points: Any, clock: Clock) -> None:
        from kveil.collect.client import LocalClient
        from kveil.collect.ledger_file import LedgerFile
        from kveil.signing import public_key

        terms: dict[str, Any] = {"n_features": 2, "key": public_key(str(public)), "is_first": True, "clock": clock.now}
        file = LedgerFile(None)
        self._clients = [LocalClient(file, device_name=str(number), **terms) for number in range(len(points))]
        self._points, self._clock, self._waiting, self.stored = points, clock, [], 0

    def answer_until_done(self, url: str) -> int:
        """Day by day, until there is a result; how many days that took."""
        from kveil.service.sender import Sender

        days, known, waited = 0, 0, time.monotonic()
        while True:
            with Sender(url) as sender:  # a day later connections of the day before are cut
                (told,) = sender.campaigns()
                if told["state"] == "done":
                    return days
                if len(told["manifests"]) > known:
                    known, waited = len(told["manifests"]), time.monotonic()
                    self._ask(sender.chain(told["manifests"]))
                self._send(sender)
            if self._clock.now().date() <= date.fromisoformat(told["not_after"]) + timedelta(days=GRACE):
                self._clock.forward(1)
                days, waited = days + 1, time.monotonic()
            assert time.monotonic() - waited < PATIENCE, "the service did not go on by itself"
            time.sleep(0.5)

    def _ask(self, chain: list[Any]) -> None:
        for client, point in zip(self._clients, self._points, strict=True):
            client.answer(chain, point)  # or it refuses: another part of the devices is asked
            self._waiting += [(client, spend) for spend in client.pending()]

    def _send(self, sender: Any) -> None:
        now, waiting = self._clock.now(), []
        for client, spend in self._waiting:
            outcome = sender.deliver(client, spend) if spend.send_at <= now else "later"
            self.stored += outcome == "stored"
            waiting += [(client, spend)] if outcome == "later" else []
        self._waiting = waiting


def _steps(log: Path, expected: int) -> int:
    """Steps that the service's log tells of. The last line comes up to a second after what it tells."""
    gives_up = time.monotonic() + 30
    while True:
        text = log.read_text(encoding="utf-8")
        found = sum(text.count(f'"event": "{name}"') for name in ("closed", "published"))
        if found >= expected or time.monotonic() > gives_up:
            return found
        time.sleep(0.5)


def _cost(points: Any, centers: Any) -> float:
    return float(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).mean())
