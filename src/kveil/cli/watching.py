"""Progress for whoever runs a command: a bar on a terminal, and one line per minute where nobody watches.

It shows the public step, and how far the pass over the table has come: in bytes, or parts, of the operator's own source (see
`kveil.progress`). It goes to stderr alone. Lines, which may end in a file, carry a share and a time, no sizes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kveil.cli.state import PROGRESS, state
from kveil.progress import Listener, listen

EVERY = 60.0  # seconds between two lines

log = logging.getLogger(PROGRESS)


@contextmanager
def progress_on_terminals() -> Iterator[None]:
    """What a fit does, on stderr: a bar if a person is watching, otherwise a line per minute; nothing with --quiet."""
    if state.quiet:
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _Bar(console) as bar, listen(bar.step, bar.read):
            yield
    else:
        lines = Lines()
        with listen(lines.step, lines.read):
            yield


@contextmanager
def bar_on_terminals() -> Iterator[Listener]:
    """What moves a bar of steps on stderr, if a person is watching; otherwise it moves nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if state.quiet or not console.is_terminal:
        yield lambda label, number, total: None
        return
    with _Bar(console) as bar:
        yield bar.count


class Lines:
    """One log line per minute, under the name `kveil.progress`."""

    def __init__(self, clock: Any = time.monotonic) -> None:
        self._clock, self._last, self._doing = clock, clock(), "reading"
        self._begun, self._share = self._last, 0.0

    def step(self, label: str, number: int, total: int) -> None:
        self._doing = f"{label} (step {number} of {total})"
        self._perhaps()

    def read(self, done: int, total: int, unit: str) -> None:
        now = self._clock()
        self._begun = now if not done else self._begun
        self._share = done / total if total else 1.0
        self._perhaps()

    def _perhaps(self) -> None:
        now = self._clock()
        if now - self._last >= EVERY:
            self._last = now
            log.log(logging.INFO, "%s, %d %% of this pass%s", self._doing, int(100 * self._share), self._left(now))

    def _left(self, now: float) -> str:
        if not 0 < self._share < 1:
            return ""
        return f", about {_spoken((now - self._begun) * (1 / self._share - 1))} left in it"


class _Bar:
    """A bar that shows a step and, as soon as rows are read, how far the pass is."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[far]}"),
            TimeRemainingColumn(compact=True), console=console, transient=True,
        )  # fmt: skip
        self._task: Any = None
        self._doing = "opening"

    def __enter__(self) -> _Bar:
        self._bar.start()
        self._task = self._bar.add_task(self._doing, total=None, far="")
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def step(self, label: str, number: int, total: int) -> None:
        self._doing = f"{label} (step {number} of {total})"
        self._bar.update(self._task, description=self._doing)

    def read(self, done: int, total: int, unit: str) -> None:
        if not done:  # another pass: what is left is estimated anew
            self._bar.reset(self._task, total=max(1, total), description=self._doing, far="")
        self._bar.update(self._task, completed=done if total else 1, far=_far(done, total, unit))

    def count(self, label: str, number: int, total: int) -> None:
        """Steps that are all there is to count."""
        self._bar.update(self._task, description=label, completed=number, total=total, far=f"{number} of {total}")


def _far(done: int, total: int, unit: str) -> str:
    if unit == "parts" or total < 10**6:
        return f"{int(100 * done / total) if total else 100} % of this pass"
    return f"{done / 10**6:,.0f} of {total / 10**6:,.0f} MB of this pass"


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
