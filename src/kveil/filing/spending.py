"""A picture of spending over time: the share of its budget that each ledger has spent, day by day, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from html import escape
from typing import NamedTuple

from kveil.filing.entries import filed
from kveil.kernel.ledger import Amount, Ledger

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 260, 48, 190, 16, 32
LINE, LONGEST = 16, 20  # pixels from one name to the next; characters of a name
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
    """The picture: a step for every day with a charge, and a line at the whole budget. "" if nothing was spent.

    Text and grid have the colour of the page's text, so that it is read on light and dark pages; names stand beside the ends of
    their lines, moved apart where these are close.
    """
    drawn = [one for one in told if one.days]
    if not drawn:
        return ""
    first, last = min(one.days[0] for one in drawn), max(one.days[-1] for one in drawn)
    bottom = max(HEIGHT, TOP + LINE * (len(drawn) + 1) + BOTTOM)
    wide, high, across = WIDTH - LEFT - RIGHT, bottom - TOP - BOTTOM, max(1, (last - first).days)

    def x(day: date) -> float:
        return LEFT + wide * (day - first).days / across

    def y(share: float) -> float:
        return TOP + high * (1 - min(share, 1.0))

    marks = [
        f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y(part):.1f}" y2="{y(part):.1f}" stroke="currentColor" stroke-opacity="0.2"/>'
        f'<text x="{LEFT - 6}" y="{y(part) + 4:.1f}" text-anchor="end">{100 * part:.0f} %</text>'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    marks += [f'<text x="{LEFT}" y="{bottom - 10}">{first}</text>']
    marks += [f'<text x="{LEFT + wide}" y="{bottom - 10}" text-anchor="end">{last}</text>'] if last > first else []
    ends = _apart([y(one.shares[-1]) for one in drawn], TOP + LINE / 2, TOP + high)
    for place, (one, end) in enumerate(zip(drawn, ends, strict=True)):
        colour, path = COLOURS[place % len(COLOURS)], [f"M{x(one.days[0]):.1f},{y(0.0):.1f}"]
        path += [f"H{x(day):.1f}V{y(share):.1f}" for day, share in zip(one.days, one.shares, strict=True)]
        marks.append(f'<path d="{"".join(path)}H{LEFT + wide}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        lead = f'x1="{LEFT + wide}" y1="{y(one.shares[-1]):.1f}" x2="{LEFT + wide + 12}" y2="{end:.1f}"'
        marks.append(f'<line {lead} stroke="{colour}" stroke-width="1.5"/>')
        name = one.name if len(one.name) <= LONGEST else f"{one.name[: LONGEST - 1]}…"
        marks.append(f'<text x="{LEFT + wide + 16}" y="{end + 4:.1f}">{escape(name)}: {100 * one.shares[-1]:.0f} %</text>')
    size = f'viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" height="{bottom}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" fill="currentColor" font-family="sans-serif" font-size="12">'
    )
    return f"{head}<title>share of the budget spent, by day</title>{''.join(marks)}</svg>"


def _apart(heights: Sequence[float], top: float, bottom: float) -> list[float]:
    """Heights of lines of text, near the ones wanted, at least a line from each other, between two ends if they fit."""
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    found, free = [0.0] * len(heights), top
    for place in order:
        found[place] = max(heights[place], free)
        free = found[place] + LINE
    limit = bottom
    for place in reversed(order):  # back up, where they would run out below
        found[place] = min(found[place], limit)
        limit = found[place] - LINE
    return found


def _size(amount: Amount) -> float:
    """What adds up on its ledger: rho of a zCDP ledger, else epsilon."""
    return amount.epsilon if amount.rho is None else amount.rho
