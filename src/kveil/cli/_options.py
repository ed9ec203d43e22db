"""Texts of the command line turned into parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from kveil.errors import InvalidValue
from kveil.progress import Listener, listen

PURPOSE = Annotated[str | None, typer.Option(help="what it is for: for the ledger and the card")]
DATA_NAME = Annotated[str | None, typer.Option(help="what the data is called: for the ledger and the card")]
LEDGER_PURPOSE = Annotated[str | None, typer.Option(help="what it is for: for the ledger")]  # of what makes no card
LEDGER_DATA_NAME = Annotated[str | None, typer.Option(help="what the data is called: for the ledger")]
BY = Annotated[str | None, typer.Option(help="who asked: for the ledger alone")]


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
        raise InvalidValue(f"--bounds takes LOW,HIGH or a JSON file, and there is no file {text!r}. Example: --bounds 0,100")
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


def parse_labels(text: str | None, data: Path) -> list[str | int] | None:
    """Columns separated by commas."""
    return None if text is None else [_label(name.strip(), data) for name in text.split(",")]


def parse_missing(text: str, data: Path) -> Any:
    """`middle`, `drop` or `mean`, or a JSON file: {"age": 40, ...}."""
    return _by_column("--missing", '{"age": 40}', text, data) if text.lower().endswith(".json") else text


def parse_categories(path: Path | None, data: Path) -> Any:
    """A JSON file of public levels: {"sex": ["female", "male"], ...}."""
    return None if path is None else _by_column("--categories", '{"sex": ["female", "male"]}', str(path), data)


def parse_label(text: str | None, data: Path) -> str | int | None:
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


@contextmanager
def progress_on_terminals() -> Iterator[None]:
    """A bar of a fit's public steps on stderr, if a person is watching."""
    with bar_on_terminals() as update, listen(update):
        yield


@contextmanager
def bar_on_terminals() -> Iterator[Listener]:
    """What moves a bar on stderr, if a person is watching; otherwise it moves nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda label, number, total: None
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"), console=console
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda label, number, total: bar.update(task, description=label, completed=number, total=total)


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


def _by_column(option: str, example: str, path: str, data: Path) -> dict[str | int, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidValue(f"{option} must name a file of JSON by column, such as {example}. {path} is not one.")
    return {_label(name, data): value for name, value in found.items()}


def _label(text: str, data: Path) -> str | int:
    """Columns have names, but in arrays, where they have numbers."""
    return int(text) if data.suffix.lower() in (".npy", ".npz") and text.isdecimal() else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
