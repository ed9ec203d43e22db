"""A whole campaign in one process, through the very objects that a deployment is made of. A REHEARSAL: it holds all points.

Every row is a person with a client and a ledger (rows of one file that they share); manifests and reports travel as bytes through
a collector and its storage. It takes milliseconds a person; `LocalKMeans` plays the same law in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from kveil.collect.campaign import Campaign, Result
from kveil.collect.client import LocalClient
from kveil.collect.collector import MOST_AT_ONCE, Collector
from kveil.collect.ledger_file import LedgerFile
from kveil.collect.manifest import Signed
from kveil.errors import InvalidValue
from kveil.signing import SigningKey

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Rehearsal:
    """The result, and how many devices answered in each round."""

    result: Result
    answered: tuple[int, ...]


def rehearse(
    points: Any, campaign: Campaign, *, storage: Any = None, ledgers: Any = None, progress: Progress | None = None
) -> Rehearsal:
    """Run `campaign` with a device for every row of `points`.

    storage, ledgers: paths for what the collector and the devices keep; by default all of it is in memory.
    progress: is told of rounds, whose number is public.
    """
    now = datetime.now(UTC)
    dates = (now.date(), now.date() + timedelta(days=30))
    key, n_rounds = SigningKey.generate(), campaign.plan().rounds
    with closing(LedgerFile(ledgers)) as file, Collector(storage or "sqlite://", key=key, clock=lambda: now) as collector:
        collector.open(campaign, *dates)
        name = campaign.header(key.public).campaign
        terms: dict[str, Any] = {"key": key.public, "cap": 10, "is_first": True, "clock": lambda: now}
        people = [
            (LocalClient(file, n_features=len(p), device_name=f"{name[:16]}/{i}", **terms), p) for i, p in enumerate(points)
        ]
        answered: list[int] = []
        while collector.state(name)[1] != "done":
            if progress is not None:
                progress("rounds", len(answered), n_rounds)
            answered.append(_play(collector, name, people))
            if answered[-1] < campaign.min_reports:
                raise InvalidValue(
                    "a round had fewer reports than it waits for, and in a rehearsal nobody comes later. Use more people, "
                    "or a protocol with fewer rounds."
                )
            collector.close(name)
            collector.next_manifest(name, *dates)
        return Rehearsal(collector.result(name), tuple(answered))


def _play(collector: Collector, name: str, people: list[tuple[LocalClient, Any]]) -> int:
    """One round: every device is asked, those of the cohort answer, and each learns that its report was taken in."""
    chain = [Signed.from_bytes(one.to_bytes()) for one in collector.manifests(name)]  # as it would travel
    told = ((client, client.answer(chain, point)) for client, point in people)
    answers = ((client, answer) for client, answer in told if isinstance(answer, bytes))
    taken = 0
    while some := list(islice(answers, MOST_AT_ONCE)):
        statuses = collector.submit_many(chain[-1].hash, [report for _, report in some])
        for (client, _), status in zip(some, statuses, strict=True):
            if status.is_stored:
                client.acknowledged(chain[-1].hash)
                taken += 1
    return taken
