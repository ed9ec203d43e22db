"""Running the service: one process on SQLite, several on PostgreSQL, and an address of its own for the operator.

SIGTERM or SIGINT: `/ready` says no, listening ends, requests under way are finished, the queue is emptied, and the process goes.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import uvicorn

from kveil.errors import InvalidValue, StorageUnavailable
from kveil.service import admin
from kveil.service.app import Service
from kveil.service.counts import Counts
from kveil.service.guarded import Guarded
from kveil.service.logs import tell
from kveil.service.settings import Settings
from kveil.service.tend import EVERY, Rules, Tend

GRACE, KEEP_ALIVE, MINUTE = 10, 5, 60.0
RESTART = 1.0  # seconds before a process that died is started again
QUIET: dict[str, Any] = {  # with these no line of the library holds an address, a path or an agent
    "access_log": False, "server_header": False, "proxy_headers": False, "ws": "none", "log_config": None,
    "date_header": False,
}  # fmt: skip


def serve(settings: Settings, announce: Any = None, rules: Rules | None = None) -> None:
    """Serve until a signal. `announce` is told the two ports once both listen; 0 asks for any. With `rules` campaigns go on by
    themselves."""
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its lines quote requests; ours say what an operator needs
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    is_sqlite = "://" not in settings.storage or settings.storage.startswith("sqlite")
    if is_sqlite and settings.workers > 1:
        raise InvalidValue(
            "a SQLite storage is served by one process: more would wait for each other. Use PostgreSQL for several."
        )
    with _only_one(settings.storage if is_sqlite else None), _listening(settings) as sockets:
        if announce is not None:
            announce(*(one.getsockname()[1] for one in sockets))
        counts = Counts(settings.workers)
        if settings.workers == 1:
            _work(settings, counts, 0, sockets, rules)
        else:
            _supervise(settings, counts, sockets, rules)


def _work(settings: Settings, counts: Counts, number: int, sockets: list[socket.socket], rules: Rules | None) -> None:
    counts.own(number)
    asyncio.run(_run(settings, counts, sockets[:1], sockets[1:] if number == 0 else [], rules if number == 0 else None))


async def _run(
    settings: Settings, counts: Counts, public: list[socket.socket], own: list[socket.socket], rules: Rules | None
) -> None:
    service = Service(settings, counts)
    limits = {
        "limit_concurrency": settings.most_connections,
        "timeout_keep_alive": KEEP_ALIVE,
        "timeout_graceful_shutdown": GRACE,
    }
    server = _Signalled(uvicorn.Config(service, http=Guarded, lifespan="on", **limits, **QUIET))
    service.is_ending = lambda: server.should_exit
    tasks = [asyncio.create_task(_every_minute(counts))] if own else []
    tend = None if rules is None else Tend(service.storage, settings.storage, rules)
    if tend is not None:
        tasks.append(asyncio.create_task(_tended(tend)))
    operator = _Unsignalled(uvicorn.Config(admin.app(service), http=Guarded, lifespan="off", **QUIET))
    if own:
        tasks.append(asyncio.create_task(operator.serve(sockets=own)))
        tell("start", workers=settings.workers, admission=settings.admission)
    try:
        await server.serve(sockets=public)
    finally:
        operator.should_exit = True
        if tend is not None:
            tend.stop()
        if own:
            await tasks.pop()
            tell("stop", **counts.summary())
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


def _supervise(settings: Settings, counts: Counts, sockets: list[socket.socket], rules: Rules | None) -> None:
    """Several processes on the same socket; one that dies is started again. A signal ends them all, each in its own good time."""
    children: dict[int, int] = {}
    ending: list[int] = []

    def end(number: int, frame: Any) -> None:
        ending.append(number)
        for child in list(children):
            os.kill(child, signal.SIGTERM)

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, end)
    for number in range(settings.workers):
        children[_forked(settings, counts, number, sockets, rules)] = number
    while children:
        child, _ = os.waitpid(-1, 0)
        number = children.pop(child, -1)
        if number >= 0 and not ending:
            tell("restart")
            time.sleep(RESTART)
            children[_forked(settings, counts, number, sockets, rules)] = number


def _forked(settings: Settings, counts: Counts, number: int, sockets: list[socket.socket], rules: Rules | None) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        _work(settings, counts, number, sockets, rules)
        code = 0
    finally:
        os._exit(code)


class _Signalled(uvicorn.Server):
    """Ends by a signal as the library's own does, but does not raise it again: we have a last line to write."""

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
