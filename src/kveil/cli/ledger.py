"""`kveil ledger`: make a budget, and see what is left of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kveil.cli.fit import Relation
from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True)


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
    rule: Annotated[str, typer.Option(help="auto, pure, zcdp or approx: how charges add up")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make a budget that fits are charged to."""
    from kveil import Ledger

    ledger = Ledger.create(db, name or db.stem, epsilon, delta, relation=relation.value, unit=_unit(unit), rule=rule)
    made = {"ledger": str(db), "name": ledger.name, "rule": ledger.rule, "remaining": ledger.remaining()._asdict()}
    typer.echo(json.dumps(made) if as_json else f'ledger "{ledger.name}" at {db}: {ledger.remaining()}, rule {ledger.rule}')


@app.command("show")
def show(
    db: Annotated[Path, typer.Argument(help="a ledger made by `kveil ledger init`")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """What was spent, what is left, and one line per release."""
    from kveil import Ledger

    ledger = Ledger.open(db)
    if as_json:
        typer.echo(json.dumps(_plain(ledger)))
        return
    budget = f"epsilon {float(ledger.epsilon):.6g}, delta {float(ledger.delta):.3g}"
    typer.echo(f'ledger "{ledger.name}": {budget}, {ledger.relation}, protects {ledger.unit}, rule {ledger.rule}')
    typer.echo(f"spent: {ledger.spent()}\nleft:  {ledger.remaining()}")
    table = Table("token", "reserved", "charged", "mechanisms", "state")
    for entry in ledger.charges():
        state = ("complete" if entry.committed else "reserved, counts as spent") + ("" if entry.secure else "; scripted noise")
        table.add_row(entry.token[:8], entry.reserved_at[:10], str(entry.amount), _mechanisms(entry.plan), state)
    if table.row_count:
        Console().print(table)


def _plain(ledger: Any) -> dict[str, Any]:
    charges = [
        {**entry._asdict(), "amount": entry.amount._asdict(), "plan": json.loads(entry.plan)} for entry in ledger.charges()
    ]
    return {
        "name": ledger.name,
        "relation": ledger.relation,
        "unit": str(ledger.unit),
        "rule": ledger.rule,
        "spent": ledger.spent()._asdict(),
        "remaining": ledger.remaining()._asdict(),
        "charges": charges,
    }


def _mechanisms(plan: str) -> str:
    return ", ".join(f"{charge['times']} x {charge['label']}" for charge in json.loads(plan)["charges"])


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
