"""`kveil keys`: a key to sign releases with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="file to make for the secret key; the public one lies beside it, as PATH.pub")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make a key. Keep PATH to yourself; give PATH.pub to whoever receives your releases, by a way that they trust."""
    from kveil import SigningKey

    beside = path.with_name(path.name + ".pub")
    if beside.exists():
        raise InvalidValue(f"{beside} exists already; a key is never overwritten. Choose another place.")
    key = SigningKey.generate()
    key.save(path)
    key.save_public(beside)
    made = {"key": str(path), "public": key.public, "file": str(beside)}
    typer.echo(json.dumps(made) if as_json else f"{path}: the secret key, for you alone\n{beside}: the public key {key.public}")


@app.command("show")
def show(path: Annotated[Path, typer.Argument(help="a secret key, from `kveil keys new`")]) -> None:
    """The public key of the secret key at PATH."""
    from kveil import SigningKey

    typer.echo(SigningKey.load(path).public)
