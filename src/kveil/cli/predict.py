"""`kveil predict`: the nearest centre of every row, for whoever holds the rows."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import is_array, parse_categories, parse_delimiter, parse_missing, table_of
from kveil.cli.evaluate import columns_of
from kveil.cli.panels import DATA, DELIMITER, OUTPUT, ROWS
from kveil.cli.state import state
from kveil.errors import InvalidValue


def predict(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a release, from `kveil fit`")],
    data: DATA,
    to: Annotated[Path, typer.Option("--out", "-o", help="the .csv to write; must not exist", rich_help_panel=OUTPUT)],
    distances: Annotated[
        bool, typer.Option("--distances", help="write the distance to the nearest centre, too", rich_help_panel=OUTPUT)
    ] = False,
    categories: Annotated[
        Path | None, typer.Option(help="JSON file of public levels, that of the fit", rich_help_panel=ROWS)
    ] = None,
    category_weight: Annotated[
        float, typer.Option(help="distance between two levels of a category, that of the fit", rich_help_panel=ROWS)
    ] = 1.0,
    missing: Annotated[
        str, typer.Option(help="missing cells: middle, or a JSON file of public values", rich_help_panel=ROWS)
    ] = "middle",
    delimiter: DELIMITER = None,
) -> None:
    """Write the number of the nearest centre of RELEASE for every row of DATA.

    NOT PRIVATE: a label is a function of one row. The file is as secret as DATA, and only its owner may read it. There is one
    line per row, in the order of DATA; lines of a .csv with a wrong number of cells are no rows.
    """
    from kveil import load, read

    release, table = load(out), table_of(data)
    if missing in ("drop", "mean"):
        raise InvalidValue("every row gets a label, so --missing is middle, or a JSON file of public values.")
    has_names = release.features is not None and not is_array(table)
    source = read(
        table, columns=columns_of(release, categories) if has_names else None, delimiter=parse_delimiter(delimiter),
        categories=parse_categories(categories, table), category_weight=category_weight, missing=parse_missing(missing, table),
    )  # fmt: skip
    _write(to, ("cluster", *(["distance"] if distances else [])), _answers(release, source, distances))
    if not state.quiet:
        typer.echo(f"Labels written to {to}. They are not private: keep the file where the rows are.")


def _answers(release: Any, source: Any, distances: bool) -> Iterator[list[Any]]:
    """Labels block by block, so that a table larger than memory has some, too."""
    names = None if source.names is None else list(source.names)
    if names is not None and release.features is not None and names != list(release.features):
        raise InvalidValue("the columns of DATA are not those that the release was made with. Check --categories.")
    for block in source.raw_blocks():
        labels = release.predict(block).tolist()
        if distances:
            far = release.transform(block).min(axis=1).tolist()
            yield from ([label, away] for label, away in zip(labels, far, strict=True))
        else:
            yield from ([label] for label in labels)


def _write(path: Path, header: tuple[str, ...], rows: Iterator[list[Any]]) -> None:
    if os.path.lexists(path):
        raise InvalidValue(f"{path} exists already, and writing would destroy it. Choose another name with -o.")
    failed, is_whole = None, False
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="", encoding="utf-8") as file:
            try:
                writer = csv.writer(file)
                writer.writerow(header)
                writer.writerows(rows)
                is_whole = True
            finally:
                if not is_whole:
                    path.unlink(missing_ok=True)
    except OSError as error:
        failed = InvalidValue(f"{path} cannot be written: {error.strerror}. Choose another place with -o.")
    if failed is not None:
        raise failed
