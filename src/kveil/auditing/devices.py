"""A device of the local model as an audit attacks it: the 22 bytes that one report has, for either of two points.

The attacker knows the signed manifest, hence what either point would prefer under the seed of a report. A report tells whether
its value is one of these: nothing else in it depends on the point. The first round of a real campaign is asked for, and a real
`LocalClient` with a new ledger answers.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.collect import Campaign, LocalClient, Refusal, Signed, SigningKey
from kveil.collect.encoding import keys_of, preferred
from kveil.collect.manifest import verified
from kveil.collect.report import Report, seed

SEED = bytes(range(32))  # of a key that everybody has: it signs a campaign that nobody else answers
OPEN, END = date(2030, 1, 1), date(2030, 1, 31)
ENDS = np.array([[-1.0, 0.0], [1.0, 0.0]])  # the two points, in the unit ball
PEOPLE = 10**6
TRIES = 200  # of devices until one is asked in the first round; a quarter of them are, or more


def noon() -> datetime:
    return datetime(2030, 1, 15, 12, tzinfo=UTC)


class Device:
    """One device of a campaign: called with a table of one row, it tells what leaves.

    >>> sorted(Device("grid", 1.0)(ENDS[:1]))
    ['index', 'message', 'prefers one', 'prefers other', 'query']
    """

    def __init__(self, protocol: str, epsilon: float) -> None:
        from kveil.collect import Collector  # it needs a database, and signatures a library: kveil[service]

        key = SigningKey(SEED)
        with Collector("sqlite://", key=key, clock=noon) as collector:
            terms = Campaign(
                name="audit", n=PEOPLE, n_clusters=2, epsilon=epsilon, center=[0, 0], radius=1.0, protocol=protocol
            )  # fmt: skip
            self.asked = collector.open(terms, OPEN, END)
        self.key, self.manifest = key.public, verified([self.asked], key.public, frozenset())[-1]

    def __call__(self, table: Any) -> dict[str, Any]:
        message = answered(self.asked, table[0], self.key, self.manifest.epsilon)
        report = Report.from_bytes(message)
        query = next(query for query in self.manifest.queries if query.id == report.query)
        seeds = np.array([seed(self.manifest.hash, report.report_id)] * len(ENDS), dtype=np.uint64)
        told = (preferred(query, ENDS, seeds) == report.index).any(axis=1)
        return {
            "message": message, "query": report.query, "index": report.index, "prefers one": told[0], "prefers other": told[1]
        }  # fmt: skip

    def law(self) -> Floats:
        """The probabilities that a report prefers one point alone, the other alone, both, or none: (4, 2), by either point."""
        total, weights = np.zeros((4, 2)), 0
        for query in self.manifest.queries:
            assert query.kappa == 1, "a first round asks for cells or buckets, not for vectors"
            own, rest = math.exp(self.manifest.epsilon) / (math.exp(self.manifest.epsilon) + query.M - 1), 1 / query.M
            other = (1 - own) / (query.M - 1)
            keys = keys_of(query, ENDS)
            alike = 1.0 if keys[0] == keys[1] else rest * (query.kind == "olh")  # both points prefer the same value
            apart = np.array([[own, other], [other, own], [0, 0], [1 - own - other] * 2])
            total += query.weight * ((1 - alike) * apart + alike * np.array([[0, 0], [0, 0], [own, own], [1 - own, 1 - own]]))
            weights += query.weight
        return total / weights


def answered(asked: Signed, point: Any, key: str, cap: Any) -> bytes:
    """The report of a new device that may spend `cap`. Whether it is asked in the first round follows from its own secret."""
    for _ in range(TRIES):
        with LocalClient(None, n_features=len(point), key=key, cap=cap, is_first=True, clock=noon) as client:
            answer = client.answer([asked], point)
        if not isinstance(answer, Refusal):
            return answer
        if answer.why != "not asked":
            raise RuntimeError(str(answer))
    raise RuntimeError("no device was asked in the first round.")
