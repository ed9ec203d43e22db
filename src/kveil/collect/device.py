"""What happens on a person's device, and the only file of this room that may ask the vault for noise or secret bits.

A client with its own ledger answers for one point; a simulation runs the same lines for many people at once.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.collect.encoding import preferred
from kveil.collect.queries import Query
from kveil.kernel import gate
from kveil.kernel.ledger import UNIT, Ledger
from kveil.kernel.loss import Receipt
from kveil.kernel.response import subset_select


def reports(query: Query, points: Floats, seeds: Words, epsilon: Fraction) -> tuple[Integers, Receipt]:
    """One report of each person, (n,) values below query.M.

    Private:      the points, in the unit ball.  Public: query, seeds, epsilon, and that there is a report for each seed.
    Neighbours:   any two points of one person.
    Sensitivity:  see `subset_select`: the points only decide which values are preferred.
    Cost:         epsilon of each person, once; whoever calls answers for each person at most once per campaign.
    Not covered:  running time; who sends, when, and from where.
    """
    measurement = subset_select("report", query.M, query.kappa, epsilon, n_reports=len(seeds))
    whole = Fraction(ceil(epsilon * UNIT), UNIT)  # a ledger counts in these
    person = Ledger.memory("one person, one campaign", whole, relation="replace-one")
    return gate.run(measurement, _preferred_or_none(query, points, seeds), person)


def secret_bytes(n: int) -> bytes:
    """Bits that nobody can foresee: a report's id, a device's own key."""
    return gate.secret_words(-(-n // 8)).tobytes()[:n]


def secret_below(n: int) -> int:
    """A uniform integer in 0 .. n-1: which query of a round a device answers."""
    while (word := int(gate.secret_words(1)[0])) >= 2**64 - 2**64 % n:
        pass
    return word % n


def _preferred_or_none(query: Query, points: Floats, seeds: Words) -> Any:
    """The preferred values, or None, for which the randomiser has its own: nothing may raise once a point was read."""
    try:
        with np.errstate(all="ignore"):
            return preferred(query, points, seeds)
    except Exception:
        return None
