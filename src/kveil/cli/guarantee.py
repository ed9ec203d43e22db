"""`kveil guarantee`: what a saved release promised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def guarantee(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a saved release")],
    check: Annotated[
        bool, typer.Option("--check", help="fail unless the guarantee is valid and agrees with the release and its signature")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """What RELEASE promises, in words. Its numbers are added up again from its charges."""
    from kveil import load
    from kveil.release.check import check_release, strangers

    promised = (check_release(out) if check else load(out)).guarantee
    typer.echo(promised.to_json() if as_json else str(promised))
    for found in strangers(out):
        typer.echo(f"kveil: {found}.", err=True)
