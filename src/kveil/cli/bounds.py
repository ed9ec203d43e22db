"""`kveil bounds`: bounds of columns that nobody knows beforehand, found privately and charged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import BY, DATA_NAME, PURPOSE, parse_label, parse_labels, parse_missing, stated
from kveil.errors import InvalidValue


def bounds(
    data: Annotated[Path, typer.Argument(help=".csv (with header), .npz (array x), .npy or .parquet")],
    epsilon: Annotated[float, typer.Option(help="privacy loss of the search, on top of that of a fit")],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`")],
    refine: Annotated[
        bool, typer.Option("--refine", help="narrow what powers of two leave open; from 4000 rows times epsilon per column on")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file for `kveil fit --bounds`; must not exist")] = None,
    columns: Annotated[str | None, typer.Option(help="names (or numbers, of arrays) with commas between; default all")] = None,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows of one person that count")] = 1,
    missing: Annotated[str, typer.Option(help="middle, drop, or a JSON file of public values by column")] = "middle",
    purpose: PURPOSE = None,
    data_name: DATA_NAME = None,
    by: BY = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Bounds that hold nearly all rows of DATA, for a charge of their own."""
    from kveil import find_bounds, read

    source = read(
        data, columns=parse_labels(columns, data), person=parse_label(person, data), max_rows_per_person=max_rows_per_person,
        missing=parse_missing(missing, data),
    )  # fmt: skip
    _check_place(out)
    found, receipt = find_bounds(source, epsilon, ledger=stated(ledger, purpose, data_name, by), refine=refine)
    pairs = [list(pair) for pair in zip(found.low, found.high, strict=True)]
    told: Any = pairs if found.names is None else dict(zip(found.names, pairs, strict=True))
    typer.echo(json.dumps({"bounds": told, "epsilon": epsilon, "secure": receipt.secure}) if as_json else _words(told))
    if out is not None:  # last: what was paid for is on the screen, whatever happens to the file
        out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _words(told: Any) -> str:
    lines = told.items() if isinstance(told, dict) else enumerate(told)
    return "\n".join(f"{name}: {low:.12g} to {high:.12g}" for name, (low, high) in lines)


def _check_place(out: Path | None) -> None:
    """Refuse a place that is taken or cannot be written, before any budget is spent."""
    if out is None:
        return
    if os.path.lexists(out):
        raise InvalidValue(f"there is something at {out} already. Nothing was charged. Choose another name with -o.")
    folder = out.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidValue(f"bounds cannot be saved at {out}: its folder cannot be written. Nothing was charged.")
