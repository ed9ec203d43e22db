"""The collector as a service under load, on this machine: reports per second, how long an answer takes, CPU and memory.

Service and senders are processes of their own; commits are durable. What one sync of this disk takes is printed, since single
reports wait for it. PostgreSQL is Debian's, started for this in a temporary folder; its own CPU is printed beside the service's.

`python -m benchmarks collector [--quick] [sqlite|postgresql ...]`
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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks.bar import Bar

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SERVE = """
import json, sys
from kveil.service.server import serve
from kveil.service.settings import Settings
serve(Settings(**json.loads(sys.argv[1])), lambda *ports: print(*ports, flush=True))
"""
# reports in a body, connections, bodies; and as many for --quick
LOADS = [(1, 1, 1_000, 200), (1, 128, 40_000, 4_000), (100, 8, 2_000, 200), (1_000, 4, 1_000, 60)]


def run(*arguments: str) -> Iterator[Bar]:
    is_quick, kinds = "--quick" in arguments, [one for one in arguments if not one.startswith("-")] or ["sqlite", "postgresql"]
    sync = sync_milliseconds()
    print(f"one fdatasync of this disk takes {sync:.2f} ms; load average {os.getloadavg()[0]:.1f}", flush=True)
    for kind in kinds:
        for per_body, connections, bodies, quick in LOADS:
            with storage_of(kind) as place:
                told = measured(place, per_body, connections, quick if is_quick else bodies)
            print(
                f"  {kind}, {per_body} x {connections}: {told['rate']:.0f} reports/s, p50 {told['p50']:.1f} ms, p99 "
                f"{told['p99']:.1f} ms, CPU of the service {told['cpu']:.1f} us per report, {told['mb']:.0f} MB, refused "
                f"{told['refused']:.0f}",
                flush=True,
            )
            yield from bars(kind, per_body, connections, told)


def bars(kind: str, per_body: int, connections: int, told: dict[str, float]) -> Iterator[Bar]:
    name = f"{kind}, bodies of {per_body}, {connections} connections"
    if (per_body, connections) == (1, 128):
        yield Bar(f"{name}: p99", told["p99"], 200, " ms")
        yield Bar(f"{name}: reports per CPU-second of the service", 1e6 / told["cpu"], 10_000, at_least=True)
    if per_body == 1_000:
        yield Bar(f"{name}: reports per second", told["rate"], 30_000 if kind == "sqlite" else 50_000, at_least=True)
    yield Bar(f"{name}: peak memory", told["mb"], 120, " MB")


def measured(place: str, per_body: int, connections: int, bodies: int) -> dict[str, float]:
    manifest = opened(place, 2_000_000)
    with served(place) as (process, port):
        before = cpu_of(process)
        path = f"/v1/manifests/{manifest}/reports"
        asked = {"port": port, "path": path, "per_body": per_body, "connections": connections, "bodies": bodies, "values": 4}
        command = [sys.executable, "-m", "benchmarks.collector_load", json.dumps(asked)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        told: dict[str, float] = json.loads(done.stdout)
        used = cpu_of(process) - before
        peak = max_resident(process.pid)
    told["rate"], told["cpu"] = told["stored"] / told["seconds"], 1e6 * used / max(1.0, told["stored"])
    told["mb"] = peak
    return told


def opened(place: str, people: int, *, epsilon: float = 1.0, least: int = 0) -> str:
    from kveil.collect.campaign import Campaign
    from kveil.collect.collector import Collector
    from kveil.signing import SigningKey

    today = datetime.now(UTC).date()
    with Collector(place, key=SigningKey(bytes(range(32)))) as collector:
        survey = Campaign("benchmark", people, 2, epsilon, [0, 0], 1.0, "grid", min_reports=least)
        return collector.open(survey, today, today + timedelta(days=9)).hash


@contextmanager
def served(place: str, **settings: Any) -> Iterator[tuple[psutil.Process, int]]:
    """The service in a process of its own."""
    given = {"storage": place, "port": 0, "admin_port": 0, "most_requests": 0, **settings}
    command = [sys.executable, "-c", SERVE, json.dumps(given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[0])
        try:
            yield psutil.Process(process.pid), port
        finally:
            process.kill()


@contextmanager
def storage_of(kind: str) -> Iterator[str]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "collector.db")
        return
    import postgres

    if missing := postgres.why_not():
        raise SystemExit(missing)
    server = postgres.Server()
    try:
        yield server.database()
    finally:
        server.close()


def cpu_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def max_resident(pid: int) -> float:
    """Peak resident memory in MB, as the kernel has kept it."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def sync_milliseconds(times: int = 50) -> float:
    """The median time of appending a page to a file and syncing it."""
    taken = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return 1000 * sorted(taken)[times // 2]
