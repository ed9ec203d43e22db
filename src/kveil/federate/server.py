"""A small HTTP server for messages between known peers, on the standard library, hardened where that is known to be soft.

Measured traps: a listener that shakes hands while accepting lets one half-open client stop everybody (so the handshake is in the
connection's own thread, with a timeout); unbuffered replies with Nagle's algorithm wait 50 ms for an acknowledgement each.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from typing import Any

from kveil.errors import InvalidValue
from kveil.federate.admission import Bodies, Place, Places
from kveil.federate.keys import Keys
from kveil.federate.wire import LARGEST

HANDSHAKE = 5.0  # seconds for every step of a handshake, and until a caller has said who it is
PATIENCE = 30.0  # seconds that a known caller may be silent, or wait for room
SLOWEST = 2**18  # bytes per second of a body, after PATIENCE
MOST_HEADERS = 2**15  # bytes of a request that are not its body
PIECE = 2**16  # bytes that are received in one go
PLAIN_NAME = "Kveil-Name"  # who calls, where there are no keys to prove it: on this machine, in tests

Answer = tuple[int, bytes]  # status and body
Respond = Callable[
    [str, str, bytes], Answer | Callable[[], Answer]
]  # (who calls, path, body) -> an answer, or how to wait for it

log = logging.getLogger("kveil.federate")


class Server(ThreadingHTTPServer):
    """Listens on one address. With `keys` over TLS 1.3, to callers that show a token of theirs or, `mutual`, a certificate.

    Without keys it speaks plain HTTP, to this machine alone and believing everybody: for tests.
    largest: how many bytes a caller may send now. A body stays in memory until `respond` returns; where that takes long, it
    returns how to wait, and keeps no body.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        host: str,
        port: int,
        respond: Respond,
        keys: Keys | None,
        *,
        mutual: bool = False,
        largest: Callable[[str], int] = lambda who: LARGEST,
    ) -> None:
        if keys is None and not is_loopback(host):
            raise InvalidValue("without keys this server would answer anybody in plain text. It does so on 127.0.0.1 only.")
        self.respond, self.keys, self.largest, self.mutual = respond, keys, largest, mutual
        self._context = None if keys is None else keys.for_listening(mutual=mutual)
        self.places, self.bodies = Places(), Bodies()
        try:
            super().__init__((host, port), BaseHTTPRequestHandler)  # `finish_request` makes a Handler, with its place
        except OSError as error:
            raise InvalidValue(
                f"cannot listen on {host}:{port}: {error.strerror}. Choose another port, or an address of this machine."
            ) from None

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"{'http' if self.keys is None else 'https'}://{host!s}:{port}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """One connection, in its own thread: handshake first, so that nobody else waits for it."""
        place = self.places.enter(request, client_address[0])
        try:
            request.settimeout(HANDSHAKE)
            if self._context is not None:
                request = self._context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
                self.places.secure(place, request)
                request.do_handshake()
            with request:
                Handler(request, client_address, self, place)
        finally:
            self.places.leave(place)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that went away or is no peer of ours: worth a line, not a traceback."""
        log.info("a connection ended early")

    def caller(self, connection: Any, headers: Any) -> str | None:
        """Who calls, if anybody we know."""
        if self.keys is None:
            return str(headers.get(PLAIN_NAME, ""))
        if self.mutual:
            return self.keys.peer_of(connection.getpeercert(binary_form=True))
        kind, _, token = headers.get("Authorization", "").partition(" ")
        return self.keys.caller(token) if kind == "Bearer" else None


class Lines(BufferedReader):
    """What arrives on a connection. Lines are of requests and their headers: so many bytes, until `left` is set anew."""

    left = MOST_HEADERS

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.left -= len(line)
        if self.left < 0:
            raise ConnectionError("too many headers")
        return line


class Handler(BaseHTTPRequestHandler):
    """POST, a body of known length, and nothing else."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "kveil", ""
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Server
    rfile: Lines

    def __init__(self, request: Any, client_address: Any, server: Server, place: Place) -> None:
        self.place = place
        super().__init__(request, client_address, server)

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = Lines(self.connection.makefile("rb", buffering=0))

    def handle_one_request(self) -> None:
        self.rfile.left = MOST_HEADERS
        super().handle_one_request()

    def do_POST(self) -> None:
        who = self.server.caller(self.connection, self.headers)
        if who is None:
            return self._end(HTTPStatus.UNAUTHORIZED)
        self.server.places.prove(self.place, who)
        self.connection.settimeout(PATIENCE)
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not (length.isascii() and length.isdecimal() and len(length) < 12):
            return self._end(HTTPStatus.LENGTH_REQUIRED)
        size = int(length)
        if size > LARGEST:  # before a byte of it is read
            return self._end(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if size > self.server.largest(who):  # received and thrown away: who is cut off in the middle would only try again
            sum(len(piece) for piece in self._pieces(size))
            return self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
        with self.server.bodies.room(who, size, PATIENCE) as has_room:
            if not has_room:
                return self._end(HTTPStatus.SERVICE_UNAVAILABLE)
            answer = self.server.respond(who, self.path, b"".join(self._pieces(size)))
        status, body = answer() if callable(answer) else answer
        self._send(status, body)

    def _pieces(self, size: int) -> Iterator[bytes]:
        """A body as it arrives; one that breaks off, or comes too slowly, ends the connection."""
        deadline = time.monotonic() + PATIENCE + size / SLOWEST
        while size:
            piece = self.rfile.read1(min(size, PIECE))
            if not piece or time.monotonic() > deadline:
                raise ConnectionError("a body broke off")
            size -= len(piece)
            yield piece

    def _end(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(status, b"")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        with suppress(OSError, ssl.SSLError):
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: request lines of strangers do not belong into a log."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its number; a name could be anything."""
    try:
        return socket.inet_aton(host)[0] == 127 if ":" not in host else host == "::1"
    except OSError:
        return False
