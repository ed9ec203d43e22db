"""`kveil ledger`: make a budget, and see what is left of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kveil.cli.choices import Relation
from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("init")
def init(
    db: Annotated[Path, typer.Argument(help="file to make; must not exist")],
    epsilon: Annotated[float, typer.Option(help="the whole budget")],
    delta: Annotated[float, typer.Option(help="0 for a budget of pure epsilon")] = 0.0,
    name: Annotated[str | None, typer.Option(help="default: the name of the file")] = None,
    relation: Annotated[Relation, typer.Option(help="neighbouring tables")] = Relation.add_remove,
    unit: Annotated[
        str, typer.Option(help="record, or person:<M> or person:<M>:<COLUMN>: people with at most M rows")
    ] = "record",
    rule: Annotated[
        str, typer.Option(help="how charges add up: pure (epsilons), zcdp (rho), approx (epsilons and deltas), or auto")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make a budget that fits are charged to."""
    from kveil import Ledger
    from kveil.release.words import RULES

    ledger = Ledger.create(db, name or db.stem, epsilon, delta, relation=relation.value, unit=_unit(unit), rule=rule)
    made = {"ledger": str(db), "name": ledger.name, "rule": ledger.rule, "remaining": ledger.remaining()._asdict()}
    typer.echo(json.dumps(made) if as_json else f'ledger "{ledger.name}" at {db}: {ledger.remaining()}. {RULES[ledger.rule]}')


@app.command("show")
def show(
    dbs: Annotated[list[Path], typer.Argument(help="ledgers made by `kveil ledger init`", metavar="DB...")],
    since: Annotated[str | None, typer.Option(help="entries from this day on, YYYY-MM-DD")] = None,
    until: Annotated[str | None, typer.Option(help="entries up to this day, YYYY-MM-DD")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV, one line per entry")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON; a list, of several ledgers")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="print a page to file, with a picture of spending")] = False,
) -> None:
    """What was spent, what is left, and one line per release; a federated run is one entry, with its rounds below."""
    from kveil import Ledger
    from kveil.filing.tables import to_csv, to_html

    if as_csv + as_json + as_html > 1:
        raise InvalidValue("--csv, --json and --html exclude each other. Leave out all but one.")
    ledgers = [Ledger.open(db) for db in dbs]
    if as_csv or as_html:
        typer.echo((to_csv if as_csv else to_html)(ledgers, since, until), nl=False)
    elif as_json:
        told = [_plain(ledger, since, until) for ledger in ledgers]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told))
    else:
        for ledger in ledgers:
            _print(ledger, since, until)


def _print(ledger: Any, since: str | None, until: str | None) -> None:
    from kveil.filing.entries import filed
    from kveil.release.words import RULES

    entries = filed(ledger, since, until)
    budget = f"epsilon {float(ledger.epsilon):.6g}, delta {float(ledger.delta):.3g}"
    typer.echo(f'ledger "{ledger.name}": {budget}, {ledger.relation}, protects {ledger.unit}. {RULES[ledger.rule]}')
    typer.echo(f"spent: {ledger.spent()}\nleft:  {ledger.remaining()}")
    table = Table("token", "reserved", "charged", "mechanisms", "state", *(["stated"] if any(map(_is_stated, entries)) else []))
    for entry in entries:
        for line, mark in ((entry, ""), *((part, "  ") for part in entry.rounds)):
            told = [] if len(table.columns) == MOST_PLAIN else [_stated(line) if line is entry else ""]
            table.add_row(mark + line.token[:8], line.day, str(line.amount), escape(line.mechanisms), line.state, *told)
    if table.row_count:
        Console().print(table)


MOST_PLAIN = 5  # columns of a table in which nothing was stated


def _is_stated(entry: Any) -> bool:
    return bool(entry.purpose or entry.data_name or entry.by)


def _stated(entry: Any) -> str:
    """What the operator stated of an entry, if anything, and the first digits of its release."""
    parts = {"": entry.purpose, "data: ": entry.data_name, "by: ": entry.by, "release: ": entry.release[:12]}
    return escape("\n".join(f"{name}{text}" for name, text in parts.items() if text))


def _plain(ledger: Any, since: str | None, until: str | None) -> dict[str, Any]:
    from kveil.filing.entries import filed

    entries = filed(ledger, since, until)
    shown = {part.token for entry in entries for part in (entry.rounds or (entry,))}
    charges = [
        {**entry._asdict(), "amount": entry.amount._asdict(), "plan": json.loads(entry.plan)}
        for entry in ledger.charges()
        if entry.token in shown
    ]
    return {
        "name": ledger.name,
        "relation": ledger.relation,
        "unit": str(ledger.unit),
        "rule": ledger.rule,
        "spent": ledger.spent()._asdict(),
        "remaining": ledger.remaining()._asdict(),
        "charges": charges,
        "entries": [entry.to_dict() for entry in entries],
    }


def _unit(text: str) -> Any:
    from kveil import PrivacyUnit

    if text == "record":
        return PrivacyUnit()
    kind, rows, column = [*text.split(":", 2), "", ""][:3]
    if kind != "person" or not rows.isdecimal() or int(rows) < 1:
        raise InvalidValue(
            f"--unit takes `record`, `person:M` (M rows of a person at the most) or `person:M:COLUMN`, got {text!r}."
        )
    return PrivacyUnit("person", int(rows), column or None)
