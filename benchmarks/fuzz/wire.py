"""What kveil reads from others: messages of a federation, HTTP, manifests and reports of a campaign."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from http.client import HTTPConnection
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.fuzz.reading import KEY, Reader, noon
from kveil import FederatedKMeans, canonical
from kveil.collect.campaign import Campaign
from kveil.collect.client import LocalClient
from kveil.collect.collector import Collector
from kveil.collect.keys import Rotation
from kveil.collect.manifest import Signed, verified
from kveil.errors import KveilError
from kveil.federate import Party, Policy
from kveil.federate.calling import PATH
from kveil.federate.client import Client
from kveil.federate.coordinator import Coordinator
from kveil.federate.link import InProcess, Lost
from kveil.federate.messages import Reply, Request
from kveil.federate.questions import CellsMessage
from kveil.federate.server import PLAIN_NAME, Handler, Server
from kveil.federate.wire import digest
from kveil.signing import SigningKey
from kveil.testing import scripted

RUN = "0" * 32
DAYS = (date(2030, 1, 1), date(2030, 1, 31))
ANEW = 50  # cases after which a reader that keeps books begins with new ones


def readers() -> Iterator[tuple[str, Reader]]:
    """By name."""
    talks = [talk for protocol in ("cells", "sample", "pdk") for talk in _talk(protocol)]
    yield "request", Reader(tuple(dict.fromkeys(request for request, _ in talks)), Asked(), refuses=False, share=3)
    replies = (_hello(), _counts())
    yield "reply", Reader(replies, read_reply, share=3)
    posts = tuple(_post(request) for request, _ in _talk("cells")[:4])
    yield "http request", Reader(posts, Called(), refuses=False, share=2)
    yield "http response", Reader(tuple(_response(reply) for _, reply in _talk("cells")[:4]), Answered(), share=2)
    signed = [asked(name) for name in ("grid", "refine", "lae", "lae-ball", "lma")]
    yield "manifest", Reader(tuple(one.body for one in signed), Manifests())
    yield "signed manifest", Reader(tuple(one.to_bytes() for one in signed), Signed.from_bytes, share=3)
    collector, made = _collector("grid")
    yield "report", Reader((_report(made),), lambda data: collector.submit(made.hash, data), refuses=False)
    new = SigningKey(bytes(32))
    body = Rotation.make(KEY, new, 1, DAYS[0]).body
    yield "rotation", Reader((body,), lambda data: Rotation(data, KEY.sign(data), new.sign(data)).verified(KEY.public), share=2)


def make_party(name: str = "a", **options: Any) -> Party:
    """A party with a few rows that would tell all coordinators everything that a policy allows."""
    policy = Policy(epsilon_per_run=40.0, protocols=("cells", "sample", "pdk"), max_cells=256)
    return Party(np.tile([[0.5, 0.5], [-0.5, 0.0]], (10, 1)), bounds=(-1, 1), name=name, policy=policy, **options)


class Recorded(InProcess):
    """Keeps what was asked and answered."""

    def __init__(self, party: Party) -> None:
        super().__init__([party])
        self.said: list[tuple[bytes, bytes]] = []

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = 2**26) -> dict[str, bytes | Lost]:
        replies = super().ask(requests, timeout, largest)
        self.said += [(requests[name], reply) for name, reply in replies.items() if isinstance(reply, bytes)]
        return replies

    def connect(self, parties: Any, timeout: float) -> Recorded:
        return self


def run_through(party: Party, protocol: str = "cells") -> list[tuple[bytes, bytes]]:
    """Everything that is asked and answered in a run of one party, from hello to done."""
    with scripted(1), patch("secrets.token_hex", lambda n: RUN):  # the same bytes in every run
        link = Recorded(party)
        model = FederatedKMeans(2, epsilon=4.0, bounds=(-1, 1), protocol=protocol, random_state=1, transport=link)
        model.fit([party.name])
        return link.said


@cache
def _talk(protocol: str) -> list[tuple[bytes, bytes]]:
    return run_through(make_party(), protocol)


class Asked:
    """A party in the middle of a run. It answers everything: silence would mean that it stumbled."""

    def __init__(self) -> None:
        self._count, self._party = 0, make_party()

    def __call__(self, data: bytes) -> None:
        if self._count % ANEW == 0:
            self._party = make_party()
            talk = _talk(("cells", "sample", "pdk")[self._count // ANEW % 3])
            for request, _ in talk[: self._count // ANEW // 3 % len(talk)]:
                self._party.answer(request, "coordinator")
        self._count += 1
        assert self._party.answer(data, "coordinator") is not None, "a party stumbled"


class Told:
    """A link over which one party says what it is given."""

    parties = ("a",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = 0) -> dict[str, bytes | Lost]:
        return dict.fromkeys(requests, self._data)

    def close(self) -> None:
        pass


def read_reply(data: bytes) -> None:
    """As the answer to hello, and to a question for counts."""
    layout = make_layout()
    for act in (lambda it: it.hello(), lambda it: it.ask("cells", CellsMessage(3), layout), lambda it: it.done()):
        try:
            act(Coordinator(Told(data), 1.0, RUN))
        except KveilError:
            continue


@cache
def make_layout() -> Any:
    return make_party().layout


def _hello() -> bytes:
    return make_party().answer(Request(RUN, 0, "hello", {}).to_bytes(), "coordinator") or b""


def _counts() -> bytes:
    request = Request(RUN, 0, "cells", CellsMessage(3).body()).to_bytes()
    return Reply(RUN, 0, "a", digest(request), {"count": [1, -2, 0, 5, 7, 0, 0, 1], "noise": "system"}).to_bytes()


def _post(body: bytes) -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{PLAIN_NAME}: coordinator\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Unbuffered(Handler):
    """On a pair of sockets there is no algorithm of Nagle's to switch off."""

    disable_nagle_algorithm = False


class Called:
    """A server, handed one connection. It may hang up; it may not stumble in any other way."""

    def __init__(self) -> None:
        self._ask = Asked()
        self._server = Server("127.0.0.1", 0, self._respond, None)
        self._server.socket.close()  # connections are handed to it

    def _respond(self, who: str, path: str, body: bytes) -> tuple[int, bytes]:
        self._ask(body)
        return 200, b"{}"

    def __call__(self, data: bytes) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(data[: 2**16])
            ours.shutdown(socket.SHUT_WR)
            place = self._server.places.enter(theirs, "127.0.0.1")
            try:
                Unbuffered(theirs, ("127.0.0.1", 0), self._server, place)
            except ConnectionError:
                pass  # hung up
            finally:
                self._server.places.leave(place)


class Answered:
    """A client, which gets these bytes as the answer to a call."""

    def __call__(self, data: bytes) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(data[: 2**16])
            theirs.shutdown(socket.SHUT_WR)
            client = Client("http://127.0.0.1:9", None)
            client._connection = HTTPConnection("127.0.0.1", 9)
            client._connection.sock = ours
            client.post(PATH, b"{}", 5.0, 2**16)


@cache
def _collector(protocol: str) -> tuple[Collector, Signed]:
    collector = Collector("sqlite://", key=KEY, clock=noon)
    wide = {"radius": 1.0, "protocol": protocol, "n": 100_000 if protocol != "grid" else 100}
    made = Campaign(name="survey", n_clusters=2, epsilon=1, center=[0, 0], **wide)
    return collector, collector.open(made, *DAYS)


def asked(protocol: str) -> Signed:
    """The first round of a small campaign."""
    return _collector(protocol)[1]


def _report(signed: Signed) -> bytes:
    with LocalClient(None, n_features=2, key=KEY.public, is_first=True, clock=noon) as client:
        report = client.answer([signed], [0.1, 0.2])
    assert isinstance(report, bytes)
    return report


class Manifests:
    """What a collector with the right key could sign: the campaign is named anew, so that more than its hash is tested."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, data: bytes) -> None:
        body = self._named(data)
        signed = Signed(body, KEY.sign(body))
        try:
            verified([signed], KEY.public)
        except KveilError:
            return
        with LocalClient(None, n_features=2, key=KEY.public, is_first=True, clock=noon) as client:
            client.answer([signed], [0.1, 0.2])

    def _named(self, data: bytes) -> bytes:
        try:
            document: Any = json.loads(data)
            document["campaign"] = canonical.digest(_text(document["header"]))
            return _text(document)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            return data


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
