"""`kveil audit`: attack the promise of a model, ours or another library's."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli.choices import Relation
from kveil.errors import InvalidValue

VIOLATED = 4  # an exit code


def audit(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="names of kveil's own models (see --list), or MODULE:NAME of an estimator or function"),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="what it promises; our own models are asked for it")] = 1.0,
    delta: Annotated[float, typer.Option(help="for MODULE:NAME: what it promises")] = 0.0,
    relation: Annotated[Relation, typer.Option(help="for MODULE:NAME: neighbouring tables")] = Relation.add_remove,
    columns: Annotated[int, typer.Option(min=1, help="for MODULE:NAME: columns of the tables, each from -1 to 1")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="fits of each model, over all tables")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0, help="time for each model")] = float("inf"),
    workers: Annotated[int, typer.Option(min=1, help="processes")] = 1,
    confidence: Annotated[float, typer.Option(help="of the verdict")] = 0.999,
    html: Annotated[Path | None, typer.Option(help="write a page with pictures into this file")] = None,
    show: Annotated[bool, typer.Option("--list", help="list the names of kveil's own models and exit")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON; a list, of several models")] = False,
) -> None:
    """Fit tiny neighbouring tables many times, and bound the epsilon that is really spent from below; exit with 4 if too large.

    No table of yours is read and no ledger is charged.
    """
    from kveil.auditing.catalogue import SUBJECTS
    from kveil.auditing.report import to_html

    if show:
        typer.echo("\n".join(SUBJECTS))
        return
    if not models:
        raise InvalidValue("which model? Name one or more of `kveil audit --list`, or MODULE:NAME of an estimator.")
    subjects = [(name, _subject(name, delta, relation.value, columns)) for name in models]
    found = []
    for name, subject in subjects:
        found.append(_checked(name, subject, epsilon, runs, seconds, workers, confidence))
        if not as_json:
            typer.echo(str(found[-1]))
    if html is not None:
        html.write_text(to_html(found), encoding="utf-8")
    if as_json:
        told = [verdict.to_dict() for verdict in found]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told))
    if any(verdict.is_violated for verdict in found):
        raise typer.Exit(VIOLATED)


def _subject(name: str, delta: float, relation: Any, columns: int) -> Any:
    """A model of ours by name, or whatever stands at MODULE:NAME."""
    from kveil.auditing.catalogue import SUBJECTS, Subject
    from kveil.auditing.neighbours import worst_cases

    if name in SUBJECTS:
        return SUBJECTS[name]()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InvalidValue(f"{name!r} is no model of kveil's own. See `kveil audit --list`, or pass MODULE:NAME.")
    sys.path.insert(0, "")  # as `python -m` does: a module may lie in this folder
    try:
        model = getattr(import_module(module), attribute)
    except (ImportError, AttributeError):
        model = None
    finally:
        sys.path.remove("")
    if model is None:
        raise InvalidValue(
            f"there is no {attribute!r} in a module {module!r} that can be imported here. For an estimator `model` in "
            "my_models.py, go to the folder of that file and pass my_models:model."
        )
    return Subject(lambda epsilon: model, worst_cases([-1.0] * columns, [1.0] * columns, relation), delta, relation)


def _checked(name: str, subject: Any, epsilon: float, runs: int, seconds: float, workers: int, confidence: float) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    from kveil.auditing import check

    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task(name, total=None)
        return check(
            subject.made(epsilon), epsilon=epsilon, delta=subject.delta, relation=subject.relation, pairs=subject.pairs,
            runs=runs, seconds=seconds, workers=workers, confidence=confidence, name=name,
            told=lambda made, asked: progress.update(bar, completed=made, total=asked),
        )  # fmt: skip
