"""What a reader is, and the made-up fits that several of them begin with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kveil import Graph, PrivateKMeans, PrivateKMedian
from kveil.errors import KveilError
from kveil.signing import SigningKey
from kveil.testing import scripted

KEY = SigningKey(bytes(range(32)))


class Reader(NamedTuple):
    """Good bytes to begin with, and what reads bytes. `refuses`: whether it may raise a `KveilError`; nothing else ever."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes], Any]
    refuses: bool = True
    share: float = 1.0  # of the cases that a run makes of each reader: less where one takes long


def noon() -> datetime:
    """A clock that stands still."""
    return datetime(2030, 1, 5, 12, tzinfo=UTC)


def if_allowed(act: Callable[[], Any]) -> None:
    """Do it, and go on if it is refused."""
    with suppress(KveilError):
        act()


def clear(path: Path) -> Path:
    """The path of a database, of which nothing is left."""
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return path


def means() -> Any:
    """A release of k-means. Its rows are made up, so its noise may be, too, and two runs begin with the same bytes."""
    with scripted(1):
        rows = np.tile([[0.5, 0.5], [-0.5, 0.0]], (50, 1))
        return PrivateKMeans(2, epsilon=4.0, bounds=(-1, 1), random_state=1).fit(rows).release_


def medians() -> Any:
    """A release of k-median on a graph."""
    graph = Graph.from_edges([[0, 1], [1, 2], [2, 3]])
    with scripted(1):
        model = PrivateKMedian(2, epsilon=2.0, universe=graph, method="counts", random_state=1)
        return model.fit(np.zeros((9, 1))).release_
