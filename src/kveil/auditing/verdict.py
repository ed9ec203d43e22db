"""What an audit found: violated, consistent or unknown, with its confidence."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kveil.auditing.bound import Bound

Outcome = Literal["violated", "consistent", "unknown"]


@dataclass(frozen=True)
class Look:
    """One time that an event was counted: on which pair, which event, and its counts. The event was learned on earlier fits.

    round: of those that count, from 1 on; a later one has fewer pairs and more fits of each.
    """

    pair: str
    event: str
    likelier: Literal["one", "other"]  # the table of the pair that makes the event likelier
    bound: Bound
    round: int = 1

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lower": self.bound.epsilon}


@dataclass(frozen=True)
class Verdict:
    """The answer of an audit.

    outcome: "violated": epsilon is larger than promised, at this confidence; "consistent": no event that was counted says so;
        "unknown": fits raised, or there were too few to say anything. An audit never proves a promise.
    lower: the largest lower bound of epsilon that was found; all bounds hold together at `confidence`.
    power: the bug that would have been seen, as a factor of the loss: 2 is noise of half the width. None: none up to 64.
    pair, event: where the lower bound was found. looks: all that was counted.
    runs, seconds: how many fits were made, and how long it took. reason: why, in one sentence.
    """

    outcome: Outcome
    epsilon: float
    delta: float
    relation: str
    confidence: float
    lower: float
    power: float | None
    pair: str
    event: str
    runs: int
    seconds: float
    reason: str
    name: str = ""
    looks: tuple[Look, ...] = ()

    @property
    def is_violated(self) -> bool:
        return self.outcome == "violated"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "looks": [look.to_dict() for look in self.looks]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def report(self) -> str:
        """One HTML page with a picture, which needs no other file."""
        from kveil.auditing.report import to_html  # it needs Verdict itself

        return to_html([self])

    def __str__(self) -> str:
        promise = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        subject = f"{self.name}: " if self.name else ""
        return f"{subject}{self.outcome} with {promise} ({self.relation}), {self.runs} fits. {self.reason}"
