"""`kveil evaluate`: how well a saved release fits rows, as noisy numbers that are charged for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kveil.cli._options import parse_label, progress_on_terminals


def evaluate(
    out: Annotated[Path, typer.Argument(help="folder of a release, from `kveil fit`")],
    data: Annotated[Path, typer.Argument(help="rows: .csv, .npz (array x), .npy or .parquet, with the columns of the release")],
    epsilon: Annotated[float, typer.Option(help="the whole cost of this evaluation")],
    ledger: Annotated[Path, typer.Option(help="budget to charge, from `kveil ledger init`")],
    delta: Annotated[float, typer.Option(help="used only where the ledger adds zCDP")] = 0.0,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows of one person that count")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Cost, silhouette and sizes of the release at OUT on DATA: noisy, with intervals, and charged to a ledger."""
    from kveil import evaluate as found_by
    from kveil import load, read

    release = load(out)
    names = None if release.features is None or data.suffix.lower() in (".npy", ".npz") else list(release.features)
    source = read(data, columns=names, person=parse_label(person, data), max_rows_per_person=max_rows_per_person)
    with progress_on_terminals():
        found = found_by(release, source, epsilon, ledger=ledger, delta=delta)
    typer.echo(found.to_json() if as_json else str(found))
