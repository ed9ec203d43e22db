"""Processes that begin with kveil loaded: each is forked from one process that does nothing but import it.

A cold start takes two seconds of a core. Tests that are about a cold start use `subprocess`; the others use this.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any
from unittest import mock

import repeated

KVEIL = "from kveil.cli.main import main; main()"
SCRIPT = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([
    "kveil.cli.main", "kveil.cli.fit", "kveil.cli.federate", "kveil.models.private_kmeans", "kveil.models.private_kmedian",
    "kveil.models.stream_kmeans", "kveil.models.local_kmeans", "kveil.models.federated_kmeans", "pandas",
    "kveil.service.server", "kveil.collect.collector", "numba.typed", "numba.np.linalg", "numba.core.typing.cffi_utils",
    "distributed", "dask.array", "dask.dataframe", "pydantic.type_adapter", "warm_up",
])  # fmt: skip


def begin() -> None:
    """The one process runs: whoever else asks for a fork server, such as a cluster of Dask, gets this one."""
    found = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])  # for `warm_up`
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=found):  # threads do not survive a fork
        forkserver.ensure_running()


class Started:
    """A running process: its lines, and what may be done to it."""

    def __init__(self, code: str, *arguments: Any, cwd: Any, stderr: IO[str], env: Mapping[str, str] | None = None) -> None:
        out, theirs = os.pipe()
        stdin, self._stdin = os.pipe()  # open until the end
        self.stdout = os.fdopen(out)
        self._process = _begun(code, arguments, cwd, env, (stdin, theirs, stderr.fileno()))
        self.pid = self._process.pid
        os.close(theirs)
        os.close(stdin)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal, as of `subprocess`."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return self._process.exitcode

    def is_over(self) -> bool:
        return not self._process.is_alive()

    def send_signal(self, by: signal.Signals) -> None:
        if not self.is_over():
            os.kill(self.pid, by)

    def close(self) -> None:
        """Killed, and nothing of it left open."""
        self._process.kill()
        self._process.join()
        self.stdout.close()
        os.close(self._stdin)


def run(
    code: str, *arguments: Any, cwd: Any, text: str = "", env: Mapping[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """A process from its beginning to its end: its exit code and all that it wrote."""
    with tempfile.TemporaryFile("w+") as stdin, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        stdin.write(text)
        stdin.seek(0)
        process = _begun(code, arguments, cwd, env, (stdin.fileno(), out.fileno(), err.fileno()))
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(str(arguments), timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([str(a) for a in arguments], process.exitcode, out.read(), err.read())


def _begun(code: str, arguments: Any, cwd: Any, env: Mapping[str, str] | None, files: tuple[int, int, int]) -> Any:
    begin()
    stream = repeated.current()
    given = (stream and stream.child(), code, ["kveil", *map(str, arguments)], str(cwd), dict(os.environ if env is None else env))
    process = SERVER.Process(target=_child, args=(*given, _Files(*files)))
    process.start()
    return process


class _Files:
    """Open files; on the way to a child they become its own."""

    def __init__(self, *files: Any) -> None:
        self.files = files

    def __reduce__(self) -> Any:
        return _Files, tuple(DupFd(file) for file in self.files)


def _child(noise: str | None, code: str, argv: list[str], cwd: str, env: dict[str, str], given: _Files) -> None:
    repeated.begin(noise)
    for place, file in enumerate(given.files):
        os.dup2(file.detach(), place)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)  # line by line
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background and ignore it
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = argv
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
