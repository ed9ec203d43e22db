"""A picture of spending over time: the share of its budget that each ledger has spent, day by day, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from html import escape
from typing import NamedTuple

from kveil.filing.entries import filed
from kveil.kernel.ledger import Amount, Ledger

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 260, 48, 160, 16, 32
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: told apart by everyone


class Spending(NamedTuple):
    """The share of a ledger's budget that was spent after each day with a charge. On a zCDP ledger shares are of rho."""

    name: str
    days: tuple[date, ...]
    shares: tuple[float, ...]


def spending(ledger: Ledger) -> Spending:
    """How the budget was spent, from the first charge on."""
    entries = [part for entry in filed(ledger) for part in (entry.rounds or (entry,))]
    whole = _size(ledger.spent()) + _size(ledger.remaining())
    by_day: dict[date, float] = {}
    for entry in sorted(entries, key=lambda line: line.day):
        by_day[date.fromisoformat(entry.day)] = by_day.get(date.fromisoformat(entry.day), 0.0) + _size(entry.amount)
    gone, shares = 0.0, []
    for size in by_day.values():
        gone += size
        shares.append(gone / whole if whole > 0 else 1.0)  # a damaged file may say that there is no budget
    return Spending(ledger.name, tuple(by_day), tuple(shares))


def svg(told: Sequence[Spending]) -> str:
    """The picture: a step for every day with a charge, and a line at the whole budget. "" if nothing was spent."""
    days = [day for one in told for day in one.days]
    if not days:
        return ""
    first, last = min(days), max(days)
    across = max(1, (last - first).days)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(day: date) -> float:
        return LEFT + wide * (day - first).days / across

    def y(share: float) -> float:
        return TOP + high * (1 - share)

    marks = [
        f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y(part):.1f}" y2="{y(part):.1f}" stroke="#DDDDDD"/>'
        f'<text x="{LEFT - 6}" y="{y(part) + 4:.1f}" text-anchor="end">{part:.0%}</text>'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    marks += [f'<text x="{LEFT}" y="{HEIGHT - 10}">{first}</text>']
    marks += [f'<text x="{LEFT + wide}" y="{HEIGHT - 10}" text-anchor="end">{last}</text>'] if last > first else []
    lines = []
    for place, one in enumerate(told):
        if not one.days:
            continue
        colour, path, share = COLOURS[place % len(COLOURS)], [f"M{x(one.days[0]):.1f},{y(0.0):.1f}"], 0.0
        for day, share in zip(one.days, one.shares, strict=True):
            path.append(f"H{x(day):.1f}V{y(share):.1f}")
        path.append(f"H{LEFT + wide}")
        lines.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(
            f'<text x="{LEFT + wide + 6}" y="{TOP + 14 + 16 * place}" fill="{colour}">{escape(one.name)}: {share:.0%}</text>'
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
    return (
        f'{head} font-family="sans-serif" font-size="12"><title>share of the budget spent</title>{"".join(marks + lines)}</svg>'
    )


def _size(amount: Amount) -> float:
    """What adds up on its ledger: rho of a zCDP ledger, else epsilon."""
    return amount.epsilon if amount.rho is None else amount.rho
