"""Everything a coordinator sends and gets, as lines of JSON in a file: what it knows, and so what anybody who reads it learns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

from kveil.federate.link import Link, Lost, Transport
from kveil.federate.wire import LARGEST


@dataclass(frozen=True)
class Logged:
    """A transport that writes down what goes over another one."""

    transport: Transport
    path: str | os.PathLike[str]

    def connect(self, parties: Sequence[str], timeout: float) -> LoggedLink:
        return LoggedLink(self.transport.connect(parties, timeout), open(self.path, "a", encoding="utf-8"))


class LoggedLink:
    """One line a message: when, to or from whom, and its text."""

    def __init__(self, link: Link, file: IO[str]) -> None:
        self._link, self._file = link, file

    @property
    def parties(self) -> tuple[str, ...]:
        return self._link.parties

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        for name, request in requests.items():
            self._write("request", name, request.decode())
        replies = self._link.ask(requests, timeout, largest)
        for name, reply in replies.items():
            self._write("lost" if isinstance(reply, Lost) else "reply", name, _text(reply))
        return replies

    def close(self) -> None:
        self._file.close()
        self._link.close()

    def _write(self, what: str, party: str, text: str) -> None:
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "what": what, "party": party, "text": text}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def _text(reply: bytes | Lost) -> str:
    return reply.why if isinstance(reply, Lost) else reply.decode(errors="replace")
