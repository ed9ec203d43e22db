"""Progress that names public steps: which step of how many. Never rows, blocks or partitions, which are private."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("kveil_progress", default=None)


@contextmanager
def listen(callback: Listener) -> Iterator[None]:
    """Call `callback(label, number, total)` at every step made inside the `with` block.

    >>> with listen(lambda label, number, total: print(f"{label} {number}/{total}")):
    ...     step("seeding", 1, 3)
    seeding 1/3
    """
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


def step(label: str, number: int, total: int) -> None:
    """Say that step `number` of `total` begins. All three must be known before the data is read."""
    callback = _listener.get()
    if callback is not None:
        callback(label, number, total)
