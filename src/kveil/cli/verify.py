"""`kveil verify` and `kveil card`: for whoever receives a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

NOT_VERIFIED = 4  # an exit code

OUT = Annotated[Path, typer.Argument(help="folder of a saved release")]


def verify(
    out: OUT,
    key: Annotated[str | None, typer.Option(help="public key that must have signed it: its file, or 64 digits")] = None,
    ledger: Annotated[Path | None, typer.Option(help="ledger that must have paid for it, if you may read it")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check the release at OUT, one line per check; exit with 4 if one fails. Free: it needs no rows and charges nothing."""
    from kveil import verify as checked
    from kveil.release.words import printable

    found = checked(out, key=key, ledger=ledger)
    if as_json:
        typer.echo(json.dumps({"good": found.is_good, "checks": [check._asdict() for check in found.checks]}))
    else:
        for check in found.checks:
            typer.echo(printable(str(check), 2**20))  # names of files must not steer a terminal
    if not found.is_good:
        raise typer.Exit(NOT_VERIFIED)


def card(
    out: OUT, as_json: Annotated[bool, typer.Option("--json", help="print a record for the registry of DP deployments")] = False
) -> None:
    """The page that says what the release at OUT means for a person, and how it was made."""
    from kveil import load

    release = load(out)
    typer.echo(json.dumps(release.deployment(), indent=1, ensure_ascii=False) if as_json else release.card(), nl=as_json)
