"""Where a release goes, and what is said of it once it is there."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import webbrowser
from pathlib import Path
from typing import Any

import typer

from kveil.cli.commands import COMMANDS
from kveil.cli.state import log, state
from kveil.cli.tables import show_table
from kveil.errors import InvalidValue

NEXT = {
    "report": "a page to hand over, with pictures",
    "plot": "a picture of the centres",
    "verdict": "whether it is any good",
    "guarantee": "every charge and assumption behind the promise",
}
BROKEN = "Or cells are no numbers, and count as missing: `kveil inspect` shows them, to whoever may see the rows."


def check_place(out: Path, force: bool) -> None:
    """Refuse a place where the release could not be saved, before any budget is spent."""
    from kveil.release.folder import check_replaceable
    from kveil.release.place import in_the_way

    if os.path.lexists(out):
        if not force:
            raise in_the_way(out)
        check_replaceable(out)
    place = out.absolute()
    trial = place.parent / f".{place.name}.{secrets.token_hex(6)}.new"  # the kind of name it is saved under at first
    try:
        trial.mkdir()
        trial.rmdir()
        why = None
    except OSError as error:
        why = error.strerror
    if why is not None:
        raise InvalidValue(
            f"a release cannot be saved at {out}: {why}. Nothing was drawn and nothing was charged. Make its folder first, or "
            "choose another place with -o."
        )


def signing_key(path: Path) -> Any:
    """The key that a release will be signed with; refused before any budget is spent."""
    from kveil import SigningKey

    return SigningKey.load(path)


def show_page(page: Path) -> None:
    """Open a page in a browser, or say that there is none."""
    if not webbrowser.open(page.resolve().as_uri()):
        log.warning("note: no browser could be opened. Open %s yourself.", page)


def summary(model: Any, out: Path) -> dict[str, Any]:
    """What a script wants to know: where it is and what was promised."""
    return {
        "release": str(out),
        "method": model.method_,
        "centers": model.release_.centers.tolist(),
        **({} if model.release_.names is None else {"names": list(model.release_.names)}),
        "weights": None if model.cluster_weights_ is None else model.cluster_weights_.tolist(),
        "errors": None if model.cluster_errors_ is None else model.cluster_errors_.tolist(),
        "verdict": model.verdict_.to_dict(),
        "notes": list(model.release_.notes),
        "features": None if model.release_.features is None else list(model.release_.features),
        "guarantee": json.loads(model.guarantee_.to_json()),
    }


def show_centers(release: Any, verdict: Any, out: Path) -> None:
    """The table of centres."""
    from kveil.release.shown import centers_table

    table = centers_table(release, verdict)
    show_table(table.header, table.rows)
    if table.left_out:
        typer.echo(f"{table.left_out} {out} has all of them.")


def tell(model: Any, out: Path) -> None:
    """Print what was found, what it is worth and what was promised, and what to type next; with --quiet the folder alone."""
    from kveil.release.words import promise

    if state.quiet:
        typer.echo(str(out))
        return
    release, verdict = model.release_, model.verdict_
    show_centers(release, verdict, out)
    for part in (_judged(release, verdict), "\n".join(_notes(release, verdict)), "\n".join(promise(release.guarantee))):
        if part:
            typer.echo(f"\n{part}")
    if state.verbose:
        typer.echo(f"\n{release.guarantee}")
    typer.echo(f"\n{_saved(model, out)}\n{next_steps(release, out)}")


def _judged(release: Any, verdict: Any) -> str:
    """The verdict; beside a fit, whose rows are at hand, also what else looks like noise."""
    is_noise = verdict.word == "noise" and release.n_features is not None
    return f"{verdict}\n{BROKEN}" if is_noise else str(verdict)


def _notes(release: Any, verdict: Any) -> list[str]:
    return [f"Note: {note}" for note in release.notes if note != verdict.note]


def _saved(model: Any, out: Path) -> str:
    release = model.release_
    k, d = len(release.centers), release.n_features
    what = f"{k} centres of {d} column{'s' * (d != 1)}" if d else f"{k} centres among {model.universe.n_points} points"
    alone = "" if release.receipt["ledger"] else " No ledger was named, so nobody adds this release to earlier ones."
    taken = state.taken()
    given = f" Options from {state.config}: {', '.join(taken)}." if taken else ""
    return f"Saved at {out}: {what} by the method {model.method_}.{alone}{given}"


def next_steps(release: Any, out: Path) -> str:
    """Commands that take this release, and what each is for."""
    can_be_drawn = release.n_features is not None or release.places is not None
    commands = [command for command in NEXT if command in COMMANDS and (command != "plot" or can_be_drawn)]
    lines = {f"kveil {command} {shlex.quote(str(out))}": NEXT[command] for command in commands}
    width = max(map(len, lines))
    return "Next:\n" + "\n".join(f"  {line:{width}}  {words}" for line, words in lines.items())
