"""A picture of spending, as SVG: the share of its budget that each ledger has spent, day by day.

Where all was spent on one day there is no time to show: then it is a bar per ledger, with one block per release.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from html import escape
from typing import NamedTuple

from kveil.filing.entries import filed
from kveil.kernel.ledger import Amount, Ledger

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 260, 48, 190, 16, 32
LINE, LONGEST = 16, 20  # pixels from one name to the next; characters of a name
FONT, LARGE = 12, 14  # pixels: of names beside lines, and above bars
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: told apart by everyone
BAR, ROW = 20, 52  # pixels: a bar, and from one bar to the next
GAP, LEAST = 0.2, 0.15  # percent of a bar: between blocks, and of the smallest


class Spending(NamedTuple):
    """The share of a ledger's budget that was spent after each day with a charge, and by each entry. On a zCDP ledger: of rho."""

    name: str
    days: tuple[date, ...]
    shares: tuple[float, ...]
    entries: tuple[float, ...] = ()

    @property
    def spent(self) -> float:
        """The share of the budget that was spent by now."""
        return self.shares[-1] if self.shares else 0.0


def spending(ledger: Ledger) -> Spending:
    """How the budget was spent, from the first charge on."""
    entries = filed(ledger)
    charges = [part for entry in entries for part in (entry.rounds or (entry,))]
    whole = _size(ledger.spent()) + _size(ledger.remaining())
    by_day: dict[date, float] = {}
    for entry in sorted(charges, key=lambda line: line.day):
        by_day[date.fromisoformat(entry.day)] = by_day.get(date.fromisoformat(entry.day), 0.0) + _size(entry.amount)
    gone, shares = 0.0, []
    for size in by_day.values():
        gone += size
        shares.append(gone / whole if whole > 0 else 1.0)  # a damaged file may say that there is no budget
    parts = tuple(_size(entry.amount) / whole if whole > 0 else 1.0 for entry in entries)
    return Spending(ledger.name, tuple(by_day), tuple(shares), parts)


def svg(told: Sequence[Spending]) -> str:
    """The picture. Its text has the colour of the page's, so that it is read on light and dark pages."""
    return _blocks(told) if is_one_day(told) else _steps(told)


def alone(told: Sequence[Spending], light: str, dark: str) -> str:
    """The picture as a file of its own. light, dark: colours of text and ground, as CSS, for readers with either theme."""
    style = f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    drawn = svg(told)
    if is_one_day(told):  # a bar has no margins
        inner = drawn.replace('width="100%"', f'x="{TOP}" width="{WIDTH - 2 * TOP}"', 1)
        drawn = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{ROW * len(told)}">{inner}</svg>'
    head, rest = drawn.split(">", 1)
    return f"{head}>{style}{rest}" + "\n"


def legend(told: Sequence[Spending]) -> str:
    """What the picture shows, in words."""
    if is_one_day(told):
        return "Each block is what one release has spent; the frame is the whole budget."
    return f"The line{'s show' if len(told) > 1 else ' shows'} how much of the budget was spent by which day."


def is_one_day(told: Sequence[Spending]) -> bool:
    """Whether the picture is of bars, which narrow screens have room for, and not of days."""
    return len({day for one in told for day in one.days}) <= 1


def _blocks(drawn: Sequence[Spending]) -> str:
    """A bar per ledger, as long as its budget. Lengths are percentages, so that text keeps its size at any width."""
    marks = []
    for place, one in enumerate(drawn):
        top, left = ROW * place, 0.0
        what = f"{100 * one.spent:.0f} % spent on {one.days[-1]}" if one.days else "nothing spent"
        marks.append(f'<text x="0" y="{top + LARGE}">{escape(_shortened(one.name))}: {what}</text>')
        for size in one.entries:
            marks.append(_box(left, top + ROW - BAR - LINE // 2, max(100 * size - GAP, LEAST), COLOURS[place % len(COLOURS)]))
            left += 100 * size
        marks.append(_box(0, top + ROW - BAR - LINE // 2, 100, "none", ' stroke="currentColor" stroke-opacity="0.5"'))
    return _picture("100%", ROW * len(drawn), LARGE, "", marks)


def _box(left: float, top: float, wide: float, colour: str, more: str = "") -> str:
    return f'<rect x="{left:.2f}%" y="{top}" width="{wide:.2f}%" height="{BAR}" rx="2" fill="{colour}"{more}/>'


def _steps(drawn: Sequence[Spending]) -> str:
    """A step for every day with a charge. Names stand beside the ends of their lines, moved apart where these are close."""
    days = [day for one in drawn for day in one.days]
    first, last = min(days), max(days)
    bottom = max(HEIGHT, TOP + LINE * (len(drawn) + 1) + BOTTOM)
    wide, high, across = WIDTH - LEFT - RIGHT, bottom - TOP - BOTTOM, (last - first).days

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
    marks += [f'<text x="{LEFT + wide}" y="{bottom - 10}" text-anchor="end">{last}</text>']
    ends = _apart([y(one.spent) for one in drawn], TOP + LINE / 2, TOP + high)
    for place, (one, end) in enumerate(zip(drawn, ends, strict=True)):
        colour, path = COLOURS[place % len(COLOURS)], [f"M{x((*one.days, last)[0]):.1f},{y(0.0):.1f}"]
        path += [f"H{x(day):.1f}V{y(share):.1f}" for day, share in zip(one.days, one.shares, strict=True)]
        marks.append(f'<path d="{"".join(path)}H{LEFT + wide}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        lead = f'x1="{LEFT + wide}" y1="{y(one.spent):.1f}" x2="{LEFT + wide + 12}" y2="{end:.1f}"'
        marks.append(f'<line {lead} stroke="{colour}" stroke-width="1.5"/>')
        name = f"{_shortened(one.name)}: {100 * one.spent:.0f} %"
        marks.append(f'<text x="{LEFT + wide + 16}" y="{end + 4:.1f}">{escape(name)}</text>')
    return _picture(WIDTH, bottom, FONT, f'viewBox="0 0 {WIDTH} {bottom}" ', marks)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _picture(wide: int | str, high: int, font: int, view: str, marks: Sequence[str]) -> str:
    size = f'{view}width="{wide}" height="{high}" font-family="sans-serif" font-size="{font}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" fill="currentColor" overflow="visible">'
    return f"{head}<title>share of the budget spent</title>{''.join(marks)}</svg>"


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
