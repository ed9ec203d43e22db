"""`kveil collect keys new | rotate | publish`: the key that devices pin, and the one that follows it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kveil.cli.campaigns import Place
from kveil.cli.keys import new
from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command("new")(new)


@app.command("rotate")
def rotate(
    old: Annotated[Path, typer.Argument(help="secret key that devices pin now")],
    following: Annotated[Path, typer.Argument(metavar="NEW", help="secret key that follows it")],
    serial: Annotated[int, typer.Option(min=1, help="number of this change; it only rises")],
    output: Annotated[Path, typer.Option("--output", "-o", help="file to make")] = Path("rotation.json"),
) -> None:
    """State that NEW follows OLD, signed by both. Devices take it between campaigns."""
    from kveil.collect.keys import Rotation
    from kveil.signing import SigningKey

    made = Rotation.make(SigningKey.load(old), SigningKey.load(following), serial, datetime.now(UTC).date())
    try:
        with open(output, "xb") as file:
            file.write(made.to_bytes())
    except OSError:
        raise InvalidValue(f"{output} exists already, or cannot be written. Choose another place.") from None
    typer.echo(f"{output}: rotation {serial}, signed by both. Publish it: kveil collect keys publish {output}")


@app.command("publish")
def publish(storage: Place, path: Annotated[Path, typer.Argument(help="from `kveil collect keys rotate`")]) -> None:
    """Let the service show a change of keys to devices."""
    import json

    from kveil.collect.keys import Rotation
    from kveil.collect.storage import Storage

    try:
        statement = Rotation.from_bytes(path.read_bytes())
        _, serial = statement.verified(json.loads(statement.body)["old"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidValue(
            f"{path} is no change of keys that both keys have signed. Make one: kveil collect keys rotate."
        ) from None
    kept = Storage(storage)
    kept.add_rotation(serial, statement.to_bytes())
    kept.dispose()
    typer.echo(f"rotation {serial} is published.")
