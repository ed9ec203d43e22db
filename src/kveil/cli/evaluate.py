"""`kveil evaluate`: how well a saved release fits rows, as noisy numbers that are charged for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    LEDGER_DATA_NAME,
    LEDGER_PURPOSE,
    parse_categories,
    parse_label,
    parse_missing,
    progress_on_terminals,
    stated,
)
from kveil.errors import InvalidValue


def evaluate(
    out: Annotated[Path, typer.Argument(help="folder of a release, from `kveil fit`")],
    data: Annotated[Path, typer.Argument(help="rows: .csv, .npz (array x), .npy or .parquet, with the columns of the release")],
    epsilon: Annotated[float, typer.Option(help="the whole cost of this evaluation")],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`")],
    delta: Annotated[float, typer.Option(help="used only where the ledger adds zCDP")] = 0.0,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows of one person that count")] = 1,
    categories: Annotated[Path | None, typer.Option(help="JSON file of public levels, that of the fit")] = None,
    category_weight: Annotated[float, typer.Option(help="distance between two levels of a category, that of the fit")] = 1.0,
    missing: Annotated[str | None, typer.Option(help="missing cells, as in `kveil fit`; default as when it was fitted")] = None,
    purpose: LEDGER_PURPOSE = None,
    data_name: LEDGER_DATA_NAME = None,
    by: BY = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Cost, silhouette and sizes of the release at OUT on DATA: noisy, with intervals, and charged to a ledger."""
    from kveil import evaluate as found_by
    from kveil import load, read

    release = load(out)
    has_names = release.features is not None and data.suffix.lower() not in (".npy", ".npz")
    source = read(
        data, columns=_columns(release, categories) if has_names else None, person=parse_label(person, data),
        max_rows_per_person=max_rows_per_person, categories=parse_categories(categories, data), category_weight=category_weight,
        missing=release.parameters.get("missing", "middle") if missing is None else parse_missing(missing, data),
    )  # fmt: skip
    account = stated(ledger, purpose, data_name, by)
    with progress_on_terminals():
        found = found_by(release, source, epsilon, ledger=account, delta=delta)
    typer.echo(found.to_json() if as_json else str(found))


def _columns(release: Any, categories: Path | None) -> list[str]:
    """The columns of the table, in which a category is one."""
    columns, blocks = list(release.features), release.parameters.get("categories", ())
    if blocks and categories is None:
        raise InvalidValue("this release has categories. Pass the file of levels that it was fitted with: --categories FILE.")
    for block in reversed(blocks):
        columns[block["first"] : block["first"] + len(block["levels"])] = [block["column"]]
    return columns
