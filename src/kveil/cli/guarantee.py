"""`kveil guarantee`: what a saved release promised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kveil.errors import InvalidValue


def guarantee(
    out: Annotated[Path, typer.Argument(help="folder of a saved release")],
    check: Annotated[bool, typer.Option("--check", help="fail unless the release has a valid guarantee")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """What the release at OUT promises, in words. Its numbers are added up again from its charges."""
    from kveil import load

    promised = load(out).guarantee
    typer.echo(promised.to_json() if as_json else str(promised))
    if check and (promised.route == "none" or not promised.valid):
        raise InvalidValue("this release has no valid guarantee. Do not let it leave the house.")
