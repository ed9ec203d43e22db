"""Calls to one peer over HTTP, by `http.client`: urllib follows redirects, honours proxies, and may carry a token along."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

from kveil.errors import FederationError, InvalidValue
from kveil.federate.keys import Keys
from kveil.federate.server import PLAIN_NAME, is_loopback
from kveil.federate.wire import LARGEST

CONNECT = 10.0  # seconds


KEYS_ADVICE = "Use folders that one call of `kveil federate keys` made, and --mutual on both sides or on neither."


ENDED = {  # by OpenSSL's code
    9: "its certificate is not valid yet: are the clocks of both machines right?",
    10: "its certificate has ended: it is renewed with `kveil federate renew`, over there",
}


class CallFailed(FederationError):
    """The peer could not be reached, broke off or has nothing to ask; the same bytes may be sent again."""


class TooLarge(FederationError):
    """A message is larger than its reader takes now; it was thrown away."""


class Client:
    """One peer at one address. The connection is kept; a broken one is made anew with the next call.

    Over TLS with `keys`; plain HTTP without, to 127.0.0.1 alone: for tests.
    """

    def __init__(self, url: str, keys: Keys | None, *, mutual: bool = False, name: str = "coordinator") -> None:
        parts = urlsplit(url)
        scheme = "http" if keys is None else "https"
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != scheme or not host or port is None or parts.path.strip("/") or parts.query or parts.username:
            raise InvalidValue(f'an address must be "{scheme}://host:port", got {url!r}. Plain http is for tests on 127.0.0.1.')
        if keys is None and not is_loopback(host):
            raise InvalidValue("plain http is for tests on 127.0.0.1; elsewhere a token would be there for all to read.")
        self.url, self._keys, self._mutual, self._name = url, keys, mutual, name
        self.peer: str | None = None
        self._host, self._port = host, port
        self._context = None if keys is None else keys.for_calling(mutual=mutual)
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes, timeout: float, largest: int = LARGEST) -> tuple[int, bytes]:
        """Status and body of the answer: 200 or 204, within `timeout` seconds and `largest` bytes. Any other is an error; a
        redirect is never followed."""
        try:
            connection = self._connected(timeout)
            headers = {"Content-Type": "application/json", **self._shown()}
            with _cut_after(timeout, connection.sock):
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                status, length = response.status, response.length
                answer = response.read() if length is not None and length <= largest else b""
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._failed(error) from None
        if status == 413:
            raise TooLarge("takes no message of this size")
        if status in (200, 204) and length is not None and length <= largest:
            return status, answer
        self.close()
        if status in (200, 204):
            raise TooLarge("answered more than was asked")
        if status in (404, 503):
            raise CallFailed(f"does not ask this party now, HTTP status {status}")
        raise FederationError("does not know this caller" if status == 401 else f"answered with HTTP status {status}")

    def connect(self, timeout: float) -> str | None:
        """The name of the peer at this address, by its certificate; None without one."""
        try:
            self._connected(timeout)
        except OSError as error:
            self.close()
            raise self._failed(error) from None
        return self.peer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._context is None:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=min(timeout, CONNECT))
            else:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=min(timeout, CONNECT), context=self._context
                )
            self._connection = connection
            connection.connect()
            self._recognise(connection)
        self._connection.sock.settimeout(timeout)
        return self._connection

    def _failed(self, error: Exception) -> CallFailed:
        """What to say of a call that broke off. A peer that looks at our certificate ends the call without a word."""
        if self._mutual and self._keys is not None and self._keys.has_ended():
            return CallFailed("cannot be reached (the certificate of this side has ended: renew it with `kveil federate renew`)")
        return CallFailed(f"cannot be reached ({_why(error)})")

    def _shown(self) -> dict[str, str]:
        """Who we are: by a token, inside TLS only; by name alone on this machine."""
        if self._keys is None:
            return {PLAIN_NAME: self._name}
        if self._mutual or self.peer is None:
            return {}
        return {"Authorization": f"Bearer {self._keys.token(self.peer)}"}

    def _recognise(self, connection: http.client.HTTPConnection) -> None:
        if self._keys is None:
            return
        assert isinstance(connection.sock, ssl.SSLSocket)
        peer = self._keys.peer_of(connection.sock.getpeercert(binary_form=True))
        if peer is None or self.peer not in (None, peer):
            self.close()
            raise ConnectionError("another peer than before")
        self.peer = peer


@contextmanager
def _cut_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    """Cuts a call off that takes longer in all: time limits of sockets are for every piece, and pieces may come one by one."""
    timer = threading.Timer(seconds, partial(_cut, connection))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _why(error: Exception) -> str:
    """A few words for a log: what to look at first."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in ENDED:
        return ENDED[error.verify_code]
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not in the folder of keys, or is for other --hosts"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    return type(error).__name__
