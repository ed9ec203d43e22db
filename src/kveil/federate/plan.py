"""The whole schedule of a run, fixed and agreed before anything is drawn: what each round may ask and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, get_args

from kveil.errors import InvalidValue
from kveil.federate.wire import HEX64, NAME, Reader, WireError, digest, fields, many, one_of, ratio, spelled, whole
from kveil.kernel.ledger import UNIT
from kveil.kernel.loss import zcdp_epsilon, zcdp_rho

Protocol = Literal["cells", "sample", "dk", "pdk"]
Kind = Literal["cells", "sums", "spread", "stats", "sample", "total", "pick", "seed", "update", "first"]
Loss = Literal["pure", "zcdp", "none"]

ORDERED: tuple[Protocol, ...] = ("cells", "sample")  # parts are asked as they are listed; in the others as the picks go
STEPS: frozenset[Kind] = frozenset({"spread", "stats"})  # about centres that the coordinator names
KINDS: dict[Protocol, frozenset[Kind]] = {
    "cells": STEPS | {"cells", "sums"}, "sample": STEPS | {"cells", "sample"}, "pdk": STEPS | {"cells", "pick", "total"},
    "dk": STEPS | {"cells", "seed", "update", "first"},
}  # fmt: skip
MOST_LISTED = 256
LONGEST_HOLD = 7 * 86_400  # seconds
MOST_CLUSTERS = 2**16
LEAST_UNITS = 64  # of a ledger, for a round: less would be lost in rounding


@dataclass(frozen=True)
class Round:
    """What one message may ask, `times` times, for `budget` each: epsilon, or rho where noise is Gaussian; 0 without noise.

    level: of cells that are counted; 0 for other kinds. counts: the share of the budget that counts get, where sums come along.
    """

    kind: Kind
    budget: Fraction
    times: int = 1
    level: int = 0
    counts: Fraction = Fraction(1)

    def described(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "budget": spelled(self.budget), "times": self.times, "level": self.level,
            "counts": spelled(self.counts),
        }  # fmt: skip

    @classmethod
    def read(cls, value: Any) -> Round:
        found = fields(value, _ROUND)
        if not 0 < found["counts"] <= 1:
            raise WireError("the share of counts must be above 0 and at most 1.")
        return cls(**found)


@dataclass(frozen=True)
class RunPlan:
    """What a party is asked to agree to. `epsilon` is None for a run without noise, which promises nothing.

    roster: the digest of the names of all parties. parties_per_person: at how many of them a person may be; no run promises
    anything to people at more than one, so that a plan which says so is none.
    """

    protocol: Protocol
    data: str
    domain: str
    rows_per_person: int
    n_clusters: int
    epsilon: Fraction | None
    delta: Fraction
    rounds: tuple[Round, ...]
    expires: int
    roster: str
    parties_per_person: int = 1

    @property
    def loss(self) -> Loss:
        return "none" if self.epsilon is None else "zcdp" if self.delta else "pure"

    @property
    def longest_silence(self) -> int:
        """Seconds between two messages of a run that goes on: twice what its coordinator waits for an answer."""
        return 2 * ceil(self.expires / (sum(part.times for part in self.rounds) + 2))

    def described(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol, "data": self.data, "domain": self.domain, "relation": "add-remove",
            "rows_per_person": self.rows_per_person, "parties_per_person": self.parties_per_person,
            "n_clusters": self.n_clusters, "epsilon": "none" if self.epsilon is None else spelled(self.epsilon),
            "delta": spelled(self.delta), "rounds": [part.described() for part in self.rounds], "expires": self.expires,
            "roster": self.roster,
        }  # fmt: skip

    @classmethod
    def read(cls, value: Any) -> RunPlan:
        """The plan that a body describes. Its rounds must add up to its epsilon: nothing is asked outside of it."""
        found = fields(value, _PLAN)
        found.pop("relation")
        plan = cls(**found | {"rounds": tuple(found["rounds"])})
        if not plan.adds_up():
            raise WireError("the rounds of a plan do not add up to its epsilon and delta.")
        return plan

    def keeps_to_protocol(self) -> bool:
        """Whether it asks what its protocol asks, and under "dk", where answers are exact, no more of it than a run needs."""
        asked = Counter[Kind]()
        for part in self.rounds:
            asked[part.kind] += part.times
        if self.protocol == "dk":
            is_sealed = max(asked["seed"], asked["update"]) <= self.n_clusters and max(asked["first"], asked["cells"]) <= 1
            if not is_sealed or any(part.level for part in self.rounds):  # exact counts of small cells are rows
                return False
        return asked.keys() <= KINDS[self.protocol]

    def adds_up(self) -> bool:
        """Whether the rounds cost exactly epsilon (pure), or no more than epsilon at delta (zCDP), or nothing."""
        total = sum((part.times * part.budget for part in self.rounds), Fraction(0))
        if self.epsilon is None:
            return total == 0 and self.delta == 0
        if any(part.budget <= 0 for part in self.rounds) or not 0 <= self.delta < 1:
            return False
        return total == self.epsilon if not self.delta else zcdp_epsilon(total, self.delta) <= self.epsilon


def units(budget: Fraction) -> Fraction:
    """Rounded down to whole units of a ledger, so that parts of a budget add up in its books."""
    return Fraction(floor(budget * UNIT), UNIT)


def roster_of(names: Iterable[str]) -> str:
    return digest("\n".join(sorted(names)).encode())


def shared_out(epsilon: Fraction | None, delta: Fraction, weights: list[tuple[Fraction, int]]) -> list[Fraction]:
    """A budget for each (share, times), in whole units of a ledger; the first round takes what rounding left."""
    if epsilon is None:
        return [Fraction(0)] * len(weights)
    total = zcdp_rho(epsilon, delta) if delta else epsilon
    scale = total / sum(share * times for share, times in weights)
    parts = [units(share * scale) for share, _ in weights]
    if min(parts) * UNIT < LEAST_UNITS:
        raise InvalidValue("this budget is too small to be shared out over the rounds of a run. Raise epsilon, or lower n_steps.")
    left = total - sum(part * times for part, (_, times) in zip(parts, weights, strict=True))
    once = next((i for i, (_, times) in enumerate(weights) if times == 1), 0)
    return [part + left if i == once else part for i, part in enumerate(parts)]


def _epsilon(value: Any) -> Fraction | None:
    if value == "none":
        return None
    epsilon = ratio(value)
    if epsilon <= 0:
        raise WireError("epsilon in a plan must be above 0.")
    return epsilon


_ROUND: dict[str, Reader] = {
    "kind": one_of(*get_args(Kind)), "budget": ratio, "times": whole(1, MOST_CLUSTERS), "level": whole(0, 62), "counts": ratio,
}  # fmt: skip
_PLAN: dict[str, Reader] = {
    "protocol": one_of(*get_args(Protocol)), "data": NAME, "domain": HEX64, "relation": one_of("add-remove"),
    "rows_per_person": whole(1, 2**31), "parties_per_person": whole(1, 1), "n_clusters": whole(1, MOST_CLUSTERS),
    "epsilon": _epsilon, "delta": ratio, "rounds": many(Round.read, 1, MOST_LISTED), "expires": whole(1, LONGEST_HOLD),
    "roster": HEX64,
}  # fmt: skip
