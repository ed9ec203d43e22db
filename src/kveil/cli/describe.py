"""`kveil describe`: which keywords the rows of each cluster of a saved release have, as noisy numbers that are charged for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kveil.cli._options import (
    BY,
    LEDGER_DATA_NAME,
    LEDGER_PURPOSE,
    is_array,
    parse_delimiter,
    parse_label,
    progress_on_terminals,
    stated,
    table_of,
)
from kveil.cli.panels import AS_JSON, DATA, DELIMITER, FIND, LEDGER, MAX_ROWS, OUTPUT, PERSON, PRIVACY
from kveil.errors import InvalidValue


def describe(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a release, from `kveil fit`")],
    data: DATA,
    keywords: Annotated[
        Path, typer.Option(help="text file of public keywords, one per line: names of columns of DATA", rich_help_panel=FIND)
    ],
    epsilon: Annotated[float, typer.Option(help="the whole cost of this description", rich_help_panel=PRIVACY)],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`", rich_help_panel=LEDGER)],
    per_row: Annotated[int, typer.Option(min=1, help="keywords per row that count, at most", rich_help_panel=FIND)] = 5,
    delta: Annotated[float, typer.Option(help="used only where the ledger adds zCDP", rich_help_panel=PRIVACY)] = 0.0,
    person: PERSON = None,
    max_rows_per_person: MAX_ROWS = 1,
    delimiter: DELIMITER = None,
    purpose: LEDGER_PURPOSE = None,
    data_name: LEDGER_DATA_NAME = None,
    by: BY = None,
    picture: Annotated[Path | None, typer.Option(help="draw it into this .svg or .png", rich_help_panel=OUTPUT)] = None,
    as_json: AS_JSON = False,
) -> None:
    """Find keywords that stand out in each cluster of RELEASE, by the rows of DATA: noisy, and charged to a ledger.

    DATA has the columns of the release, and one column of numbers per keyword.
    """
    from kveil import describe as described
    from kveil import load, read

    release, words = load(out), _lines(keywords)
    if picture is not None and picture.suffix.lower() not in (".svg", ".png"):
        raise InvalidValue("a picture is saved as .svg or .png. Give --picture one of these suffixes.")
    table = table_of(data)
    has_names = release.features is not None and not is_array(table)
    columns = [*(release.features or ()), *words] if has_names else None
    source = read(
        table, columns=columns, person=parse_label(person, table), max_rows_per_person=max_rows_per_person,
        delimiter=parse_delimiter(delimiter),
    )  # fmt: skip
    account = stated(ledger, purpose, data_name, by)
    with progress_on_terminals():
        found = described(release, source, words, epsilon, ledger=account, per_row=per_row, delta=delta)
    if picture is not None:
        found.save(picture)
    typer.echo(found.to_json() if as_json else str(found))


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    words = [line.strip() for line in text.splitlines() if line.strip()]
    if not words:
        raise InvalidValue(f"--keywords takes a text file with a public keyword per line. {path} is not one.")
    return words
