"""Entries of ledgers as CSV, and as one HTML page that needs no other file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from html import escape

from kveil._pages import page, scrolling
from kveil.filing.entries import Filed, filed
from kveil.filing.spending import is_one_day, legend, spending, svg
from kveil.kernel.ledger import Ledger
from kveil.release.words import RULES, printable

COLUMNS = (
    "ledger", "day", "entry", "round", "purpose", "data_name", "by", "epsilon", "delta", "rho", "mechanisms", "state", "release",
)  # fmt: skip
STARTS = ("=", "+", "-", "@")  # of a cell that a spreadsheet would take for a formula


def to_csv(ledgers: Sequence[Ledger], since: str | None = None, until: str | None = None) -> str:
    """One line per entry and, below a federated run, one per round. Sum lines without a `round`, or those with one: not both."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(COLUMNS)
    for ledger in ledgers:
        for entry, place, line in _lines(ledger, since, until):
            amount = line.amount
            rho = "" if amount.rho is None else repr(amount.rho)
            cells = (entry.token, str(place) if place else "", line.purpose, line.data_name, line.by)
            words = (line.mechanisms, line.state, line.release)
            row = (line.ledger, line.day, *cells, repr(amount.epsilon), repr(amount.delta), rho, *words)
            writer.writerow([f"'{cell}" if cell.startswith(STARTS) else cell for cell in row])
    return sink.getvalue()


def to_html(ledgers: Sequence[Ledger], since: str | None = None, until: str | None = None) -> str:
    """A page to print or to file: a picture of spending, then every ledger with its terms and entries."""
    days = " ".join(["Entries", *([f"from {since}"] if since else []), *([f"until {until}"] if until else [])])
    told = [spending(ledger) for ledger in ledgers]
    drawn = svg(told) if is_one_day(told) else scrolling(svg(told))
    parts = [f"<p>{legend(told)}</p>", drawn, *(_section(ledger, since, until) for ledger in ledgers)]
    period = f"<p>{escape(days)}. Sums and picture are of all time.</p>" if since or until else ""
    return page("Privacy budgets", "\n".join(part for part in (period, *parts) if part))


def _lines(ledger: Ledger, since: str | None, until: str | None) -> Iterator[tuple[Filed, int, Filed]]:
    """Entries, each followed by its rounds, which count from 1."""
    for entry in filed(ledger, since, until):
        yield entry, 0, entry
        yield from ((entry, place, part) for place, part in enumerate(entry.rounds, 1))


def _section(ledger: Ledger, since: str | None, until: str | None) -> str:
    terms = (
        f"Budget: epsilon {float(ledger.epsilon):.6g}, delta {float(ledger.delta):.3g}; {ledger.relation}; protects "
        f"{ledger.unit}. {RULES[ledger.rule]} Spent: {ledger.spent()}. Left: {ledger.remaining()}."
    )
    names = ("day", "charged", "purpose", "data", "who asked", "mechanisms", "state", "release", "token or run")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "\n".join(_row(line, is_round=bool(place)) for _, place, line in _lines(ledger, since, until))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f"<h2>{_text(ledger.name)}</h2><p>{_text(terms)}</p>\n{scrolling(table) if rows else '<p>No entries.</p>'}"


def _row(line: Filed, *, is_round: bool) -> str:
    cells = (line.day, str(line.amount), line.purpose, line.data_name, line.by, line.mechanisms, line.state)
    plain = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
    codes = "".join(f"<td><code>{_text(cell)}</code></td>" for cell in (line.release, line.token))
    start = '<tr class="round">' if is_round else "<tr>"
    return f"{start}{plain}{codes}</tr>"


def _text(text: str) -> str:
    return escape(printable(text, len(text)))
