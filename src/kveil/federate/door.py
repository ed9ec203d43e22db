"""A party behind a Unix socket: for a relay on the same machine that may pass messages on and may not see rows.

A message is its length in 8 bytes, then its bytes; a reply of length 0 is silence. The socket's file mode lets in its group, so
that the relay can run as another user, who cannot read the data, the ledger or the journal.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from kveil.errors import InvalidValue
from kveil.federate.calling import ticked
from kveil.federate.keys import COORDINATOR
from kveil.federate.party import Party

PATIENCE = 30.0


class Door:
    """A started listener on a Unix socket."""

    def __init__(self, party: Party, path: str | os.PathLike[str], *, reply_every: float | None = None) -> None:
        self.path, self._answer = Path(path), ticked(party.answer, reply_every)
        self._largest, self._one = party.largest_request, threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(os.fspath(path))
        except OSError as error:
            self._listener.close()
            raise InvalidValue(f"cannot listen at {os.fspath(path)!r}: {error.strerror}. Remove an old socket there.") from None
        self.path.chmod(0o660)
        self._listener.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        self._listener.close()
        with suppress(OSError):
            self.path.unlink()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # stopped
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            with self._one:  # one message in memory: a party answers them one by one
                request = received(connection, self._largest)
                if request is None:
                    return
                reply = self._answer(request, COORDINATOR) or b""
            connection.sendall(len(reply).to_bytes(8, "big") + reply)


def received(connection: socket.socket, largest: int) -> bytes | None:
    """One message; None if it breaks off, takes too long or is longer than it may be."""
    length = int.from_bytes(_exactly(connection, 8), "big")
    if not 0 < length <= largest:
        return None
    data = _exactly(connection, length)
    return data if len(data) == length else None


def _exactly(connection: socket.socket, n: int) -> bytes:
    parts, missing, deadline = [], n, time.monotonic() + PATIENCE
    while missing and time.monotonic() < deadline and (part := connection.recv(min(missing, 1 << 16))):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
