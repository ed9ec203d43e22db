"""Parties that listen, and a coordinator that calls them: for parties whose network lets calls in."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TypeVar

from kveil.errors import FederationError, InvalidValue
from kveil.federate.client import CallFailed, Client
from kveil.federate.keys import COORDINATOR, Keys
from kveil.federate.link import Lost, named
from kveil.federate.party import Party
from kveil.federate.server import Server
from kveil.federate.wire import LARGEST

PATH = "/v1/answer"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries

T = TypeVar("T")


@dataclass(frozen=True)
class Calling:
    """A transport to listening parties, each named by its address, "https://host:port".

    keys: the coordinator's folder of keys. A party's name is that of the certificate it shows.
    mutual: prove who we are by our certificate instead of a token; the parties must ask for it.
    Without keys: plain HTTP to "name=http://127.0.0.1:port", for tests.
    """

    keys: str | os.PathLike[str] | None = None
    mutual: bool = False

    def connect(self, parties: Sequence[str], timeout: float) -> CallingLink:
        keys = None if self.keys is None else Keys.at(self.keys)
        clients = {}
        for address in parties:
            told, _, url = address.rpartition("=")
            client = Client(url, keys, mutual=self.mutual)
            try:
                name = _patiently(partial(client.connect, timeout), time.monotonic() + timeout, url) or told
            except FederationError as error:
                raise FederationError(
                    f"{error}. Nothing was drawn and nothing was charged. Start the party there, or check address and keys."
                ) from None
            if told not in ("", name):
                raise InvalidValue(f"the party at {url} is {name!r} by its certificate, not {told!r}.")
            if name in clients:
                raise InvalidValue(f"two addresses lead to the party {name!r}. List each party once.")
            clients[name] = client
        return CallingLink(clients)


class CallingLink:
    """Connections to listening parties, asked at the same time; a call that breaks off is made again with the same bytes."""

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self._clients: dict[str, Client] = named(clients.items())

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._clients)

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        deadline = time.monotonic() + timeout
        with ThreadPoolExecutor(max(1, len(requests))) as pool:
            replies = pool.map(lambda item: self._call(self._clients[item[0]], item[1], deadline, largest), requests.items())
            return dict(zip(requests, replies, strict=True))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _call(self, client: Client, request: bytes, deadline: float, largest: int) -> bytes | Lost:
        try:
            status, reply = _patiently(
                lambda: client.post(PATH, request, max(0.1, deadline - time.monotonic()), largest), deadline, client.url
            )
        except FederationError as error:
            return Lost(str(error))
        return reply if status == 200 else Lost("did not answer")


def serve(
    party: Party, host: str, port: int, keys: Keys | None, *, mutual: bool = False, reply_every: float | None = None
) -> Server:
    """A started server that hands requests of the coordinator to a party. `reply_every`: see `ticked`."""
    answer = ticked(party.answer, reply_every)

    def respond(who: str, path: str, body: bytes) -> tuple[int, bytes]:
        if path != PATH or who != COORDINATOR:
            return 404, b""
        reply = answer(body, who)
        return (204, b"") if reply is None else (200, reply)

    server = Server(host, port, respond, keys, mutual=mutual, largest=lambda who: party.largest_request)
    server.start()
    return server


def ticked(
    answer: Callable[[bytes, str | None], bytes | None], every: float | None
) -> Callable[[bytes, str | None], bytes | None]:
    """Answers that leave on a tick of `every` seconds after the question, the first at which they are ready.

    How long an answer takes tells something about how many rows there are; rounded up to a tick it tells much less.
    """
    if every is None:
        return answer
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < inf:
        raise InvalidValue(f"reply_every must be a number of seconds above 0, got {every!r}.")

    def later(request: bytes, who: str | None) -> bytes | None:
        start = time.monotonic()
        reply = answer(request, who)
        time.sleep(every - (time.monotonic() - start) % every)
        return reply

    return later


def _patiently(call: Callable[[], T], deadline: float, url: str) -> T:
    """The result of a call that is repeated, after growing pauses, while the peer cannot be reached."""
    pause = FIRST_PAUSE
    while True:
        try:
            return call()
        except CallFailed as error:
            if time.monotonic() + pause >= deadline:
                raise FederationError(f"{url} {error}") from None
        threading.Event().wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
