"""Running the service: one process on SQLite, several on PostgreSQL, and an address of its own for the operator.

SIGTERM or SIGINT: `/ready` says no, listening ends, requests under way are finished, the queue is emptied, and the process goes.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import uvicorn
import uvloop

from kveil.errors import InvalidValue, StorageUnavailable
from kveil.service import admin, admission
from kveil.service.app import Service
from kveil.service.counts import Counts
from kveil.service.guarded import Guarded
from kveil.service.logs import tell
from kveil.service.settings import Settings
from kveil.service.tend import EVERY, Rules, Tend

GRACE, KEEP_ALIVE, MINUTE = 10, 5, 60.0
GARBAGE = 20_000  # new objects before those in rings are looked for
RESTART = 1.0  # seconds before a process that died is started again
QUIET: dict[str, Any] = {  # with these no line of the library holds an address, a path or an agent
    "access_log": False, "server_header": False, "proxy_headers": False, "ws": "none", "log_config": None,
    "date_header": False,
}  # fmt: skip


def serve(settings: Settings, announce: Callable[[int, int], None] | None = None, rules: Rules | None = None) -> None:
    """Serve until a signal. `announce` is told both ports once requests are taken; port 0 asks for any free one.

    With `rules` campaigns go on by themselves.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its lines quote requests; ours say what an operator needs
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    is_sqlite = "://" not in settings.storage or settings.storage.startswith("sqlite")
    if is_sqlite and settings.workers > 1:
        raise InvalidValue(
            "a SQLite storage is served by one process: more would wait for each other. Use PostgreSQL for several."
        )
    admission.named(settings)  # what it refuses is refused before an address is taken
    with _only_one(settings.storage if is_sqlite else None), _listening(settings) as sockets:
        ports = [one.getsockname()[1] for one in sockets]
        work = _Work(settings, Counts(settings.workers), sockets, rules, partial(announce or _silent, *ports))
        if settings.workers == 1:
            work.run(0)
        else:
            _supervise(work)


def _silent(*ports: int) -> None:
    """Nobody asked."""


@dataclass(frozen=True)
class _Work:
    """What a process does, the first one for the operator, too."""

    settings: Settings
    counts: Counts
    sockets: list[socket.socket]
    rules: Rules | None
    announce: Callable[[], None]

    def run(self, number: int) -> None:
        self.counts.own(number)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(self.sockets[:1], self.sockets[1:] if number == 0 else []))

    async def _serve(self, public: list[socket.socket], own: list[socket.socket]) -> None:
        service = Service(self.settings, self.counts)
        gc.freeze()  # what is there now stays: looking through it again and again would cost a twentieth of all
        gc.set_threshold(GARBAGE)
        limits: dict[str, Any] = {
            "limit_concurrency": self.settings.most_connections,
            "timeout_keep_alive": KEEP_ALIVE,
            "timeout_graceful_shutdown": GRACE,
        }
        server = _Signalled(uvicorn.Config(service, http=Guarded, lifespan="on", **limits, **QUIET))
        server.when_started = self.announce if own else None
        service.is_ending = lambda: server.should_exit
        tasks = [asyncio.create_task(_every_minute(self.counts))] if own else []
        tend = None if self.rules is None or not own else Tend(service.storage, self.settings.storage, self.rules)
        if tend is not None:
            tasks.append(asyncio.create_task(_tended(tend)))
        operator = _Unsignalled(uvicorn.Config(admin.app(service), http=Guarded, lifespan="off", **QUIET))
        if own:
            tasks.append(asyncio.create_task(operator.serve(sockets=own)))
            tell("start", workers=self.settings.workers, admission=self.settings.admission)
        try:
            await server.serve(sockets=public)
        finally:
            operator.should_exit = True
            if tend is not None:
                tend.stop()
            if own:
                await tasks.pop()
                tell("stop", **self.counts.summary())
            for task in tasks:
                task.cancel()


async def _every_minute(counts: Counts) -> None:
    while True:
        await asyncio.sleep(MINUTE)
        tell("counts", **counts.summary())


async def _tended(tend: Tend) -> None:
    while True:
        try:
            await asyncio.to_thread(tend.look)
        except StorageUnavailable:
            tell("storage", fault="StorageUnavailable", is_passing=True)
        await asyncio.sleep(EVERY)


def _supervise(work: _Work) -> None:
    """Several processes on the same socket; one that dies is started again. A signal ends them all, each in its own good time."""
    children: dict[int, int] = {}
    ending: list[int] = []

    def end(number: int, frame: Any) -> None:
        ending.append(number)
        for child in list(children):
            os.kill(child, signal.SIGTERM)

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, end)
    for number in range(work.settings.workers):
        children[_forked(work, number)] = number
    while children:
        child, _ = os.waitpid(-1, 0)
        number = children.pop(child, -1)
        if number >= 0 and not ending:
            tell("restart")
            time.sleep(RESTART)
            children[_forked(work, number)] = number


def _forked(work: _Work, number: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        work.run(number)
        code = 0
    finally:
        os._exit(code)


class _Signalled(uvicorn.Server):
    """Ends by a signal as the library's own does, but does not raise it again: we have a last line to write."""

    when_started: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.when_started is not None:
            self.when_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, self.handle_exit, name, None)
        yield


class _Unsignalled(uvicorn.Server):
    """The operator's server ends with the public one, not by signals of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _listening(settings: Settings) -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        for host, port in ((settings.host, settings.port), (settings.admin_host, settings.admin_port)):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                opened.append(socket.create_server((host, port), family=family, backlog=1024))
            except OSError:
                raise InvalidValue(
                    f"{host}:{port} cannot be listened on: it is taken, or not an address of this machine."
                ) from None
        yield opened
    finally:
        for one in opened:
            one.close()


@contextmanager
def _only_one(path: str | None) -> Iterator[None]:
    """A second process on the same SQLite file is refused: the two would wait for each other."""
    if path is None or "://" in path:
        yield
        return
    lock: IO[str]
    with open(f"{path}.serving", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidValue(
                "another process serves this storage already. SQLite is served by one; PostgreSQL by several."
            ) from None
        yield
