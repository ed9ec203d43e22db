"""One request with reports: what it must be, and what is said to it.

200 and an empty body: all of it is on the disk. 200 and a list of 17 bytes each: these were refused, an id and a reason, in the
order of the request; all others are on the disk. Sending the same bytes again changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kveil import canonical
from kveil.collect.intake import Intake, RoundTerms, Status, read_reports
from kveil.collect.report import BYTES
from kveil.collect.stored import Proofs, Row
from kveil.errors import StorageUnavailable
from kveil.service import problems
from kveil.service.admission import Admission
from kveil.service.counts import Counts
from kveil.service.intake import GroupCommit
from kveil.service.problems import Problem
from kveil.service.settings import BODY_SECONDS, MEDIA, MOST_BODY, MOST_REPORTS_AT_ONCE

REASONS = {Status.DIFFERENT: 1, Status.CLOSED: 2, Status.MALFORMED: 3, Status.NOT_ADMITTED: 4, Status.FULL: 5}
PLAIN, ADMITTED = f"{MEDIA};message=upload-req".encode(), f"{MEDIA};message=upload-req-admitted".encode()
ERRORS = f"{MEDIA};message=upload-errors".encode()
Headers = list[tuple[bytes, bytes]]
Reply = tuple[Problem | bytes, Headers]
STORED: Reply = (b"", [])  # all of it, and nothing is to be said about it


class Upload:
    def __init__(
        self, intake: Intake, writer: GroupCommit, admission: Admission | None, origins: Sequence[str], counts: Counts
    ) -> None:
        self._intake, self._writer, self._admission, self._counts = intake, writer, admission, counts
        self._origins = {origin.encode() for origin in origins}

    async def take(self, manifest_hash: str, headers: Headers, receive: Callable[[], Awaitable[Any]]) -> Reply:
        given = dict(headers)
        origin = given.get(b"origin")
        cors: Headers = [(b"access-control-allow-origin", origin), (b"vary", b"origin")] if origin in self._origins else []
        answer = await self._answer(manifest_hash, given, receive)
        if isinstance(answer, _Early):
            return answer.problem, [(b"connection", b"close"), *cors]
        if isinstance(answer, Problem):
            return answer, [*self._challenge(answer, manifest_hash), *cors]
        if not answer and not cors:
            return STORED
        media: Headers = [(b"content-type", ERRORS)] if answer else []
        return answer, [(b"cache-control", b"no-store"), *media, *cors]

    def _challenge(self, answer: Problem, manifest_hash: str) -> Headers:
        terms = self._intake.known(manifest_hash) if answer is problems.ADMISSION else None
        return [] if terms is None or self._admission is None else [(b"www-authenticate", self._admission.asks(terms.campaign))]

    async def _answer(
        self, manifest_hash: str, headers: Mapping[bytes, bytes], receive: Callable[[], Awaitable[Any]]
    ) -> Problem | bytes | _Early:
        terms = self._intake.known(manifest_hash)
        if terms is None and not canonical.is_digest(manifest_hash):
            return _Early(problems.NOT_FOUND)
        media = headers.get(b"content-type", b"")
        media = media if media == PLAIN else media.replace(b" ", b"").lower()
        if media != PLAIN and not (media == ADMITTED and self._admission is not None):
            return _Early(problems.MEDIA_TYPE)
        try:
            terms = terms or await asyncio.to_thread(self._intake.terms, manifest_hash)
        except StorageUnavailable:
            return _Early(problems.STORAGE)
        if terms is None:
            return _Early(problems.UNKNOWN_ROUND)
        size = BYTES + (self._admission.proof_bytes if self._admission is not None and media == ADMITTED else 0)
        body = await _read(receive, size * min(MOST_REPORTS_AT_ONCE, MOST_BODY // size))
        if isinstance(body, _Early):
            return body
        if not body or len(body) % size:
            return problems.MALFORMED
        reports, proofs = body, None
        if self._admission is not None:  # in a thread: a signature takes longer than all the rest
            reports, proofs = await asyncio.to_thread(self._split, self._admission, body, size, headers, terms)
            if proofs is None:
                return problems.ADMISSION
        return await self._stored(terms, read_reports(reports, terms.values), reports, proofs)

    def _split(
        self, admission: Admission, body: bytes, size: int, headers: Mapping[bytes, bytes], terms: RoundTerms
    ) -> tuple[bytes, Proofs | None]:
        """Reports and what admits them: each beside its proof, or one report whose proof is in the header."""
        if size > BYTES:
            parts = [body[at : at + size] for at in range(0, len(body), size)]
            pairs = [(part[:BYTES], part[BYTES:]) for part in parts]
        else:
            proof = admission.proof(headers.get(b"authorization", b""))
            if proof is None or len(body) != BYTES:
                return body, None
            pairs = [(body, proof)]
        keys = {report[4:20]: admission.key(proof, terms.campaign) for report, proof in reversed(pairs)}
        admitted = {report_id: key for report_id, key in keys.items() if key is not None}
        once_in = bytes.fromhex(terms.manifest_hash) if terms.is_every else b""
        return b"".join(report for report, _ in pairs), Proofs(admitted, admission.is_listed, once_in)

    async def _stored(self, terms: RoundTerms, read: list[Row | None], reports: bytes, proofs: Proofs | None) -> Problem | bytes:
        rows = [row for row in read if row is not None]
        told: Sequence[Status] | None = None
        if rows:
            future = self._writer.submit(terms, rows, proofs)
            if future is None:
                return problems.BUSY
            answer = await future
            if isinstance(answer, StorageUnavailable):
                return problems.STORAGE
            told = answer
        if told is None and len(rows) == len(read):
            return b""
        self._counts.add("reports_malformed", len(read) - len(rows))
        if told is not None and len(rows) == len(read) and set(told) == {Status.CLOSED}:
            is_ended = await asyncio.to_thread(self._intake.is_ended, terms.campaign)
            return problems.ENDED if is_ended else problems.CLOSED
        return _errors(read, reports, told)


class _Early:
    """An answer before the body's end: the connection is closed after it, or the sender could go on for ever."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


async def _read(receive: Callable[[], Awaitable[Any]], most: int) -> bytes | _Early:
    """The body, if it comes in time. By hand what `asyncio.timeout` does, at a quarter of its cost."""
    loop = asyncio.get_running_loop()
    task, passed = asyncio.current_task(loop), []
    assert task is not None

    def cut() -> None:
        passed.append(True)
        task.cancel()

    timer = loop.call_later(BODY_SECONDS, cut)
    try:
        return await _whole(receive, most)
    except asyncio.CancelledError:
        if passed and not task.uncancel():
            return _Early(problems.SLOW)
        raise
    finally:
        timer.cancel()


async def _whole(receive: Callable[[], Awaitable[Any]], most: int) -> bytes | _Early:
    parts, n = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return _Early(problems.BROKEN)
        part = event.get("body", b"")
        n += len(part)
        if n > most:
            return _Early(problems.TOO_LARGE)
        parts.append(part)
        if not event.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _errors(read: list[Row | None], reports: bytes, told: Sequence[Status] | None) -> bytes:
    """Refused ids with their reasons, each once, in the order of the request."""
    statuses = iter(told) if told is not None else iter([Status.SAME] * len(read))
    listed: dict[bytes, bytes] = {}
    for place, row in enumerate(read):
        status = Status.MALFORMED if row is None else next(statuses)
        if not status.is_stored:
            report_id = reports[place * BYTES + 4 : place * BYTES + 20]
            listed.setdefault(report_id, report_id + bytes([REASONS[status]]))
    return b"".join(listed.values())
