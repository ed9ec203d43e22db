"""Flower as a transport: its link carries bytes between a coordinator in a ServerApp and parties behind relays.

A SuperLink ships code to its SuperNodes, which run it beside whatever they can read. So nothing of ours runs there but a relay of
a few lines (`flower_app/relay.py.txt`): it hands messages to the socket of a `kveil federate party`, another process of another
user, which alone can read rows, ledger and journal. Without that separation a party must trust the coordinator. The link sees
all messages in clear.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kveil.errors import FederationError, InvalidValue, KveilError, MissingExtra
from kveil.federate.limits import HELLO
from kveil.federate.link import Lost, named
from kveil.federate.messages import Reply, Request
from kveil.federate.wire import LARGEST

POLL = 0.2  # seconds between two looks for replies
RECORD = "kveil"

# To be set before Flower is imported or started: no telemetry, no update check, and nothing of this run in a home folder.
ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}


@dataclass(frozen=True)
class Flower:
    """A transport over the grid of a Flower ServerApp; parties are named as they name themselves.

    Use it inside `ServerApp.main`: `FederatedKMeans(..., transport=Flower(grid)).fit(["north", "south"])`.
    """

    grid: Any

    def __post_init__(self) -> None:
        for name, value in ENVIRONMENT.items():
            if os.environ.get(name) != value:
                raise InvalidValue(f"set {name}={value} before Flower starts: by default it calls out to others.")

    def connect(self, parties: Sequence[str], timeout: float) -> FlowerLink:
        """Wait for nodes, and ask each who is behind it, until all `parties` are found."""
        deadline, found = time.monotonic() + timeout, dict[str, int]()
        asked = set[int]()
        while True:
            new = [node for node in self.grid.get_node_ids() if node not in asked]
            asked |= set(new)
            hello = Request("0" * 32, 0, "hello", {}).to_bytes()
            for node, reply in _exchanged(self.grid, dict.fromkeys(new, hello), max(1.0, deadline - time.monotonic())).items():
                name = _name(reply)
                if name is not None and name in parties:
                    found[name] = node
            missing = sorted(set(parties) - set(found))
            if not missing:
                return FlowerLink(self.grid, found)
            if time.monotonic() >= deadline:
                raise FederationError(f"these parties are behind no node of the link: {', '.join(missing)}. Nothing was charged.")
            time.sleep(POLL)


class FlowerLink:
    """Parties behind nodes. Requests may be delivered twice: a party answers the second with the bytes of the first."""

    def __init__(self, grid: Any, nodes: Mapping[str, int]) -> None:
        self._grid, self._nodes = grid, dict[str, int](named(nodes.items()))

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def ask(self, requests: Mapping[str, bytes], timeout: float, largest: int = LARGEST) -> dict[str, bytes | Lost]:
        replies = _exchanged(self._grid, {self._nodes[name]: request for name, request in requests.items()}, timeout)
        return {name: _bounded(replies[self._nodes[name]], largest) for name in requests}

    def close(self) -> None:
        """The grid belongs to the ServerApp."""


def write_app(folder: str | os.PathLike[str]) -> Path:
    """A Flower app for `flwr run`, in a new folder: the relay for nodes and a coordinator for the link."""
    place, own = Path(folder), Path(__file__).parent / "flower_app"
    try:
        (place / "kveil_flower").mkdir(parents=True)
    except OSError as error:
        raise InvalidValue(f"{os.fspath(folder)!r} cannot be made: {error.strerror}. Choose another place.") from None
    shutil.copy(own / "app.toml", place / "pyproject.toml")
    for name in (
        "relay.py",
        "coordinator.py",
    ):  # kept as text here: they import Flower, and one of them what lies above this room
        shutil.copy(own / f"{name}.txt", place / "kveil_flower" / name)
    (place / "kveil_flower" / "__init__.py").touch()
    return place


def _exchanged(grid: Any, requests: Mapping[int, bytes], timeout: float) -> dict[int, bytes | Lost]:
    """A reply of every node. Errors come from the link, not from the node: they are told apart by what they reply to."""
    try:
        from flwr.app import ConfigRecord, Message, RecordDict
    except ImportError:
        raise MissingExtra("Flower is an extra: pip install 'kveil[federated]'.") from None
    replies: dict[int, bytes | Lost] = {node: Lost("did not answer in time") for node in requests}
    if not requests:
        return replies
    messages = [
        Message(RecordDict({RECORD: ConfigRecord({"request": request})}), dst_node_id=node, message_type="query", ttl=timeout)
        for node, request in requests.items()
    ]
    waiting = {place: node for place, node in zip(grid.push_messages(messages), requests, strict=False) if place}
    deadline = time.monotonic() + timeout
    while waiting and time.monotonic() < deadline:
        for reply in grid.pull_messages(list(waiting)):
            node = waiting.pop(reply.metadata.reply_to_message_id, None)
            if node is not None:
                replies[node] = _content(reply)
        if waiting:
            time.sleep(POLL)
    return replies


def _content(reply: Any) -> bytes | Lost:
    if reply.has_error():
        return Lost("its node left the link")
    try:
        found = reply.content[RECORD]["reply"]
    except (KeyError, TypeError):
        return Lost("its relay answered garbage")
    return found if isinstance(found, bytes) and found else Lost("did not answer")


def _bounded(reply: bytes | Lost, largest: int) -> bytes | Lost:
    return Lost("answered more than was asked") if isinstance(reply, bytes) and len(reply) > largest else reply


def _name(reply: bytes | Lost) -> str | None:
    try:
        return None if isinstance(reply, Lost) else Reply.from_bytes(reply, HELLO).party
    except KveilError:
        return None
