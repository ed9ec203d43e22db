"""Counts, for the operator: how much came and how it went, and nothing about anyone. Processes share one table of numbers."""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from time import monotonic

OUTCOMES = ("stored", "id_taken", "closed", "malformed", "admission", "full", "failed")
STATUSES = (200, 204, 304, 400, 401, 404, 405, 408, 410, 413, 415, 429, 500, 503)
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
NAMES = (
    *(f"reports_{one}" for one in OUTCOMES), *(f"requests_{one}" for one in STATUSES), "commits", "commit_seconds",
    *(f"commit_le_{one}" for one in (*BUCKETS, "inf")), "waiting", "is_failing",
)  # fmt: skip
PLACES = {name: place for place, name in enumerate(NAMES)}


class Counts:
    """One row of numbers for each process, in memory that they share; each process writes its own row alone."""

    def __init__(self, processes: int = 1) -> None:
        self._memory = mmap.mmap(-1, 8 * len(NAMES) * processes)
        self._all = memoryview(self._memory).cast("d")
        self._processes, self._start = processes, 0
        self.began = monotonic()

    def own(self, process: int) -> None:
        """From now on this process writes this row."""
        self._start = process * len(NAMES)

    def add(self, name: str, n: float = 1) -> None:
        self._all[self._start + PLACES[name]] += n

    def put(self, name: str, value: float) -> None:
        self._all[self._start + PLACES[name]] = value

    def mine(self, name: str) -> float:
        return self._all[self._start + PLACES[name]]

    def total(self, name: str) -> float:
        return sum(self._all[process * len(NAMES) + PLACES[name]] for process in range(self._processes))

    def request(self, status: int) -> None:
        self.add(f"requests_{status}" if status in STATUSES else "requests_500")

    def commit(self, seconds: float) -> None:
        self.add("commits")
        self.add("commit_seconds", seconds)
        self.add(f"commit_le_{(*BUCKETS, 'inf')[bisect_left(BUCKETS, seconds)]}")

    def summary(self) -> dict[str, int]:
        """For a line of the log."""
        told = [f"reports_{one}" for one in OUTCOMES] + ["commits"]
        return {name: int(self.total(name)) for name in told} | {
            "requests": sum(int(self.total(f"requests_{s}")) for s in STATUSES)
        }

    def text(self, rounds: Iterable[Mapping[str, object]]) -> str:
        """All of it in the text format of Prometheus, with a few gauges for each open or closed round."""
        lines = ["# TYPE kveil_reports_total counter"]
        lines += [f'kveil_reports_total{{outcome="{one}"}} {self.total(f"reports_{one}"):.0f}' for one in OUTCOMES]
        lines += ["# TYPE kveil_requests_total counter"]
        lines += [f'kveil_requests_total{{status="{one}"}} {self.total(f"requests_{one}"):.0f}' for one in STATUSES]
        lines += ["# TYPE kveil_commits_total counter", f"kveil_commits_total {self.total('commits'):.0f}"]
        lines += ["# TYPE kveil_commit_seconds histogram"]
        running = 0.0
        for edge in (*BUCKETS, "inf"):
            running += self.total(f"commit_le_{edge}")
            lines.append(f'kveil_commit_seconds_bucket{{le="{"+Inf" if edge == "inf" else edge}"}} {running:.0f}')
        lines += [f"kveil_commit_seconds_sum {self.total('commit_seconds'):.6f}", f"kveil_commit_seconds_count {running:.0f}"]
        lines += ["# TYPE kveil_waiting_reports gauge", f"kveil_waiting_reports {self.total('waiting'):.0f}"]
        told = list(rounds)
        for name in ("reports", "least", "days_left", "stuck"):
            lines.append(f"# TYPE kveil_round_{name} gauge")
            lines += [f'kveil_round_{name}{{campaign="{one["campaign"]}",round="{one["round"]}"}} {one[name]}' for one in told]
        return "\n".join(lines) + "\n"
