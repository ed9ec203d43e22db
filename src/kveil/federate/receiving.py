"""A coordinator that listens, and parties that call in: for parties behind firewalls, which let calls out but none in.

A party asks for work with its last reply in hand (`POST /v1/next`) and gets a request, or nothing after a long poll. It sends a
reply until it is acknowledged; the coordinator keeps the first bytes of each and gives up a party that sends others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kveil.errors import FederationError, InvalidValue
from kveil.federate.calling import FIRST_PAUSE, LONGEST_PAUSE, ticked
from kveil.federate.client import KEYS_ADVICE, CallFailed, Client, TooLarge
from kveil.federate.keys import COORDINATOR, Keys
from kveil.federate.limits import SMALL
from kveil.federate.link import Lost, named
from kveil.federate.messages import request_answered
from kveil.federate.party import Party
from kveil.federate.server import SLOWEST, Answer, Server
from kveil.federate.wire import LARGEST, digest

PATH = "/v1/next"
LONG_POLL = 25.0  # seconds
AWAY = 60.0  # seconds without a coordinator after a run, from which on a party says so: most leave once they have a result

log = logging.getLogger("kveil.federate")


@dataclass(frozen=True)
class Receiving:
    """A transport for parties that call in, each named as in the coordinator's folder of keys.

    keys: that folder. host, port: where to listen; port 0 lets the system choose one. `announce` is told the address.
    mutual: ask parties for their certificates instead of tokens. Without keys: plain HTTP on 127.0.0.1, for tests.
    """

    keys: str | os.PathLike[str] | None = None
    host: str = "127.0.0.1"
    port: int = 0
    mutual: bool = False
    announce: Callable[[str], None] | None = None

    def connect(self, parties: Sequence[str], timeout: float) -> ReceivingLink:
        """Listen until all `parties` have called in."""
        keys = None if self.keys is None else Keys.at(self.keys)
        unknown = [] if keys is None else sorted(set(parties) - set(keys.peers))
        if unknown:
            raise InvalidValue(f"the folder of keys does not know the parties {', '.join(unknown)}.")
        link = ReceivingLink(parties)
        link.server = Server(self.host, self.port, link.respond, keys, mutual=self.mutual, largest=link.largest)
        link.server.start()
        if self.announce is not None:
            self.announce(link.server.url)
        missing = link.wait_for_all(timeout)
        if missing:
            link.close()
            raise FederationError(
                f"these parties did not call in: {', '.join(missing)}. Nothing was drawn and nothing was charged. Start them "
                "(if they run, their own logs tell what keeps them away), or raise timeout."
            )
        return link


@dataclass
class Inbox:
    """What is between the coordinator and one party: a request that waits, and replies that came."""

    request: bytes | None = None
    reply: bytes | None = None
    has_called: bool = False
    replies: dict[str, str | None] = field(default_factory=dict)  # digest of a request -> digest of its first reply
    largest: int = SMALL  # bytes of a reply to what was asked last
    is_broken: bool = False


class ReceivingLink:
    """Desks at which parties fetch requests and leave replies."""

    server: Server

    def __init__(self, parties: Sequence[str]) -> None:
        self._inboxes: dict[str, Inbox] = named((name, Inbox()) for name in parties)
        self._changed = threading.Condition()
        self._is_over = False

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._inboxes)

    def wait_for_all(self, timeout: float) -> list[str]:
        """Those that have not called in after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: all(inbox.has_called for inbox in self._inboxes.values()), timeout)
            return [name for name, inbox in self._inboxes.items() if not inbox.has_called]

    def largest(self, who: str) -> int:
        """Bytes that a party may send now; what is longer answers nothing that was asked."""
        return self._inboxes[who].largest if who in self._inboxes else 0

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        inboxes = {name: self._inboxes[name] for name in requests}
        with self._changed:
            for name, inbox in inboxes.items():
                inbox.request, inbox.reply, inbox.largest = requests[name], None, largest
                inbox.replies.setdefault(digest(inbox.request))
            self._changed.notify_all()
            self._changed.wait_for(lambda: all(inbox.reply is not None or inbox.is_broken for inbox in inboxes.values()), timeout)
            replies = {name: self._taken(inbox) for name, inbox in inboxes.items()}
            for inbox in inboxes.values():
                inbox.request = None  # withdrawn: a party that comes late must not spend on it
        return replies

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self.server.stop()

    def respond(self, who: str, path: str, body: bytes) -> Answer | Callable[[], Answer]:
        """One call of a party: take its reply, if it brings one, and tell how to wait for the next request."""
        inbox = self._inboxes.get(who)
        if path != PATH or inbox is None:
            return 404, b""
        answered, is_now = request_answered(body), digest(body)  # a reply is not parsed here, where all parties wait in line
        with self._changed:
            inbox.has_called = True
            if body:
                self._take(inbox, body, answered, is_now)
            self._changed.notify_all()
        return partial(self._next, inbox)

    def _next(self, inbox: Inbox) -> Answer:
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or (inbox.request is not None and inbox.reply is None), LONG_POLL)
            waits = inbox.request if inbox.reply is None and not self._is_over else None
        return (204, b"") if waits is None else (200, waits)

    def _take(self, inbox: Inbox, body: bytes, answered: str | None, is_now: str) -> None:
        """Keep the first reply to the request that waits; one that answers an earlier request is late and of no use."""
        waiting = None if inbox.request is None else digest(inbox.request)
        answered = answered or waiting  # garbage: for the coordinator to see
        if answered is None or answered not in inbox.replies:
            return  # of another run
        was = inbox.replies[answered] = inbox.replies[answered] or is_now
        if was != is_now:
            inbox.is_broken = True
        elif answered == waiting and inbox.reply is None:
            inbox.reply = body

    def _taken(self, inbox: Inbox) -> bytes | Lost:
        if inbox.is_broken:
            return Lost("answered one request in two ways")
        return Lost("did not answer in time") if inbox.reply is None else inbox.reply


def call_in(
    party: Party,
    url: str,
    keys: Keys | None,
    *,
    mutual: bool = False,
    reply_every: float | None = None,
    stop: threading.Event | None = None,
    patience: float | None = None,
) -> None:
    """Fetch and answer requests of the coordinator at `url` until `stop` is set.

    patience: seconds after which a coordinator that cannot be reached is given up; default never.
    """
    client, answer = Client(url, keys, mutual=mutual, name=party.name), ticked(party.answer, reply_every)
    stop, reply, pause, since, told = stop or threading.Event(), b"", FIRST_PAUSE, time.monotonic(), ""
    was_reached = False
    try:
        while not stop.is_set():
            try:
                seconds = LONG_POLL + 10.0 + (len(reply) + party.largest_request) / SLOWEST
                status, request = client.post(PATH, reply, seconds, party.largest_request)
            except CallFailed as error:
                if patience is not None and time.monotonic() - since > patience:
                    raise FederationError(f"the coordinator at {url} {error}.") from None
                is_usual = was_reached and not party.is_in_a_run and time.monotonic() - since < AWAY
                if str(error) != told and not is_usual:  # once for each reason: a party may wait for days
                    told = str(error)
                    log.info("party %s: the coordinator at %s %s; trying again", party.name, url, told)
                stop.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue  # with the same reply: it was not acknowledged
            except TooLarge:  # our reply, which is of a run that is over; or its request, which no policy allows
                reply = b""
                stop.wait(pause)
                continue
            except FederationError as error:
                raise FederationError(f"the coordinator at {url} {error}. {KEYS_ADVICE}") from None
            pause, since, told, was_reached = FIRST_PAUSE, time.monotonic(), "", True
            reply = (answer(request, COORDINATOR) or b"") if status == 200 else b""
    finally:
        client.close()
