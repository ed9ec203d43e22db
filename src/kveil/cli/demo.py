"""`kveil demo`: the main job on a made-up city, from a table to a saved release."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import progress_on_terminals
from kveil.cli.fit import summary
from kveil.errors import InvalidValue, MissingExtra

PLACES = [(2.0, 3.0), (7.5, 2.0), (5.0, 5.5), (1.5, 8.0), (8.5, 8.0)]
BOUNDS = (0.0, 10.0)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; never overwritten")] = Path("kveil-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Where do riders of a made-up city start? Fit, save, and say what was promised, in a few seconds."""
    from kveil import Ledger, PrivateKMeans
    from kveil.release.picture import save_picture, text_picture

    place = _new_folder(out)
    if place != out and not as_json:
        typer.echo(f"{out} is taken, so this goes to {place}.")
    table = place / "riders.csv"
    _write_riders(table)
    ledger = Ledger.create(place / "ledger.db", "city", 2.0, relation="add-remove")
    model = PrivateKMeans(len(PLACES), epsilon=1.0, bounds=BOUNDS, ledger=ledger, random_state=0)
    with progress_on_terminals():
        model.fit(table)
    model.release_.save(place / "release")
    with suppress(MissingExtra):  # the text below shows the same
        save_picture(model.release_, place / "centers.svg")
    if as_json:
        typer.echo(json.dumps(summary(model, place / "release")))
        return
    typer.echo(f"{table}: made-up trips, one row a rider. Their privacy budget: epsilon 2 in all.\n")
    typer.echo(text_picture(model.release_))
    typer.echo(f"\n{model.guarantee_}\n")
    typer.echo(f"Left on the ledger: {ledger.remaining()}.")
    picture = f" A picture: {place / 'centers.svg'}." if (place / "centers.svg").exists() else ""
    typer.echo(f"Saved: {place / 'release'} (centres, card and guarantee); it may be shared.{picture}")
    typer.echo(f"Not to be shared, were the riders real: {table}.")
    typer.echo("Ask for another release, which takes what is left:")
    places = ["--ledger", place / "ledger.db", "-o", place / "three"]
    door = "kveil" if shutil.which("kveil") else sys.argv[0]  # what was typed works again
    command = [door, "fit", table, "--k", 3, "--epsilon", 1, "--bounds", "0,10", *places]
    typer.echo(f"  {shlex.join(map(str, command))}")


def _new_folder(out: Path) -> Path:
    """A folder made at `out`, or at the first of out-2, out-3, ... that does not exist."""
    out = out / "kveil-demo" if out.name in ("", "..") else out
    why: str | None = "it and its numbered neighbours exist already"
    for number in range(1, 1000):
        place = out if number == 1 else out.with_name(f"{out.name}-{number}")
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:  # also if another demo was quicker
            continue
        except OSError as error:
            why = error.strerror
            break
    raise InvalidValue(f"the demo cannot make a folder at {out}: {why}. Choose another place with -o.")


def _write_riders(path: Path) -> None:
    """A table to play with; the random numbers make up people, they hide nobody."""
    import numpy as np

    rng: Any = np.random.default_rng(2026)
    homes = np.repeat(PLACES, 4000, axis=0)
    trips = np.clip(homes + rng.standard_normal(homes.shape) * 0.5, *BOUNDS)  # made-up people, not noise for privacy
    np.savetxt(path, rng.permutation(trips), fmt="%.4f", delimiter=",", header="start_x,start_y", comments="")
