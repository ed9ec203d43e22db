"""`kveil describe`: which keywords the rows of each cluster of a saved release have, as noisy numbers that are charged for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kveil.cli._options import BY, LEDGER_DATA_NAME, LEDGER_PURPOSE, parse_label, progress_on_terminals, stated
from kveil.errors import InvalidValue


def describe(
    out: Annotated[Path, typer.Argument(help="folder of a release, from `kveil fit`")],
    data: Annotated[Path, typer.Argument(help="rows: the columns of the release, and a column of numbers per keyword")],
    keywords: Annotated[Path, typer.Option(help="text file of public keywords, one per line: names of columns of DATA")],
    epsilon: Annotated[float, typer.Option(help="the whole cost of this description")],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`")],
    per_row: Annotated[int, typer.Option(min=1, help="keywords of a row that count, at most")] = 5,
    delta: Annotated[float, typer.Option(help="used only where the ledger adds zCDP")] = 0.0,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows of one person that count")] = 1,
    purpose: LEDGER_PURPOSE = None,
    data_name: LEDGER_DATA_NAME = None,
    by: BY = None,
    picture: Annotated[Path | None, typer.Option(help="draw it into this .svg or .png")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Keywords that stand out in each cluster of the release at OUT, by the rows of DATA: noisy, and charged to a ledger."""
    from kveil import describe as described
    from kveil import load, read

    release, words = load(out), _lines(keywords)
    if picture is not None and picture.suffix.lower() not in (".svg", ".png"):
        raise InvalidValue("a picture is saved as .svg or .png. Give --picture one of these suffixes.")
    has_names = release.features is not None and data.suffix.lower() not in (".npy", ".npz")
    columns = [*(release.features or ()), *words] if has_names else None
    source = read(data, columns=columns, person=parse_label(person, data), max_rows_per_person=max_rows_per_person)
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
