"""Progress: which public step of how many a fit is at, and how far the pass over the table has come.

Two kinds of news, kept apart because they may go to different people:

- **Steps** (`step`) have a label, a number and a total, all of them known before the data is read, or decided by noisy answers.
  Neighbouring tables give the same steps, which every replay checks. They may be shown to anyone who may see the release.
- **Reading** (`reading`) tells how much of the source a pass has gone through: bytes of files, or parts of a table, as they lie
  there. They are the operator's own, who sees the size of the file anyway, and they are told before any row is left out: a
  file of so many bytes gives the same news whether all of its rows count or none. One more row makes a file longer, so these
  numbers are not private. They go to the listener and nowhere else: never into a release, a note, a ledger or a message. Only
  that a pass begins is a public step: which passes there are follows from noisy answers, and replays check that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from threading import Lock
from typing import Literal

Unit = Literal["bytes", "parts"]
Listener = Callable[[str, int, int], None]
ReadListener = Callable[[int, int, Unit], None]

_listener: ContextVar[Listener | None] = ContextVar("kveil_progress", default=None)
_reader: ContextVar[ReadListener | None] = ContextVar("kveil_reading", default=None)


@contextmanager
def listen(callback: Listener, read: ReadListener | None = None) -> Iterator[None]:
    """Call `callback(label, number, total)` at every step made inside the `with` block.

    read: is called as `read(done, total, unit)` during every pass over the rows, first with 0 done. For the operator's own eyes.
        Threads may call it, one at a time.

    >>> with listen(lambda label, number, total: print(f"{label} {number}/{total}")):
    ...     step("seeding", 1, 3)
    seeding 1/3
    """
    token, other = _listener.set(callback), _reader.set(read)
    try:
        yield
    finally:
        _listener.reset(token)
        _reader.reset(other)


def step(label: str, number: int, total: int) -> None:
    """Say that step `number` of `total` begins. All three must be known before the data is read."""
    callback = _listener.get()
    if callback is not None:
        callback(label, number, total)


class Reading:
    """One pass over the parts of a source. Whoever reads says which part is done; the listener hears of each once, in order.

    So it hears the same of two tables with parts of the same sizes, whichever of their rows count, and in whichever part of the
    pass a thread found nothing to do. `marks` are the shares of parts that an earlier pass told of: rows that are kept in memory
    are few enough for that, which is private, so this pass tells of the same.
    """

    def __init__(self, sizes: Sequence[int], callback: ReadListener | None, marks: Mapping[int, Sequence[float]]) -> None:
        self._callback, self._lock, self._marks = callback, Lock(), marks
        self._unit: Unit = "parts" if all(size == 1 for size in sizes) else "bytes"
        self._ends = [0, *accumulate(sizes)]
        self._next, self._told = 0, -1  # the first part that was not told of; what was told last
        self._tell(0)

    def done(self, part: int, share: float = 1.0) -> None:
        """So much of a part was read, and all of the parts before it were begun."""
        if self._callback is None:
            return
        with self._lock:
            for number in range(self._next, part):
                self._tell_all(number)
            self._next = max(self._next, part)
            if part == self._next and share < 1:
                self._tell(self._at(part, share))
            elif part == self._next:
                self._tell_all(part)
                self._next += 1

    def finish(self) -> None:
        """All parts were read."""
        if self._next < len(self._ends) - 1:
            self.done(len(self._ends) - 2)

    def _tell_all(self, part: int) -> None:
        for share in (*self._marks.get(part, ()), 1.0):
            self._tell(self._at(part, share))

    def _at(self, part: int, share: float) -> int:
        return self._ends[part] + int(share * (self._ends[part + 1] - self._ends[part]))

    def _tell(self, done: int) -> None:
        if self._callback is not None and done > self._told:  # so 0 is told once, when the pass begins
            self._told = done
            self._callback(done, self._ends[-1], self._unit)


def reading(sizes: Sequence[int], marks: Mapping[int, Sequence[float]]) -> Reading:
    """Begin a pass over parts of these sizes. The listener is the caller's, also for threads that it starts."""
    return Reading(sizes, _reader.get(), marks)
