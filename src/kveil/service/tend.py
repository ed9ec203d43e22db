"""Campaigns that go on by themselves: rounds that are over are closed, decoded and followed by the next, or ended.

Whoever holds the lease looks every ten minutes. What is to be done is seen from the storage alone; doing it is the part of a
child process, which alone loads decoders and reads the key. Every step is a transaction of `Collector`: killed anywhere, the next
look goes on from there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from kveil.collect.intake import RoundTerms
from kveil.collect.storage import Storage
from kveil.service.logs import tell
from kveil.service.views import state_of

Action = Literal["close", "next", "end", "delete"]
EVERY, LEASE, LOOK = 600.0, 120.0, 1.0  # seconds: between looks, that a lease holds, between looks at a child
EVENTS: dict[Action, str] = {"close": "closed", "next": "published", "end": "ended", "delete": "deleted"}


@dataclass(frozen=True)
class Rules:
    """key: path of the campaign's key. days: that a next round is open. grace: after a round's last day, for reports that were
    sent on it. end_if_few: whether a round that misses its least number ends its campaign. keep_reports: days after the end."""

    key: str
    days: int = 30
    grace: int = 2
    end_if_few: bool = False
    keep_reports: int = 30


@dataclass(frozen=True)
class Step:
    """One thing to do, as a child process is told it, on its standard input: a URL may hold a password."""

    storage: str
    campaign: str
    action: Action
    key: str
    days: int
    today: str


class Tend:
    """Looks after the campaigns of one storage."""

    def __init__(
        self, storage: Storage, place: str, rules: Rules, *, do: Callable[[Step], bool] | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:  # fmt: skip
        self._storage, self._place, self._rules, self._today = storage, place, rules, today
        self._do = do or self._in_a_child
        self._holder, self._is_ending = os.urandom(16).hex(), False
        self._child: subprocess.Popen[bytes] | None = None

    def look(self) -> int:
        """Do what is to be done, if nobody else does; how many steps were done."""
        done = 0
        while not self._is_ending and self._storage.take_lease("tend", self._holder, LEASE):
            step = self.next_step()
            if step is None or not self._do(step):
                self._storage.take_lease("tend", self._holder, 0.0)  # let go
                break
            tell(EVENTS[step.action], campaign=step.campaign)
            done += 1
        return done

    def next_step(self) -> Step | None:
        for campaign in self._storage.campaigns():
            if (action := self._wanted(campaign)) is not None:
                rules = self._rules
                return Step(self._place, campaign, action, rules.key, rules.days, self._today().isoformat())
        return None

    def stop(self) -> None:
        """End a child that is at work: whoever looks next goes on where it was."""
        self._is_ending = True
        if self._child is not None:
            self._child.kill()

    def _wanted(self, campaign: str) -> Action | None:
        rounds = self._storage.rounds(campaign)
        state, last = state_of(self._storage, campaign, rounds), rounds[-1]
        if state == "closed":
            return "next"
        if state == "open":
            terms = RoundTerms.of(last)
            if self._today() <= terms.not_after + timedelta(days=self._rules.grace):
                return None
            if self._storage.count(last.id) >= terms.least:
                return "close"
            return "end" if self._rules.end_if_few else None
        stored = self._storage.campaign(campaign)
        ended = None if stored is None else stored.ended_day
        is_late = ended is not None and self._today() > ended + timedelta(days=self._rules.keep_reports)
        return "delete" if is_late and any(self._storage.count(one.id) for one in rounds) else None

    def _in_a_child(self, step: Step) -> bool:
        code = "from kveil.service.tend import main; main()"
        self._child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asdict(step)).encode())
        self._child.stdin.close()
        began = time.monotonic()
        while self._child.poll() is None:
            time.sleep(LOOK)
            if time.monotonic() - began > LEASE / 3:
                began = time.monotonic()
                self._storage.take_lease("tend", self._holder, LEASE)  # renewed while the child works
        is_done = self._child.returncode == 0
        if not is_done and not self._is_ending:
            tell("step failed", action=step.action, campaign=step.campaign)
        return is_done


def take(step: Step) -> None:
    """Do it. Here, and nowhere else in a service, the key is read."""
    from kveil.collect.collector import Collector
    from kveil.signing import SigningKey

    today = date.fromisoformat(step.today)
    noon = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    key = SigningKey.load(step.key) if step.action in ("next", "end") else None
    with Collector(step.storage, key=key, clock=lambda: noon) as collector:
        if step.action == "close":
            collector.close(step.campaign)
        elif step.action == "next":
            collector.next_manifest(step.campaign, today, today + timedelta(days=step.days - 1))
        elif step.action == "end":
            collector.end(step.campaign, "few reports")
        else:
            collector.delete(step.campaign)


def main() -> None:
    """The child's part. An error is one line: its kind, and our own words, which hold nothing private."""
    from kveil.errors import KveilError

    try:
        take(Step(**json.load(sys.stdin)))
    except KveilError as error:
        tell("refused", why=str(error))
        sys.exit(1)
    except Exception as error:
        tell("fault", fault=type(error).__name__)
        sys.exit(1)
