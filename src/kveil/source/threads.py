"""Several threads over one list of tasks, with BLAS held to one thread meanwhile.

Each worker takes the next task when it is free and keeps one running result, so at most one block a thread is in
memory, however many blocks there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from kveil import libraries

T = TypeVar("T")
R = TypeVar("R")


def n_threads() -> int:
    """KVEIL_THREADS if it is a whole number above 0, else the cores this process may use."""
    asked = os.environ.get("KVEIL_THREADS", "").strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


def run(work: Callable[[Iterator[T]], R], tasks: Iterable[T], *, is_tiny: bool = False) -> list[R]:
    """What `work` returned in each thread; the threads share the tasks among them, each task going to one of them.

    is_tiny: all is done by the caller's thread, with BLAS as it is, because a thread costs more than the work.
    """
    waiting = list(tasks)
    if is_tiny:
        return [work(iter(waiting))]
    n = min(n_threads(), len(waiting))
    with one_blas_thread():
        if n <= 1:
            return [work(iter(waiting))]
        queue = _Queue(waiting)
        with ThreadPoolExecutor(n - 1) as pool:
            running = [pool.submit(_shared, work, queue) for _ in range(n - 1)]
            return [_shared(work, queue), *(future.result() for future in running)]  # the caller's thread is one of them


def _shared(work: Callable[[Iterator[T]], R], queue: _Queue[T]) -> R:
    """One thread's part. After a failure or Ctrl-C the others stop at their next task."""
    try:
        return work(queue)
    except BaseException:
        queue.close()
        raise


class _Queue(Generic[T]):
    """An iterator that threads may share."""

    def __init__(self, tasks: list[T]) -> None:
        self._tasks = iter(tasks)
        self._lock = Lock()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._lock:
            return next(self._tasks)

    def close(self) -> None:
        with self._lock:
            self._tasks = iter(())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS with one thread while any caller is inside; the first to come sets the limit, the last to leave restores it."""
    with _Limit.lock:
        if _Limit.users == 0:
            _Limit.keeper = _Keeper() if _runs_threads() else None  # a keeper costs more than a pass over a tiny table
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0 and _Limit.keeper is not None:
                _Limit.keeper.release()


class _Keeper:
    """A thread that holds the limit: only the thread that set one can restore it, and the first caller may leave first."""

    def __init__(self) -> None:
        self._is_set, self._may_go = Event(), Event()
        self._thread = Thread(target=self._hold, name="kveil-one-blas-thread", daemon=True)
        self._thread.start()
        self._is_set.wait()

    def _hold(self) -> None:
        try:
            with libraries.found().limit(limits=1, user_api="blas"):
                self._is_set.set()
                self._may_go.wait()
        finally:
            self._is_set.set()

    def release(self) -> None:
        self._may_go.set()
        self._thread.join()


def _runs_threads() -> bool:
    return any(library.user_api == "blas" and library.num_threads != 1 for library in libraries.found().lib_controllers)


class _Limit:
    """The limit is global to the process, and so is this."""

    lock = Lock()
    users = 0
    keeper: _Keeper | None = None
