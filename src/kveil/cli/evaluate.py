"""`kveil evaluate`: how well a saved release fits rows, as noisy numbers that are charged for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    LEDGER_DATA_NAME,
    LEDGER_PURPOSE,
    is_array,
    parse_categories,
    parse_delimiter,
    parse_label,
    parse_missing,
    progress_on_terminals,
    stated,
    table_of,
)
from kveil.cli.panels import AS_JSON, DATA, DELIMITER, LEDGER, MAX_ROWS, PERSON, PRIVACY, ROWS
from kveil.errors import InvalidValue


def evaluate(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a release, from `kveil fit`")],
    data: DATA,
    epsilon: Annotated[float, typer.Option(help="the whole cost of this evaluation", rich_help_panel=PRIVACY)],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`", rich_help_panel=LEDGER)],
    delta: Annotated[float, typer.Option(help="used only where the ledger adds zCDP", rich_help_panel=PRIVACY)] = 0.0,
    person: PERSON = None,
    max_rows_per_person: MAX_ROWS = 1,
    categories: Annotated[
        Path | None, typer.Option(help="JSON file of public levels, that of the fit", rich_help_panel=ROWS)
    ] = None,
    category_weight: Annotated[
        float, typer.Option(help="distance between two levels of a category, that of the fit", rich_help_panel=ROWS)
    ] = 1.0,
    missing: Annotated[
        str | None, typer.Option(help="missing cells, as in `kveil fit`; default as when it was fitted", rich_help_panel=ROWS)
    ] = None,
    delimiter: DELIMITER = None,
    purpose: LEDGER_PURPOSE = None,
    data_name: LEDGER_DATA_NAME = None,
    by: BY = None,
    as_json: AS_JSON = False,
) -> None:
    """Measure cost, silhouette and sizes of RELEASE on DATA: noisy, with intervals, and charged to a ledger."""
    from kveil import evaluate as found_by
    from kveil import load, read

    release, table = load(out), table_of(data)
    has_names = release.features is not None and not is_array(table)
    source = read(
        table, columns=columns_of(release, categories) if has_names else None, person=parse_label(person, table),
        max_rows_per_person=max_rows_per_person, categories=parse_categories(categories, table), category_weight=category_weight,
        missing=release.parameters.get("missing", "middle") if missing is None else parse_missing(missing, table),
        delimiter=parse_delimiter(delimiter),
    )  # fmt: skip
    account = stated(ledger, purpose, data_name, by)
    with progress_on_terminals():
        found = found_by(release, source, epsilon, ledger=account, delta=delta)
    typer.echo(found.to_json() if as_json else str(found))


def columns_of(release: Any, categories: Path | None) -> list[str]:
    """The columns of the table, in which a category is one."""
    columns, blocks = list(release.features), release.parameters.get("categories", ())
    if blocks and categories is None:
        raise InvalidValue("this release has categories. Pass the file of levels that it was fitted with: --categories FILE.")
    for block in reversed(blocks):
        columns[block["first"] : block["first"] + len(block["levels"])] = [block["column"]]
    return columns
