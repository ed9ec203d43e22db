"""A table on the screen: with lines and colours on a terminal, plain and as wide as it is where it is piped."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of texts to stdout. What is in them is shown as it is, and steers nothing."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)
    if console.is_terminal:
        _drawn(console, header, rows)
    else:
        typer.echo(plain_table(header, rows))


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of texts, aligned to the right but for the last.

    >>> print(plain_table(["centre", "age"], [["0", "3.1"], ["1", "20.5"]]))
    centre   age
         0   3.1
         1  20.5
    """
    widths = [max(len(line[place]) for line in (header, *rows)) for place in range(len(header))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in (header, *rows))


def _drawn(console: object, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for name in header:
        table.add_column(Text(name), justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
