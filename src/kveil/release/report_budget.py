"""The budget in a report: what the ledger has, whether it paid for this release, and what was stated when it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kveil.kernel.ledger import Ledger
from kveil.release.paid import against_ledger, payments
from kveil.release.report_parts import facts, scrolling, shown, warning
from kveil.release.words import RULES

if TYPE_CHECKING:
    from kveil.release.release import Release

STATED = {"purpose": "Paid for the purpose", "data_name": "Data", "by": "Asked for by"}  # notes of a charge


def budget_section(release: Release, ledger: Ledger) -> str:
    """The section; with a warning if the ledger did not pay for this very release."""
    from kveil.filing.spending import is_one_day, legend, spending, svg

    paid = against_ledger(release, ledger)
    said = f"{paid.says}."
    rows = [
        ("Budget", f"epsilon {float(ledger.epsilon):.6g}, delta {float(ledger.delta):.3g}"),
        ("Spent", str(ledger.spent())),
        ("Left", str(ledger.remaining())),
        *_stated(release, ledger),
    ]
    change = "added or removed" if ledger.relation == "add-remove" else "replaced"
    terms = f"It protects one {shown(ledger.unit.kind)}, {change}. {shown(RULES[ledger.rule])}"
    trouble = warning("The ledger does not confirm this release", said) if paid.state == "failed" else ""
    good = "" if trouble else f"This release was paid for {shown(said)} "
    head = f'<section class="ledger"><h2>The budget: {shown(ledger.name)}</h2>{trouble}'
    told = [spending(ledger)]
    drawn = svg(told)
    if not is_one_day(told):  # a bar has the width of the page: one that is cut would look as if all was spent
        drawn = scrolling("div", "Picture of the budget", drawn)
    return f"{head}<dl>{facts(rows)}</dl><p>{good}{terms}</p><p>{legend(told)}</p>{drawn}</section>"


def _stated(release: Release, ledger: Ledger) -> list[tuple[str, str]]:
    """What the operator stated of the charge. Who asked is on the ledger alone, so a page without one does not tell."""
    notes = [note for entry in payments(release, ledger) for note in entry.notes]
    texts = {name: dict.fromkeys(text for known, text in notes if known == name) for name in STATED}
    return [(STATED[name], " | ".join(told)) for name, told in texts.items() if told]
