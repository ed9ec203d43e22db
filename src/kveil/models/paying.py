"""How a model pays for what it releases: which ledger, the reservation, and what a receipt says of it."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kveil.errors import BudgetError, InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger, Ticket
from kveil.kernel.loss import Plan
from kveil.release import Release


def open_ledger(ledger: Any) -> Ledger:
    """The ledger itself, or the one at a path."""
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidType("ledger must be a kveil Ledger, the path of one, or None.")
    return Ledger.open(ledger)


def is_one_budget(ledger: Any, other: Any) -> bool:
    """Whether two models are charged to the same ledger, or neither to any."""
    if ledger is None or other is None:
        return ledger is other
    return open_ledger(ledger).is_same(open_ledger(other))


def reserve(plan: Plan | None, ledger: Any, epsilon: float, delta: float) -> Ticket | nullcontext[None]:
    """The ticket of the caller's ledger, or of one made for this release alone; none without noise."""
    if plan is None:
        return nullcontext()
    if ledger is None:
        limit = float(delta) if plan.delta else 0.0
        return Ledger.memory("this fit", float(epsilon), limit, relation=plan.relation, unit=plan.unit).reserve(plan)
    return open_ledger(ledger).reserve(plan)


def receipt_of(ticket: Ticket | None, ledger: Any) -> dict[str, Any]:
    """Which reservation paid, on which ledger, by how many draws, and whether the noise was real."""
    if ticket is None:
        return {"token": None, "ledger": None, "charges": 0, "secure": False}
    return {
        "token": ticket.token,
        "ledger": None if ledger is None else ticket.ledger.name,
        "charges": len(ticket.receipts),
        "secure": all(receipt.secure for receipt in ticket.receipts),
    }


def stated_by(ledger: Any) -> dict[str, Any]:
    """What the operator states of the releases that a ledger pays for, and that may leave the house: not who asked."""
    stated = {} if ledger is None else open_ledger(ledger).stated
    return {name: text for name, text in stated.items() if name in ("purpose", "data_name")}


def file_release(ledger: Any, release: Release) -> None:
    """Note on the caller's ledger what it paid for. Bookkeeping: what was released is not lost if that fails."""
    token = release.receipt["token"]
    if ledger is not None and token is not None:
        with suppress(BudgetError, UnicodeEncodeError):  # a name of half a character cannot be written anywhere
            open_ledger(ledger).note(token, release=release.fingerprint())


def public_generator(random_state: Any) -> np.random.Generator:
    """A generator for public choices, from whatever scikit-learn takes as random_state, or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, bool | np.bool_):
        raise InvalidValue("random_state must be None, a whole number or a generator, not True or False.")
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
