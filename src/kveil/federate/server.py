"""A small HTTP server for messages between known peers, on the standard library, hardened where that is known to be soft.

Measured traps: a listener that shakes hands while accepting lets one half-open client stop everybody (so the handshake is in the
connection's own thread, with a timeout); unbuffered replies with Nagle's algorithm wait 50 ms for an acknowledgement each.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kveil.errors import InvalidValue
from kveil.federate.keys import Keys
from kveil.federate.wire import LARGEST

PATIENCE = 30.0  # seconds for a handshake, or for the next bytes of a request
MOST_CONNECTIONS = 256
PLAIN_NAME = "Kveil-Name"  # who calls, where there are no keys to prove it: on this machine, in tests

Respond = Callable[[str, str, bytes], tuple[int, bytes]]  # (who calls, path, body) -> (status, body)

log = logging.getLogger("kveil.federate")


class Server(ThreadingHTTPServer):
    """Listens on one address. With `keys` over TLS 1.3, to callers that show a token of theirs or, `mutual`, a certificate.

    Without keys it speaks plain HTTP, to this machine alone and believing everybody: for tests.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, respond: Respond, keys: Keys | None, *, mutual: bool = False) -> None:
        if keys is None and not is_loopback(host):
            raise InvalidValue("without keys this server would answer anybody in plain text. It does so on 127.0.0.1 only.")
        self.respond, self.keys, self.mutual = respond, keys, mutual
        self._context = None if keys is None else keys.for_listening(mutual=mutual)
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            super().__init__((host, port), Handler)
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
        if not self._places.acquire(blocking=False):
            return
        try:
            request.settimeout(PATIENCE)
            if self._context is not None:
                request = self._context.wrap_socket(request, server_side=True)
            with request:
                Handler(request, client_address, self)
        finally:
            self._places.release()

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


class Handler(BaseHTTPRequestHandler):
    """POST, a body of known length, and nothing else."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "kveil", ""
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = PATIENCE
    server: Server

    def do_POST(self) -> None:
        who = self.server.caller(self.connection, self.headers)
        if who is None:
            return self._end(HTTPStatus.UNAUTHORIZED)
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not (length.isascii() and length.isdecimal() and len(length) < 12):
            return self._end(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > LARGEST:  # before a byte of it is read
            return self._end(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return self._end(HTTPStatus.BAD_REQUEST)
        status, answer = self.server.respond(who, self.path, body)
        self._send(status, answer)

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
