"""No kernel is compiled by two processes at once: the second waits for the first, and then finds its work in numba's cache.

In a new clone all workers begin with an empty cache. Without this, each of them compiles most kernels.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_COMPILE = Dispatcher.compile


def install() -> None:
    """Once in a process. Where files cannot be locked, every process compiles for itself, as before."""
    try:
        import fcntl
    except ImportError:
        return
    place = Path(tempfile.gettempdir()) / f"kveil-tests-{os.getuid()}"
    place.mkdir(exist_ok=True)
    locks = [place / str(number) for number in range(64)]
    for lock in locks:
        lock.touch()  # now, since tests watch which files a fit writes
    is_compiling = False

    def compile_alone(self: Any, sig: Any) -> Any:
        nonlocal is_compiling
        with global_compiler_lock:  # before the file: two threads that took them in different orders would wait for ever
            if is_compiling:  # a kernel that another one calls: nobody who waits for a file holds one
                return _COMPILE(self, sig)
            name = f"{self.py_func.__code__.co_filename} {self.py_func.__qualname__}"
            with locks[zlib.crc32(name.encode()) % len(locks)].open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                is_compiling = True
                try:
                    return _COMPILE(self, sig)
                finally:
                    is_compiling = False

    Dispatcher.compile = compile_alone
