"""A campaign of 5000 devices over HTTP, from its opening to its result without a hand: what it costs beside the forecast.

The service is a process of its own and devices are real clients. Days are the script's, since rounds last days: `Tend`, which
`serve --auto-close` runs every ten minutes, looks after each round under that clock, with its real child processes.

`python -m benchmarks collector_campaign`
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bar import Bar
from benchmarks.collector import served

PEOPLE, K, EPSILON = 5000, 3, 4
PLACES = np.array([[-0.5, -0.3], [0.1, 0.6], [0.55, -0.35]])


def run() -> Iterator[Bar]:
    from kveil.collect.campaign import Campaign
    from kveil.collect.collector import Collector
    from kveil.collect.storage import Storage
    from kveil.service.tend import Rules, Tend
    from kveil.signing import SigningKey

    rng = np.random.default_rng(0)  # made-up people
    points = PLACES[rng.integers(K, size=PEOPLE)] + rng.normal(0, 0.05, (PEOPLE, 2))
    survey = Campaign("benchmark", PEOPLE, K, EPSILON, [0, 0], 1.0, "refine", min_reports=100)
    expected, day = survey.plan(), [datetime.now(UTC).date()]
    with tempfile.TemporaryDirectory() as folder:
        place, secret = str(Path(folder) / "collector.db"), str(Path(folder) / "c.key")
        key = SigningKey.generate()
        key.save(secret)

        def clock() -> datetime:
            return datetime.combine(day[0], time(12), UTC)

        with Collector(place, key=key, clock=clock) as collector:
            collector.open(survey, day[0], day[0] + timedelta(days=9))
            (name,) = collector.campaigns()
        tend = Tend(Storage(place), place, Rules(secret, days=10), today=lambda: day[0])
        steps = sent = 0
        with served(place) as (_, port), Collector(place, clock=clock) as seen:
            people = _people(key.public, clock)
            while seen.state(name)[1] != "done":
                sent += _round(f"http://127.0.0.1:{port}", people, points)
                day[0] += timedelta(days=13)
                steps += tend.look()
            found = seen.result(name)
    cost = ((points[:, None] - found.centers) ** 2).sum(axis=2).min(axis=1).mean()
    best = ((points[:, None] - PLACES) ** 2).sum(axis=2).min(axis=1).mean()
    print(f"  forecast {expected.ratio:.3g} times the cost without privacy; {expected.rounds} rounds, {steps} steps", flush=True)
    yield Bar("reports of 5000 devices that arrived", sent, PEOPLE, at_least=True)
    yield Bar("steps that nobody's hand did, two per round", steps, 2 * expected.rounds, at_least=True)
    yield Bar("cost over that of the true centres, beside twice the forecast's excess", cost / best, 1 + 2 * (expected.ratio - 1))


def _people(pinned: str, clock: Any) -> list[Any]:
    from kveil.collect.client import LocalClient
    from kveil.collect.ledger_file import LedgerFile

    file = LedgerFile(None)
    terms: dict[str, Any] = {"n_features": 2, "key": pinned, "is_first": True, "clock": clock}
    return [LocalClient(file, device_name=str(number), **terms) for number in range(PEOPLE)]


def _round(url: str, people: list[Any], points: Any) -> int:
    """Everyone is asked, those of the cohort answer, and each sends its own 22 bytes; how many were stored."""
    from kveil.service.sender import Sender

    stored = 0
    with Sender(url) as sender:
        chain = sender.chain(sender.campaigns()[0]["manifests"])
        for client, point in zip(people, points, strict=True):
            report = client.answer(chain, point)
            if isinstance(report, bytes):
                stored += sender.deliver(client, chain[-1].hash, report) == "stored"
    return stored
