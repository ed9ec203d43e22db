"""A whole campaign in one process: every row is a person with a device. A SIMULATION: whoever runs it sees the raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.collect import device
from kveil.collect.answers import Drawn, FromLaw
from kveil.collect.queries import Answers, LocalProtocol, Outcome, Query, Round
from kveil.kernel.loss import Receipt

Devices = Literal["fast", "exact"]

COHORTS = 2**16  # a device's cohort is a number below this
BLOCK = 2**14  # people whose reports are drawn at once


@dataclass(frozen=True)
class Simulated:
    """What a simulated campaign found, how many reports each round had, and the receipts of real randomisers."""

    outcome: Outcome
    reports: tuple[int, ...]
    receipts: tuple[Receipt, ...]


def simulate(
    points: Floats, protocol: LocalProtocol, epsilon: Fraction, rng: np.random.Generator, devices: Devices = "fast"
) -> Simulated:
    """Run a protocol on points of the unit ball, one person each.

    devices: "exact" draws every report by the real randomiser; "fast" draws the law of what they add up to, in floats.
    rng: for what is public: cohorts, sub-queries, ids. With "fast" it stands in for the devices' own coins, too.
    """
    cohort = np.searchsorted(cohort_ends(protocol.shares), rng.integers(0, COHORTS, len(points)), side="right")
    receipts: list[Receipt] = []
    sizes: list[int] = []
    now: Round | Outcome = protocol.first()
    while isinstance(now, Round):
        theirs = points[cohort == now.number - 1]
        asked = _assigned(now.queries, len(theirs), rng)
        answers: Answers
        if devices == "fast":
            answers = FromLaw({query.id: theirs[asked == i] for i, query in enumerate(now.queries)}, epsilon, rng)
        else:
            reports = {}
            for i, query in enumerate(now.queries):
                reports[query.id], paid = exact_reports(query, theirs[asked == i], epsilon, rng)
                receipts += paid
            answers = Drawn(reports, points.shape[1])
        sizes.append(len(theirs))
        now = protocol.next(now, answers, rng.bytes(32))
    return Simulated(now, tuple(sizes), tuple(receipts))


def cohort_ends(shares: tuple[float, ...]) -> Integers:
    """Where the cohorts of each round end, in 0 .. 65536."""
    return np.asarray(np.rint(COHORTS * np.cumsum(shares)), dtype=np.int64)


def exact_reports(
    query: Query, points: Floats, epsilon: Fraction, rng: np.random.Generator
) -> tuple[tuple[Words, Integers], list[Receipt]]:
    """Seeds and reports of people who answer one query, by the randomiser that devices run."""
    seeds = rng.integers(0, 2**64, size=len(points), dtype=np.uint64)
    drawn, receipts = [np.empty(0, dtype=np.int64)], []
    for first in range(0, len(points), BLOCK):
        part = slice(first, first + BLOCK)
        values, receipt = device.reports(query, points[part], seeds[part], epsilon)
        drawn.append(values)
        receipts.append(receipt)
    return (seeds, np.concatenate(drawn)), receipts


def _assigned(queries: tuple[Query, ...], n: int, rng: np.random.Generator) -> Integers:
    """Which query each of n people answers: drawn by weight."""
    ends = np.cumsum([query.weight for query in queries])
    return np.searchsorted(ends, rng.integers(0, ends[-1], n), side="right")
