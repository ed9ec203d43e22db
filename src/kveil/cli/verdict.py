"""`kveil verdict`: is a saved release any good? Free: it needs no rows and no budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def verdict(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a release, from `kveil fit`")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, with an interval for every number")] = False,
) -> None:
    """Good, rough or noise: what the noise did to RELEASE, from what it holds."""
    from kveil import load

    found = load(out).verdict()
    typer.echo(json.dumps(found.to_dict()) if as_json else str(found))
