"""One measured number against the bar it must clear."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """`measured` must be at most `limit` (or at least, with at_least)."""

    what: str
    measured: float
    limit: float
    unit: str = ""
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def __str__(self) -> str:
        verdict = "holds " if self.holds else "MISSED"
        side = ">=" if self.at_least else "<="
        return f"{verdict} {self.what}: {self.measured:.4g}{self.unit} {side} {self.limit:g}{self.unit} {self.note}".rstrip()


def best_seconds(action: Callable[[], object], repeats: int = 5) -> float:
    """The least of several runs: what the machine can do when others leave it alone."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)
