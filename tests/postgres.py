"""A PostgreSQL server for tests, from Debian's package, in a temporary folder: a socket in it, and no port.

Root may not run one, so then it runs as the package's own user. Where there is none, tests that need it are skipped and say so.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)) if os.name == "posix" else []
OWNER = "postgres"
RUNNING: list[Server] = []  # of this process


@contextmanager
def connections_closed() -> Iterator[None]:
    """Closes what a test leaves open: SQLAlchemy drops connections of PostgreSQL unclosed, which would warn in another test."""
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    opened: list[Any] = []

    def note(connection: Any, record: Any) -> None:
        opened.append(connection)

    event.listen(Pool, "connect", note)
    yield
    event.remove(Pool, "connect", note)
    for connection in opened:
        if type(connection).__module__.startswith("psycopg"):
            connection.close()


def why_not() -> str:
    """Why no server can be started here; nothing if one can."""
    if not BINARIES or not (BINARIES[-1] / "initdb").exists():
        return "PostgreSQL is not installed: apt-get install postgresql"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return 'psycopg is not installed: pip install "kveil[postgres]"'
    return ""


class Server:
    """A server of its own, with durable commits as it ships."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kveil-pg-"))
        self._owner = {"user": OWNER, "group": pwd.getpwnam(OWNER).pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
        if self._owner:
            shutil.chown(self.folder, OWNER, pwd.getpwnam(OWNER).pw_gid)
        self._names = count(1)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", OWNER, "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()
        RUNNING.append(self)

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=60"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        """`immediate` is a crash: nothing is flushed, and the next start recovers from the log."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", how, "stop")

    def database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"kveil{next(self._names)}"
        with closing(psycopg.connect(host=str(self.folder), user=OWNER, dbname=OWNER, autocommit=True)) as db:
            db.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{OWNER}@/{name}?host={self.folder}"

    def close(self) -> None:
        RUNNING.remove(self)
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        with tempfile.TemporaryFile("w+") as said:
            command = [str(BINARIES[-1] / program), *arguments]
            done = subprocess.run(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd="/", **self._owner)  # type: ignore[call-overload]
            said.seek(0)
            assert done.returncode == 0, said.read()
