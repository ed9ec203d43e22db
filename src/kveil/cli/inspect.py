"""`kveil inspect`: an openly non-private look at a table, for whoever holds it."""

from __future__ import annotations

import json

import typer

from kveil.cli._options import parse_delimiter, parse_labels, table_of
from kveil.cli.panels import AS_JSON, COLUMNS, DATA, DELIMITER


def inspect(data: DATA, columns: COLUMNS = None, delimiter: DELIMITER = None, as_json: AS_JSON = False) -> None:
    """Look at DATA openly: rows, ranges and broken cells, exactly. NOT PRIVATE, and no charge.

    It answers one question: is this the table that a fit should see? Do not publish what it shows, and do not set bounds by it.
    """
    from kveil import inspect as inspected
    from kveil import read
    from kveil.release.words import printable

    table = table_of(data)
    found = inspected(read(table, columns=parse_labels(columns, table), delimiter=parse_delimiter(delimiter)))
    if not as_json:
        typer.echo("\n".join(printable(line, len(line)) for line in str(found).splitlines()))
        return
    ends = zip(found.columns, found.least.tolist(), found.greatest.tolist(), found.n_broken.tolist(), strict=True)
    told = [
        {"column": name, "least": _finite(low), "greatest": _finite(high), "broken": broken} for name, low, high, broken in ends
    ]
    typer.echo(json.dumps({"private": False, "rows": found.n_rows, "columns": told}))


def _finite(number: float) -> float | None:
    """None of a column without a number."""
    return number if abs(number) != float("inf") else None
