"""What a device has spent, and whether one more answer fits: at most its cap within any 365 days.

Every answer is booked with the epsilon of its own round. A report is stored on one day and leaves at a time that was drawn within
its round, so it counts until 365 days after the later of the two. Whatever 365 days are looked at, the reports that leave in them
were all counted when the last of them was booked: a report that left 365 days before that day, or earlier, cannot be among them.
That day is the clock's own, from which the report leaves. Where the clock was ahead before, and is set right, rows lie ahead of
it, and they count; by the day of the last row some would count no more that left less than 365 days before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from kveil.errors import BudgetExceeded

WINDOW = timedelta(days=365)


class Spend(NamedTuple):
    """One report as it was stored. `send_at` was drawn before the point was read; `secure` is false for scripted noise.

    covers: what `epsilon` is of. "round", its own round. "campaign", as version 1 of the ledger booked it: all of the campaign
    on its first row, and 0 on later ones.
    """

    campaign: str
    round: int
    mode: str
    epsilon: Fraction
    manifest_hash: str
    report: bytes
    state: str
    day: date
    send_at: datetime
    secure: bool
    covers: str = "round"

    def counts(self, today: date) -> bool:
        """Whether it was made, or leaves, less than 365 days before `today`, or later."""
        return today - max(self.day, self.send_at.date()) < WINDOW


class Change(NamedTuple):
    """A change of the trusted key."""

    serial: int
    old: str
    new: str


@dataclass(frozen=True)
class Book:
    """What a ledger says at one moment."""

    spends: tuple[Spend, ...]  # oldest first
    quiet_until: date
    changes: tuple[Change, ...] = ()  # by their serials

    def today(self, clock: date) -> date:
        """The clock's day, or that of the last row if it is later: no row seems older than the one before it."""
        return max([clock, *(spend.day for spend in self.spends)])

    def key(self, pinned: str) -> str:
        """The key that is trusted now: the pinned one, or what has followed it."""
        for change in self.changes:
            pinned = change.new if change.old == pinned else pinned
        return pinned

    def find(self, campaign: str, number: int, mode: str) -> Spend | None:
        """The row that an answer in this round would repeat: any of the campaign, if people answer once."""
        same = [spend for spend in self.spends if spend.campaign == campaign and (spend.round == number or mode != "all_rounds")]
        return same[0] if same else None

    def left(self, cap: Fraction, clock: date) -> Fraction:
        """Epsilon that may be spent on the clock's day, of `cap` in 365 days."""
        whole = self._whole(clock)
        spent = sum(spend.epsilon for spend in self.spends if spend.counts(clock) and spend.campaign not in whole)
        return Fraction(0) if self.today(clock) < self.quiet_until else cap - spent - sum(whole.values())

    def check(self, campaign: str, epsilon: Fraction, promised: Fraction, cap: Fraction, clock: date) -> None:
        """Refuse a round of `epsilon` that cannot be paid, and the first round of a campaign if all that it promises cannot.

        Nothing is reserved: what other campaigns take meanwhile may leave too little for a later round, which is then refused.
        """
        if self.today(clock) < self.quiet_until:
            raise BudgetExceeded(
                f"this device has no record of what it has spent before, and stays quiet until {self.quiet_until}. If it has "
                "never answered, or its owner wants to begin anew, start a new ledger file with is_first=True (--first). "
                "Nothing was drawn."
            )
        has_begun = any(spend.campaign == campaign for spend in self.spends)
        cost = Fraction(0) if campaign in self._whole(clock) else epsilon if has_begun else promised
        if cost > (left := self.left(cap, clock)):
            what, rest = "this round" if has_begun else "this campaign", max(0.0, float(left))
            raise BudgetExceeded(
                f"{what} costs epsilon {float(cost):.4g}; {rest:.4g} of {float(cap):.4g} is left for these 365 days. Nothing was "
                "drawn and nothing was charged."
            )

    def _whole(self, today: date) -> dict[str, Fraction]:
        """Campaigns that count with all of their epsilon, whatever rounds they had: a row of version 1 is among the 365 days."""
        old = [spend for spend in self.spends if spend.covers == "campaign"]
        named = {spend.campaign for spend in old if spend.counts(today)}
        return {name: max(spend.epsilon for spend in old if spend.campaign == name) for name in named}
