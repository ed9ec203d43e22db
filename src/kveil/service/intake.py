"""Group commit: whatever comes in while a commit is under way goes into the next one, and nothing is acknowledged before it.

One thread writes. A lone report is committed at once; under load commits grow, and on a fast disk the writer waits a moment
between them, or there would be many small ones. A group that the storage does not take is undone as a whole and none of it is
acknowledged.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from kveil.collect.intake import Intake, RoundTerms, Status, statuses
from kveil.collect.stored import Proofs, Row, Taken
from kveil.errors import StorageUnavailable
from kveil.service.counts import Counts
from kveil.service.logs import tell

MOST_GROUP = 5_000  # reports of one transaction
TRIES, PAUSE = 3, 0.05  # of a group whose fault may pass; seconds, with jitter
SEVERAL, GATHER = 8, 0.002  # after so many requests in one commit, seconds in which more may come: a commit costs as much as ten
COUNT_SECONDS = 10.0  # how long a count of a round's reports is good for

OUTCOMES = {
    Status.NEW: "stored", Status.SAME: "stored", Status.DIFFERENT: "id_taken", Status.CLOSED: "closed",
    Status.MALFORMED: "malformed", Status.NOT_ADMITTED: "admission", Status.FULL: "full",
}  # fmt: skip
Answer = Sequence[Status] | None | StorageUnavailable  # None: every report is stored


@dataclass(slots=True)
class Waiting:
    """The reports of one request."""

    terms: RoundTerms
    rows: list[Row]
    proofs: Proofs | None
    future: asyncio.Future[Answer]


class GroupCommit:
    """Takes in reports for one process."""

    def __init__(self, intake: Intake, counts: Counts, *, most_waiting: int, most_times: float) -> None:
        self._intake, self._counts, self._most_waiting, self._most_times = intake, counts, most_waiting, most_times
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()  # None: the end
        self._held: Waiting | None = None  # taken from the queue, and too large for the group before
        self._came, self._went, self._is_stopping = 0, 0, False  # reports so far: written by the loop, and by the writer
        self._stored: dict[int, tuple[float, int]] = {}  # of a round: when it was counted, and how many there were and came since
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="kveil-writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._came - self._went

    def submit(self, terms: RoundTerms, rows: list[Row], proofs: Proofs | None) -> asyncio.Future[Answer] | None:
        """A promise that is kept after the commit; None if too many wait already, and then nothing was queued."""
        waiting = self._came - self._went
        if self._is_stopping or (waiting and waiting + len(rows) > self._most_waiting):
            return None
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._came += len(rows)
        self._queue.put(Waiting(terms, rows, proofs, future))
        return future

    async def stop(self) -> None:
        """Commit what waits, and end. In the loop, as `submit` is: nothing comes after the end."""
        self._is_stopping = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while group := self._next():
            answers = [(one.future, answer) for some in _by_round(group) for one, answer in self._committed(some)]
            self._counts.put("waiting", self.waiting)
            self._loop.call_soon_threadsafe(_resolve, answers)
            if len(group) >= SEVERAL:
                time.sleep(GATHER)

    def _next(self) -> list[Waiting]:
        """What goes into one commit; empty at the end."""
        group: list[Waiting] = []
        one, self._held, n = self._held or self._queue.get(), None, 0
        while one is not None:
            if n and n + len(one.rows) > MOST_GROUP:
                self._held = one
                break
            group.append(one)
            n += len(one.rows)
            try:
                one = self._queue.get_nowait()
            except Empty:
                break
        else:
            self._queue.put(None)  # met again by the next look
        self._went += n
        return group

    def _committed(self, group: list[Waiting]) -> list[tuple[Waiting, Answer]]:
        """The reports of one round, in one transaction."""
        try:
            taken, is_full = self._insert(group)
        except Exception as error:  # whatever it is, the writer goes on, and nothing of this group is acknowledged
            fault = error if isinstance(error, StorageUnavailable) else StorageUnavailable()
            self._counts.put("is_failing", 1)
            self._counts.add("reports_failed", sum(len(one.rows) for one in group))
            tell("storage", fault=type(error).__name__, is_passing=fault.is_passing)
            return [(one, fault) for one in group]
        self._counts.put("is_failing", 0)
        if taken.after is None:
            self._counts.add("reports_stored", sum(len(one.rows) for one in group))
            return [(one, None) for one in group]
        return [(one, self._told(one, taken, is_full)) for one in group]

    def _insert(self, group: list[Waiting]) -> tuple[Taken, bool]:
        terms, rows = group[0].terms, [row for one in group for row in one.rows]
        is_full = self._count(terms.round_id) + len(rows) > self._most_times * terms.people
        proofs = _joined(group) if not is_full else Proofs({}, False)  # nobody is admitted: only what is stored already is known
        for left in range(TRIES - 1, -1, -1):
            began = time.perf_counter()
            try:
                taken = self._intake.storage.insert(terms.manifest_hash, rows, proofs)
            except StorageUnavailable as fault:
                if not left or not fault.is_passing:
                    raise
                time.sleep(PAUSE * (0.5 + random.random()))  # public: so that writers do not come back together
                continue
            self._counts.commit(time.perf_counter() - began)
            when, n = self._stored[terms.round_id]
            self._stored[terms.round_id] = when, n + len(rows)
            return taken, is_full
        raise AssertionError

    def _count(self, round_id: int) -> int:
        """Reports of a round, at most: counted now and then, with what came since."""
        when, n = self._stored.get(round_id, (float("-inf"), 0))
        if time.monotonic() - when > COUNT_SECONDS:
            when, n = time.monotonic(), self._intake.storage.count(round_id)
            self._stored[round_id] = when, n
        return n

    def _told(self, one: Waiting, taken: Taken, is_full: bool) -> Answer:
        told = statuses(one.rows, taken)
        if is_full:
            told = [Status.FULL if status is Status.NOT_ADMITTED else status for status in told]
        for status in told:
            self._counts.add(f"reports_{OUTCOMES[status]}")
        return None if all(status.is_stored for status in told) else told


def _by_round(group: list[Waiting]) -> list[list[Waiting]]:
    rounds: dict[str, list[Waiting]] = {}
    for one in group:
        rounds.setdefault(one.terms.manifest_hash, []).append(one)
    return list(rounds.values())


def _joined(group: list[Waiting]) -> Proofs | None:
    asked = [one.proofs for one in group if one.proofs is not None]
    if not asked:
        return None
    keys: dict[bytes, bytes] = {}
    for proofs in reversed(asked):  # of two proofs for one id the first counts
        keys |= proofs.keys
    return asked[0]._replace(keys=keys)


def _resolve(answers: list[tuple[asyncio.Future[Answer], Answer]]) -> None:
    for future, answer in answers:
        if not future.done():
            future.set_result(answer)
