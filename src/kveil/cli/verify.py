"""`kveil verify` and `kveil card`: for whoever receives a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kveil.cli.main import NOT_VERIFIED

OUT = Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a saved release")]


def verify(
    out: OUT,
    key: Annotated[str | None, typer.Option(help="public key that must have signed it: its file, or 64 digits")] = None,
    ledger: Annotated[Path | None, typer.Option(help="ledger that must have paid for it, if you may read it")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Check RELEASE, one line per check; exit with 4 if one fails. Free: it needs no rows and charges nothing."""
    from kveil import verify as checked

    found = checked(out, key=key, ledger=ledger)
    if as_json:
        checks = [check._asdict() for check in found.checks]
        typer.echo(json.dumps({"good": found.is_good, "checks": checks, "left_open": found.left_open}))
    else:
        typer.echo(str(found))
    if not found.is_good:
        raise typer.Exit(NOT_VERIFIED)


def card(
    out: OUT, as_json: Annotated[bool, typer.Option("--json", help="print a record for the registry of DP deployments")] = False
) -> None:
    """The page that says what RELEASE means for a person, and how it was made."""
    from kveil import load
    from kveil.release.verify import check_signed

    release = load(out)
    check_signed(out)
    typer.echo(json.dumps(release.deployment(), indent=1, ensure_ascii=False) if as_json else release.card(), nl=as_json)
