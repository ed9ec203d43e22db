"""What went wrong, as RFC 9457 says it. Names are stable; no text ever holds what was sent."""

from __future__ import annotations

import json
import random
from typing import NamedTuple

MEDIA = b"application/problem+json"


class Problem(NamedTuple):
    status: int
    name: str
    title: str
    retry: tuple[int, int] | None = None  # seconds, drawn from this range, so that clients do not come back together

    def body(self) -> bytes:
        return json.dumps({"type": f"urn:kveil:problem:{self.name}", "title": self.title, "status": self.status}).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        told = [(b"content-type", MEDIA), (b"cache-control", b"no-store")]
        if self.retry is not None:
            seconds = random.randint(*self.retry)  # public: so that clients do not come back together
            told.append((b"retry-after", b"%d" % seconds))
        return told


MALFORMED = Problem(400, "malformed", "A body is 1 to 10 000 whole reports of 22 bytes.")
BROKEN = Problem(400, "malformed", "The request ended early. Nothing was stored.")
ADMISSION = Problem(401, "admission", "This collector asks for a proof with every report, and there was none.")
NOT_FOUND = Problem(404, "not-found", "There is nothing here.")
METHOD = Problem(405, "method", "This is not what may be done here.")
UNKNOWN_ROUND = Problem(404, "unknown-round", "There is no such round here.")
NO_RESULT = Problem(404, "no-result", "This campaign has no result yet.")
SLOW = Problem(408, "slow", "The body took too long. Nothing was stored.")
CLOSED = Problem(410, "closed", "The round is closed. What was spent on its report stays spent.")
ENDED = Problem(410, "ended", "The campaign ended without a result; see its end. What was spent stays spent.")
TOO_LARGE = Problem(413, "too-large", "At most 10 000 reports are taken at once.")
MEDIA_TYPE = Problem(415, "media-type", "Reports have the media type application/vnd.kveil.collect;message=upload-req.")
RATE = Problem(429, "rate", "Too many requests at this moment. Send the same bytes again.", (2, 10))
FAULT = Problem(500, "fault", "Something went wrong here. Nothing was acknowledged.")
BUSY = Problem(503, "busy", "Too many reports are waiting. Nothing was stored; send the same bytes again.", (2, 10))
STORAGE = Problem(503, "storage", "The storage did not take it. Nothing was acknowledged; send the same bytes again.", (15, 30))
ALL = tuple(one for one in globals().values() if isinstance(one, Problem))
