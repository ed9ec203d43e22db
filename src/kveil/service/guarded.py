"""uvicorn's HTTP protocol with limits that it lacks: how long a head and a whole request may take, and how large they may be.

Without them half a request stays open for ever, 60 MB of headers or trailers are taken, and whoever got an early answer may go on
sending. Nothing about the sender is kept: a connection that passes a limit is cut without a word.
"""

from __future__ import annotations

from asyncio import Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

NEVER = float("inf")  # no request is under way; how long a connection may be idle is uvicorn's limit


class Guarded(HttpToolsProtocol):
    HEAD_SECONDS, HEAD_BYTES = 5.0, 16_384
    ALL_SECONDS, ALL_BYTES = 15.0, 600_000  # with the body, its framing and trailers, and what one read may hold besides

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seen, self._is_in_head = 0, True
        self._ends = self.loop.time() + self.HEAD_SECONDS
        self._late = self.loop.call_later(self.HEAD_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._seen += len(data)  # since the beginning of this request
        if self._seen > (self.HEAD_BYTES if self._is_in_head else self.ALL_BYTES):
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._seen, self._is_in_head = 0, True
        self._ends = self.loop.time() + self.HEAD_SECONDS

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._ends = self.loop.time() + self.ALL_SECONDS
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._ends = NEVER
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """One timer per connection, which looks again after the shortest limit: two per request cost more than parsing it."""
        left = self._ends - self.loop.time()
        if left <= 0:
            self.transport.abort()
        else:
            self._late = self.loop.call_later(min(left, self.HEAD_SECONDS), self._look)
