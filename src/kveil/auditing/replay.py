"""`replay`: does anything but noisy answers decide what leaves a model of kveil?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

from kveil import Ledger
from kveil.auditing.released import filed, fitted
from kveil.auditing.tape import Act, Diverged, play
from kveil.errors import InvalidType


@dataclass(frozen=True)
class Replayed:
    """What a replay found.

    outcome: "violated": what left, or how it was drawn and charged, depends on rows in a way that no noise covers; "consistent":
        it follows from noisy answers, each of which moved by no more than its charge says; "unknown": the fit raised.
    draws: noisy answers that were compared. reason: in one sentence.
    """

    outcome: Literal["violated", "consistent", "unknown"]
    draws: int
    reason: str

    @property
    def is_violated(self) -> bool:
        return self.outcome == "violated"

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


def replay(
    model: Any, one: Any, other: Any, *, arguments: Mapping[str, Any] | None = None,
    may_raise: tuple[type[Exception], ...] = (),
) -> Replayed:  # fmt: skip
    """Fit a model of kveil to a table, and to a neighbour with the same noisy answers; compare everything that leaves.

    If both runs ask the same questions with the same noise, if no exact answer moves by more than its charge says, and if all
    that leaves is equal to the byte, then nothing but noisy answers decided what left. That is the argument of adaptive
    composition, looked at for one pair and one run of the noise. The laws of the noise itself are taken as they are: `exact` and
    `check` look at those.

    model: an estimator, of which fresh copies are fitted; or a function that takes a table, fits models of kveil and returns
        everything that leaves, by name. A ledger of an estimator is not charged: each fit has one of its own with the same terms.
    one, other: PUBLIC tables that are neighbours under the relation that the model protects.
    arguments: what `fit` is passed besides the table. may_raise: errors that count as something that leaves.

    No other thread can fit meanwhile. Noise is scripted inside, and nothing that was fitted is kept.

    >>> import numpy as np
    >>> from kveil import PrivateKMeans
    >>> table = np.repeat([[0.2, 0.1], [0.9, 0.8]], 10, axis=0)
    >>> print(replay(PrivateKMeans(2, bounds=(0, 1), random_state=0), table, table[1:]).outcome)
    consistent
    """
    act = as_act(model, arguments)
    try:
        tape = play(act, one, [other], may_raise=may_raise)
    except Diverged as found:
        return Replayed("violated", 0, f"{found}.")
    except Exception as error:  # what is wrong is the model or the table, and nothing was compared
        return Replayed("unknown", 0, f"the fit raised {type(error).__name__}.")
    n = len(tape.draws)
    return Replayed("consistent", n, f"{n} noisy answers, and all that left followed from them.")


def as_act(model: Any, arguments: Mapping[str, Any] | None = None) -> Act:
    """What a replay runs: a function of a table that returns everything that leaves, by name."""
    if not hasattr(model, "fit"):
        if not callable(model):
            raise InvalidType("a replay takes an estimator of kveil, or a function of a table that returns what leaves, by name.")
        return model  # type: ignore[no-any-return]

    def act(table: Any) -> dict[str, Any]:
        fresh, ledger = clone(model), _of_the_same_terms(getattr(model, "ledger", None))
        if ledger is not None:
            fresh.set_params(ledger=ledger)
        left = fitted(fresh.fit(table, **(arguments or {})))
        return left if ledger is None else {**left, "charged": filed(ledger)}

    return act


def _of_the_same_terms(ledger: Any) -> Ledger | None:
    if ledger is None:
        return None
    own = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    return Ledger.memory(own.name, own.epsilon, own.delta, relation=own.relation, unit=own.unit, rule=own.rule)
