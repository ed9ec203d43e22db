"""How bytes get from a coordinator to parties and back. Protocols never see which way it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from kveil.errors import InvalidValue
from kveil.federate.party import Party
from kveil.federate.wire import LARGEST


@dataclass(frozen=True)
class Lost:
    """No reply, and why: a few words that are fit for a report."""

    why: str


class Link(Protocol):
    """Parties that can be asked now. Names are unique."""

    @property
    def parties(self) -> tuple[str, ...]: ...

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        """A reply of at most `largest` bytes, or why there is none, for every request; within about `timeout` seconds."""

    def close(self) -> None: ...


class Transport(Protocol):
    """A way to reach parties that are named by text: by their address, or by the name they call in under."""

    def connect(self, parties: Sequence[str], timeout: float) -> Link: ...


class InProcess:
    """Parties in this very process, asked one after the other in the order of their names."""

    def __init__(self, parties: Iterable[Party]) -> None:
        self._parties = named((party.name, party) for party in parties)

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._parties)

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        replies = {name: self._parties[name].answer(requests[name], "coordinator") for name in sorted(requests)}
        return {name: Lost("did not answer") if reply is None else reply for name, reply in replies.items()}

    def close(self) -> None:
        pass


class Joined:
    """Several links as one, asked at the same time."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = named((name, link) for link in links for name in link.parties)
        self._all = links

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._links)

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        shares = [{name: requests[name] for name in link.parties if name in requests} for link in self._all]
        local = [i for i, link in enumerate(self._all) if isinstance(link, InProcess)]  # noise of this thread's own source
        replies: dict[str, bytes | Lost] = {}
        with ThreadPoolExecutor(max(1, len(self._all))) as pool:
            afar = [pool.submit(link.ask, shares[i], timeout, largest) for i, link in enumerate(self._all) if i not in local]
            for i in local:
                replies |= self._all[i].ask(shares[i], timeout, largest)
            for future in afar:
                replies |= future.result()
        return replies

    def close(self) -> None:
        with ExitStack() as stack:
            for link in self._all:
                stack.callback(link.close)


def named(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What has these names, sorted by them; a name twice is refused."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidValue(f"two parties are called {name!r}. Each needs a name of its own.")
        found[name] = value
    if not found:
        raise InvalidValue("a federation needs at least one party.")
    return dict(sorted(found.items()))
