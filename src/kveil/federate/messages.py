"""Envelopes: what is asked and what is answered, with a version, a run and a place in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kveil.federate.limits import SHORT, Limit
from kveil.federate.wire import HEX32, HEX64, NAME, Reader, WireError, decode, digest, encode, fields, one_of, text, whole

VERSION = 1
MOST_ROUNDS = 2**16

# Why a party says no. Each follows from the message, the party's books and the clock, never from rows.
REFUSALS = ("version", "policy", "domain", "budget", "busy", "order", "conflict", "lost", "expired", "payload")


class VersionError(WireError):
    """A message of another version of the protocol."""


@dataclass(frozen=True)
class Request:
    """What a coordinator asks: message `seq` of `run`."""

    run: str
    seq: int
    kind: str
    body: Any

    def to_bytes(self) -> bytes:
        return encode({"v": VERSION, "run": self.run, "seq": self.seq, "kind": self.kind, "body": self.body})

    @classmethod
    def from_bytes(cls, data: bytes, limit: Limit = SHORT) -> Request:
        """The envelope is checked here, the body by whoever knows the kind. What is beyond the limit is not parsed."""
        limit.check(data)
        found = _versioned(decode(data), _REQUEST)
        return cls(found["run"], found["seq"], found["kind"], found["body"])


@dataclass(frozen=True)
class Reply:
    """What a party answers: a body, or why not. `request` is the digest of the bytes it answers."""

    run: str
    seq: int
    party: str
    request: str
    body: Any = None
    refused: str | None = None

    def to_bytes(self) -> bytes:
        envelope = {"v": VERSION, "run": self.run, "seq": self.seq, "party": self.party, "request": self.request}
        return encode(envelope | ({"refused": self.refused} if self.refused else {"body": self.body}))

    @classmethod
    def from_bytes(cls, data: bytes, limit: Limit = SHORT) -> Reply:
        limit.check(data)
        message = decode(data)
        found = _versioned(message, _REFUSAL if type(message) is dict and "refused" in message else _REPLY)
        return cls(found["run"], found["seq"], found["party"], found["request"], found.get("body"), found.get("refused"))


def kind_asked(data: bytes) -> str | None:
    """The kind that a request says it is, by its end: keys are sorted, so that all but the body comes last."""
    found = _ASKED.search(data[-ENDING:])
    return None if found is None else found[1].decode()


def request_answered(data: bytes) -> str | None:
    """The digest of the request that a reply says it answers, without parsing it."""
    found = _ANSWERED.search(data[-ENDING:])
    return None if found is None else found[1].decode()


def next_link(chain: str, request: bytes, reply: bytes) -> str:
    """The receipt of a conversation so far: h = H(h, request, reply)."""
    return digest(chain.encode(), request, reply)


FIRST_LINK = digest(b"kveil federation 1")


ENDING = 200  # bytes that hold the end of every envelope
_PLACED = rb'"run":"[0-9a-f]{32}","seq":[0-9]{1,5},"v":1\}\Z'
_ASKED, _ANSWERED = (re.compile(start + _PLACED) for start in (rb'"kind":"([a-z]{1,16})",', rb'"request":"([0-9a-f]{64})",'))


def _versioned(message: Any, readers: dict[str, Any]) -> dict[str, Any]:
    version = message.get("v") if type(message) is dict else None
    if type(version) is int and version != VERSION:
        raise VersionError(f"this is a message of version {version} of the protocol, and this side speaks {VERSION}.")
    return fields(message, readers)


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise WireError("the body of a message must be an object.")
    return value


_PLACE: dict[str, Reader] = {"v": whole(0, 2**31), "run": HEX32, "seq": whole(0, MOST_ROUNDS)}
_REQUEST = _PLACE | {"kind": text("[a-z]{1,16}"), "body": _object}
_REPLY = _PLACE | {"party": NAME, "request": HEX64, "body": _object}
_REFUSAL = _PLACE | {"party": NAME, "request": HEX64, "refused": one_of(*REFUSALS)}
