"""`kveil recluster`, `kveil curve` and `kveil sample`: what a saved release answers afterwards, for no charge."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_range
from kveil.cli.choices import Format
from kveil.cli.saving import check_place, signing_key
from kveil.errors import InvalidValue

OUT = Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a saved release")]
SEED = Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="steers public choices; by default always the same ones")]
AS_JSON = Annotated[bool, typer.Option("--json", help="print JSON")]


def recluster(
    out: OUT,
    k: Annotated[int, typer.Option("--k", "-k", help="number of clusters")],
    to: Annotated[Path, typer.Option("--out", "-o", help="folder for the new release; must not exist")],
    format: Annotated[Format, typer.Option(help="of the centres")] = Format.parquet,
    force: Annotated[bool, typer.Option("--force", help="replace an older release there")] = False,
    ledger: Annotated[Path | None, typer.Option(help="note the new release on the ledger that paid for RELEASE")] = None,
    sign: Annotated[Path | None, typer.Option(help="sign the new release with this key, from `kveil keys new`")] = None,
    random_state: SEED = None,
    as_json: AS_JSON = False,
) -> None:
    """Another number of centres from RELEASE, for no charge: the data is not needed."""
    from kveil import Ledger, load

    check_place(to, force)
    key, account = None if sign is None else signing_key(sign), None if ledger is None else Ledger.open(ledger)
    again = load(out).recluster(k, random_state=random_state)
    if account is not None:
        account.note(again.receipt["token"] or "", release=again.fingerprint())
    again.save(to, format=format.value, overwrite=force, sign=key)
    if as_json:
        typer.echo(json.dumps({"release": str(to), "centers": again.centers.tolist(), "weights": _listed(again.weights),
                               "errors": _listed(again.errors), "why": again.method["why"]}))  # fmt: skip
    else:
        typer.echo(f"{k} centres saved at {to}: {again.method['why']}. No new charge: the guarantee is that of {out}.")


def curve(
    out: OUT,
    k_range: Annotated[str | None, typer.Option(help="LOW,HIGH; default that of the fit, or 1,30")] = None,
    picture: Annotated[Path | None, typer.Option(help="draw it into this .svg or .png, too")] = None,
    random_state: SEED = None,
    as_json: AS_JSON = False,
) -> None:
    """What other numbers of clusters would cost, and how many RELEASE suggests. No charge, no data needed."""
    from kveil import load

    drawn = "" if picture is None else f"\nDrawn into {_new_file(picture)}."
    found = load(out).cost_curve(parse_range("--k-range", k_range), random_state=random_state)
    if picture is not None:
        found.save(picture)
    typer.echo(json.dumps(found.to_dict()) if as_json else f"{found}{drawn}")


def sample(
    out: OUT,
    rows: Annotated[int, typer.Option("--rows", help="how many made-up rows")],
    to: Annotated[Path, typer.Option("--out", "-o", help="the .csv to write; must not exist")],
    random_state: SEED = None,
) -> None:
    """Made-up rows that lie about where the rows behind RELEASE did. To try things on; do not publish them as data."""
    from kveil import load

    release = load(out)
    made = release.sample(rows, random_state=random_state)
    names = release.features or tuple(f"x{place}" for place in range(made.shape[1]))
    _write(_new_file(to), names, made)
    shape = " Every cluster is a round blob." if made.shape[1] > 3 else ""
    typer.echo(f"{rows} made-up rows written to {to}. They are not data.{shape}")


def _write(path: Path, names: tuple[str, ...], rows: Any) -> None:
    failed = None
    try:
        with open(path, "x", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(rows.tolist())
    except OSError as error:
        failed = InvalidValue(f"{path} cannot be written: {error.strerror}. Choose another place with -o.")
    if failed is not None:
        raise failed


def _new_file(path: Path) -> Path:
    if path.exists():
        raise InvalidValue(f"{path} exists already, and writing would destroy it. Choose another name.")
    return path


def _listed(numbers: Any) -> list[float] | None:
    return None if numbers is None else numbers.tolist()
