"""Who may hold a connection to a server, and how many bytes of messages lie in memory: strangers never keep known peers out.

A connection that has not yet proved who calls gives way to a newer one: a peer proves itself in milliseconds, so idle sockets and
halves of handshakes are what is closed. A known caller has a few connections, and one body in memory at a time.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kveil.federate.wire import LARGEST

MOST_PER_ADDRESS = 16  # connections of strangers
MOST_STRANGERS = 128
MOST_PER_CALLER = 8
MOST_BYTES = 2 * LARGEST  # of bodies, of all callers together


@dataclass(eq=False)
class Place:
    """One connection: where from and, once that is proved, who calls."""

    socket: socket.socket
    address: str
    caller: str | None = None
    is_closed: bool = False


class Places:
    """All connections of a server, oldest first."""

    def __init__(self) -> None:
        self._lock, self._places = threading.Lock(), dict[Place, None]()

    def enter(self, connection: socket.socket, address: str) -> Place:
        """A place for a stranger; the oldest stranger leaves where there are too many, of this address or in all."""
        with self._lock:
            place = Place(connection, address)
            self._places[place] = None
            strangers = self._alike(None)
            self._make_room([other for other in strangers if other.address == address], MOST_PER_ADDRESS)
            self._make_room(strangers, MOST_STRANGERS)
        return place

    def secure(self, place: Place, connection: socket.socket) -> None:
        """From now on the connection is this socket, which has taken over the other one."""
        with self._lock:
            place.socket = connection
            if place.is_closed:
                raise ConnectionError("made way for others")

    def prove(self, place: Place, caller: str) -> None:
        """The connection is a known caller's; its oldest one leaves where it has too many."""
        with self._lock:
            if place.caller is None:
                place.caller = caller
                self._make_room(self._alike(caller), MOST_PER_CALLER)

    def leave(self, place: Place) -> None:
        with self._lock:
            self._places.pop(place, None)

    def _alike(self, caller: str | None) -> list[Place]:
        return [place for place in self._places if place.caller == caller]

    def _make_room(self, places: list[Place], most: int) -> None:
        for place in places[: max(0, len(places) - most)]:
            place.is_closed = True
            self._places.pop(place, None)
            with suppress(OSError):
                socket.socket.shutdown(place.socket, socket.SHUT_RDWR)  # its thread wakes up and ends


class Bodies:
    """Room for messages that are being received or read: one of each caller, and so many bytes of all."""

    def __init__(self) -> None:
        self._changed, self._held = threading.Condition(), dict[str, int]()

    @contextmanager
    def room(self, caller: str, size: int, patience: float) -> Iterator[bool]:
        """Whether there is room, waited for."""
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._fits(caller, size), patience)
            if has_room:
                self._held[caller] = size
        try:
            yield has_room
        finally:
            if has_room:
                with self._changed:
                    del self._held[caller]
                    self._changed.notify_all()

    def _fits(self, caller: str, size: int) -> bool:
        return caller not in self._held and sum(self._held.values()) + size <= MOST_BYTES
