"""Many fits of two tables, in several processes, within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import joblib
from sklearn.base import clone

from kveil.auditing.leaving import Outcomes, observe
from kveil.auditing.neighbours import Neighbours

Told = Callable[[int, int], None]  # how many fits were made, of how many

PER_TASK = 50


def fitted(model: Any, table: Any, arguments: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """What leaves: a fresh copy of an estimator, fitted; or what a function returns."""
    if hasattr(model, "fit"):
        return clone(model).fit(table, **arguments)
    return model(table, **arguments)


@dataclass
class Fits:
    """Makes fits, and counts them. Batches are taken in the order in which they were asked for: how long a fit took, which may
    depend on rows, then has no say in which fits are looked at.

    until: when to stop, by time.monotonic(). workers: processes; 1 stays in this one.
    """

    model: Any
    workers: int = 1
    until: float = float("inf")
    told: Told = lambda made, asked: None
    asked: int = 0
    made: int = 0
    per_task: int = field(default=PER_TASK)

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self.until

    def of(self, pair: Neighbours, runs: int) -> tuple[Outcomes, Outcomes]:
        """So many fits of either table, or fewer if time is up."""
        sizes = [min(self.per_task, runs - start) for start in range(0, runs, self.per_task)]
        tasks = [(pair.shown, table, size) for size in sizes for table in (pair.one, pair.other)]
        parts: tuple[list[Outcomes], list[Outcomes]] = ([], [])
        run = partial(fitted, self.model, arguments=dict(pair.arguments))
        if self.workers == 1:
            found = (_batch(run, *task) for task in tasks)
        else:
            pool = joblib.Parallel(n_jobs=self.workers, return_as="generator", pre_dispatch=2 * self.workers)
            found = pool(joblib.delayed(_batch)(run, *task) for task in tasks)
        for number, part in enumerate(found):
            parts[number % 2].append(part)
            self.made += len(part)
            self.told(self.made, self.asked)
            if self.is_late and number % 2:
                found.close()
                break
        return Outcomes.joined(parts[0]), Outcomes.joined(parts[1])


def _batch(run: Callable[[Any], Any], shown: Callable[[Any], Any], rows: Any, runs: int) -> Outcomes:
    table = shown(rows)  # in the process that fits: a source that was opened cannot be sent to it
    return Outcomes.of([observe(run, table) for _ in range(runs)])
