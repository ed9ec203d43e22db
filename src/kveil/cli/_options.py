"""Texts of the command line turned into parameters."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli.panels import LEDGER
from kveil.cli.watching import bar_on_terminals as bar_on_terminals
from kveil.cli.watching import progress_on_terminals as progress_on_terminals
from kveil.errors import InvalidValue

PURPOSE = Annotated[str | None, typer.Option(help="what it is for; on the ledger and the card", rich_help_panel=LEDGER)]
DATA_NAME = Annotated[
    str | None, typer.Option(help="what the data is called; on the ledger and the card", rich_help_panel=LEDGER)
]
LEDGER_PURPOSE = Annotated[
    str | None, typer.Option(help="what it is for; on the ledger", rich_help_panel=LEDGER)
]  # no card is made
LEDGER_DATA_NAME = Annotated[str | None, typer.Option(help="what the data is called; on the ledger", rich_help_panel=LEDGER)]
BY = Annotated[str | None, typer.Option(help="who asked; on the ledger alone", rich_help_panel=LEDGER)]

Data = Path | str | list[str]  # what was typed as a table


def stated(ledger: Path | None, purpose: str | None, data_name: str | None, by: str | None) -> Any:
    """The ledger at a path, whose charges carry what the operator states."""
    from kveil import Ledger

    if ledger is None:
        if by is not None:
            raise InvalidValue("--by is written on a ledger alone, never on a release, and there is no --ledger. Name one.")
        return None
    return Ledger.open(ledger).stating(purpose=purpose or "", data_name=data_name or "", by=by or "")


def parse_bounds(text: str | None, names: tuple[str, ...] | None) -> tuple[Any, Any] | None:
    """`low,high`, or a JSON file: {"age": [0, 120], ...} by name, or [[0, 120], ...], always one pair per column, in order."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) == 2 and all(_is_number(part) for part in parts):
        return float(parts[0]), float(parts[1])
    if not os.path.isfile(text):
        raise InvalidValue(
            f"--bounds takes LOW,HIGH or a JSON file, and there is no file {text!r}. "
            'Examples: --bounds 0,100, or a file of {"age": [0, 120], "hours": [0, 80]} for bounds by column.'
        )
    pairs = _read_pairs(Path(text), names)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def parse_numbers(option: str, text: str | None) -> Any:
    """One number, or several separated by commas."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(_is_number(part) for part in parts):
        raise InvalidValue(f"{option} takes one number, or numbers separated by commas.")
    return float(parts[0]) if len(parts) == 1 else [float(part) for part in parts]


def table_of(data: list[str]) -> str | list[str]:
    """What `kveil.read` takes: one path, pattern or URL, or several."""
    return data[0] if len(data) == 1 else data


def is_array(data: Data) -> bool:
    """Whether columns have numbers and no names."""
    first = data[0] if isinstance(data, list) else data
    return str(first).lower().endswith((".npy", ".npz"))


def parse_delimiter(text: str | None) -> str | None:
    """One character; `tab` and `\\t` are a tab, which is hard to type."""
    return "\t" if text in ("tab", "\\t") else text


def parse_labels(text: str | None, data: Data) -> list[str | int] | None:
    """Columns separated by commas."""
    return None if text is None else [_label(name.strip(), data) for name in text.split(",")]


def parse_missing(text: str, data: Data) -> Any:
    """`middle`, `drop` or `mean`, or a JSON file: {"age": 40, ...}."""
    return _by_column("--missing", '{"age": 40}', text, data) if text.lower().endswith(".json") else text


def parse_categories(path: Path | None, data: Data) -> Any:
    """A JSON file of public levels: {"sex": ["female", "male"], ...}."""
    return None if path is None else _by_column("--categories", '{"sex": ["female", "male"]}', str(path), data)


def parse_label(text: str | None, data: Data) -> str | int | None:
    """One column."""
    return None if text is None else _label(text, data)


def parse_range(option: str, text: str | None) -> tuple[int, int] | None:
    """Two whole numbers separated by a comma."""
    parts = [] if text is None else text.split(",")
    if text is not None and not (len(parts) == 2 and all(part.strip().isdecimal() for part in parts)):
        raise InvalidValue(f"{option} takes LOW,HIGH: two whole numbers. Example: {option} 2,20")
    return None if text is None else (int(parts[0]), int(parts[1]))


def parse_clusters(text: str) -> int | str:
    """A number of clusters, or `auto`."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        pass
    raise InvalidValue("--k takes a whole number, or auto. Example: -k 8")


def _read_pairs(path: Path, names: tuple[str, ...] | None) -> list[Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        if names is None:
            raise InvalidValue("these columns have no names, so bounds must be a list of pairs in their order.")
        missing, unknown = [name for name in names if name not in data], [name for name in data if name not in names]
        if missing or unknown:
            raise InvalidValue(
                f"the bounds file must name exactly the columns in use. Missing: {missing or 'none'}. "
                f"Unknown: {unknown or 'none'}. Choose columns with --columns, or list levels of text with --categories."
            )
        data = [data[name] for name in names]
    if not isinstance(data, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, int | float) for x in pair) for pair in data
    ):
        raise InvalidValue('the bounds file must hold JSON: {"age": [0, 120], ...} or [[0, 120], ...], one pair per column.')
    return data


def _by_column(option: str, example: str, path: str, data: Data) -> dict[str | int, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidValue(f"{option} must name a file of JSON by column, such as {example}. {path} is not one.")
    return {_label(name, data): value for name, value in found.items()}


def _label(text: str, data: Data) -> str | int:
    """Columns have names, but in arrays, where they have numbers."""
    return int(text) if is_array(data) and text.isdecimal() else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
