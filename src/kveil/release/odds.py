"""What a guarantee means for one person: how sure can somebody become who could not tell before?

Two tables, with a person and without, each with the prior 1/2. Whoever sees an outcome y has the posterior P(y) / (P(y) + Q(y)).

    pure epsilon        P <= e^epsilon Q, so the posterior is at most e^epsilon / (1 + e^epsilon), whatever comes out.
    (epsilon, delta)    Single outcomes may say more. A guess is right with probability (1 + TV(P, Q)) / 2. With S the outcomes
                        that speak for P, TV = P(S) - Q(S), P(S) <= e^epsilon Q(S) + delta and
                        1 - Q(S) <= e^epsilon (1 - P(S)) + delta. So TV <= (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), and a
                        guess is right with probability at most (e^epsilon + delta) / (1 + e^epsilon). It is attained, by
                        randomised response that tells all with probability delta. Outcomes with P > 2 e^epsilon Q have P at
                        most 2 delta and Q at most delta e^-epsilon, and so the other way round: one of the two comes up with
                        probability at most (2 + e^-epsilon) delta.
    rho-zCDP            KL(P, Q) <= rho, so TV <= sqrt(rho / 2) (Pinsker): a guess is right with probability at most
                        1/2 + sqrt(rho / 8). The less of this and of what (epsilon, delta) says.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from kveil.kernel.loss import Guarantee

SOMEBODY = "Somebody who was 50 % sure"


class Odds(NamedTuple):
    """For somebody who was 50 % sure.

    guess: the most that a guess after seeing the release can be right, averaged over what comes out.
    surest: the most that they can be sure, after any outcome (pure), or after all but outcomes of probability `failing`.
    """

    guess: float
    surest: float
    failing: float


def odds(guarantee: Guarantee) -> Odds:
    """What a valid guarantee leaves to somebody who was 50 % sure."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    least = math.exp(-epsilon)  # of a large epsilon: no overflow
    if not delta:
        return Odds(1 / (1 + least), 1 / (1 + least), 0.0)
    guess = min(1.0, (1 + delta * least) / (1 + least))
    losses = [charge.zcdp() for charge in guarantee.charges]
    if guarantee.route == "zcdp" and None not in losses:
        guess = min(guess, 0.5 + math.sqrt(float(sum((rho or Fraction(0) for rho in losses), Fraction(0))) / 8))
    return Odds(guess, 1 / (1 + least / 2), min(1.0, (2 + least) * delta))


def percent(share: float) -> str:
    """A share as a percentage, rounded up: a bound must not look better than it is."""
    for digits in (1, 2, 3, 4, 5):
        shown = math.ceil(share * 10 ** (2 + digits) * (1 - 1e-12)) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f} %"
    return "100 %"


def in_words(guarantee: Guarantee) -> str:
    """The sentence for people; "" where nothing is promised."""
    if guarantee.route == "none" or not guarantee.valid:
        return ""
    found, seen = odds(guarantee), _seen(guarantee)
    before = f"{SOMEBODY} {_question(guarantee)}"
    if not found.failing:
        return f"{before} can become at most {percent(found.surest)} sure by seeing {seen}, whatever else they know."
    return (
        f"{before}, and guesses after seeing {seen}, is right at most {percent(found.guess)} of the time, whatever else they "
        f"know. They become more than {percent(found.surest)} sure with a probability of at most {found.failing:.3g}."
    )


def _question(guarantee: Guarantee) -> str:
    """What is asked of one person or record, by the relation that is protected."""
    who = f"a given {guarantee.unit.kind}"
    if guarantee.trust == "local":
        return f"which of two points {who} has"
    if guarantee.relation == "add-remove":
        return f"that {who} is in the data"
    return f"which of two {'values' if guarantee.unit.kind == 'record' else 'sets of records'} {who} has in the data"


def _seen(guarantee: Guarantee) -> str:
    return {"federation": "every message of the run", "local": f"every report of this {guarantee.unit.kind}"}.get(
        guarantee.trust, "this release"
    )
