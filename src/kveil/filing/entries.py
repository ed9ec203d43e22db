"""What a ledger tells people: one entry per release, and one per federated run with its rounds below."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from kveil.errors import InvalidValue
from kveil.kernel.ledger import Amount, Entry, Ledger
from kveil.kernel.loss import zcdp_epsilon

STATED = ("purpose", "data_name", "by", "release")  # notes that stand for a whole entry


@dataclass(frozen=True)
class Filed:
    """One line of a ledger. `rounds` are the charges of a federated run; of any other entry there are none.

    day: of the (first) charge. token: of the charge, or the run's name. state: "complete", or that it was reserved alone.
    """

    ledger: str
    day: str
    token: str
    amount: Amount
    purpose: str
    data_name: str
    by: str
    release: str
    mechanisms: str
    state: str
    rounds: tuple[Filed, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        plain = {**vars(self), "amount": self.amount._asdict()}
        return {**plain, "rounds": [part.to_dict() for part in self.rounds]}


def filed(ledger: Ledger, since: str | None = None, until: str | None = None) -> tuple[Filed, ...]:
    """Entries of a ledger, oldest first; those whose (first) charge was made between two days, both included.

    >>> from kveil.kernel.loss import Charge, Plan
    >>> ledger = Ledger.memory("clinic", 1.0, relation="add-remove").stating(purpose="beds per ward")
    >>> ticket = ledger.reserve(Plan((Charge("discrete-laplace", "counts", 1, "l1", Fraction(1, 4)),), "add-remove"))
    >>> [(entry.purpose, entry.data_name, entry.amount.epsilon, entry.mechanisms) for entry in filed(ledger)]
    [('beds per ward', '', 0.25, '1 x counts')]
    """
    first, last = day_of("--since", since), day_of("--until", until)
    groups: dict[str, list[Entry]] = {}
    for entry in ledger.charges():
        groups.setdefault(dict(entry.notes).get("run", entry.token), []).append(entry)
    lines = [_line(ledger, name, group) for name, group in groups.items()]
    return tuple(line for line in lines if (first or "") <= line.day and (last is None or line.day <= last))


def day_of(option: str, text: str | None) -> str | None:
    """A day as ledgers write them."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise InvalidValue(f"{option} takes a day, YYYY-MM-DD, such as 2026-03-31.")


def together(ledger: Ledger, amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts of one ledger, by its rule."""
    listed = list(amounts)
    rho = sum(amount.rho or 0.0 for amount in listed)
    if ledger.rule == "zcdp":
        return Amount(zcdp_epsilon(Fraction(rho), ledger.delta) if rho else 0.0, float(ledger.delta) if rho else 0.0, rho)
    return Amount(sum(amount.epsilon for amount in listed), sum(amount.delta for amount in listed))


def _line(ledger: Ledger, name: str, group: list[Entry]) -> Filed:
    lines = tuple(_charge(ledger, entry) for entry in group)
    if "run" not in dict(group[0].notes):
        return lines[0]
    whole = together(ledger, (line.amount for line in lines))
    told: dict[str, Any] = {key: _texts(text for line in lines if (text := getattr(line, key))) for key in STATED}
    what = f"federated run, {len(lines)} round{'s' * (len(lines) > 1)}"
    state = _texts(line.state for line in lines)
    return Filed(ledger.name, lines[0].day, name, whole, mechanisms=what, state=state, rounds=lines, **told)


def _charge(ledger: Ledger, entry: Entry) -> Filed:
    told: dict[str, Any] = {key: _texts(text for name, text in entry.notes if name == key) for key in STATED}
    state = ("complete" if entry.committed else "reserved, counts as spent") + ("" if entry.secure else "; scripted noise")
    day, drawn = entry.reserved_at[:10], _mechanisms(entry)
    return Filed(ledger.name, day, entry.token, entry.amount, mechanisms=drawn, state=state, **told)


def _mechanisms(entry: Entry) -> str:
    """The kind of round, if there is one, and the draws that were paid for."""
    drawn = ", ".join(f"{charge['times']} x {charge['label']}" for charge in json.loads(entry.plan).get("charges", ()))
    kind = dict(entry.notes).get("round")
    return drawn if kind is None else f"{kind}: {drawn}"


def _texts(texts: Iterable[str]) -> str:
    """Different texts, in order. A ledger forgets none, so a statement that was added to stands beside the first."""
    return " | ".join(dict.fromkeys(texts))
