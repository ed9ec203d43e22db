"""`kveil bounds`: bounds of columns that nobody knows beforehand, found privately and charged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    DATA_NAME,
    PURPOSE,
    parse_delimiter,
    parse_label,
    parse_labels,
    parse_missing,
    progress_on_terminals,
    stated,
    table_of,
)
from kveil.cli.panels import AS_JSON, COLUMNS, DATA, DELIMITER, FIND, LEDGER, MAX_ROWS, OUTPUT, PERSON, PRIVACY, ROWS
from kveil.cli.state import state
from kveil.errors import InvalidValue


def bounds(
    data: DATA,
    epsilon: Annotated[float, typer.Option(help="privacy loss of the search, on top of that of a fit", rich_help_panel=PRIVACY)],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`", rich_help_panel=LEDGER)],
    refine: Annotated[
        bool,
        typer.Option(
            "--refine", help="narrow what powers of two leave open; from 4000 rows times epsilon per column on",
            rich_help_panel=FIND,
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file for `kveil fit --bounds`, to make", rich_help_panel=OUTPUT)
    ] = None,
    person: PERSON = None,
    max_rows_per_person: MAX_ROWS = 1,
    columns: COLUMNS = None,
    missing: Annotated[
        str, typer.Option(help="middle, drop, or a JSON file of public values by column", rich_help_panel=ROWS)
    ] = "middle",
    delimiter: DELIMITER = None,
    purpose: PURPOSE = None,
    data_name: DATA_NAME = None,
    by: BY = None,
    as_json: AS_JSON = False,
) -> None:  # fmt: skip
    """Find bounds that hold nearly all rows of DATA, for a charge of their own."""
    from kveil import find_bounds, read

    table = table_of(data)
    source = read(
        table, columns=parse_labels(columns, table), person=parse_label(person, table), max_rows_per_person=max_rows_per_person,
        missing=parse_missing(missing, table), delimiter=parse_delimiter(delimiter),
    )  # fmt: skip
    _check_place(out)
    account = stated(ledger, purpose, data_name, by)
    with progress_on_terminals():
        found, receipt = find_bounds(source, epsilon, ledger=account, refine=refine)
    pairs = [list(pair) for pair in zip(found.low, found.high, strict=True)]
    told: Any = pairs if found.names is None else dict(zip(found.names, pairs, strict=True))
    answer = {"bounds": told, "epsilon": epsilon, "secure": receipt.secure, **state.tell_config()}
    typer.echo(json.dumps(answer) if as_json else _words(told))
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
