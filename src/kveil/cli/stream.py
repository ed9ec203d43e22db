"""`kveil stream`: private centres of rows that come in batches, with all that was seen kept in a file between them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_bounds, parse_delimiter, parse_labels, progress_on_terminals
from kveil.cli.choices import Format
from kveil.cli.panels import ADVANCED, AS_JSON, COLUMNS, DELIMITER, FIND, LEDGER, OUTPUT, PRIVACY, ROWS, SEED
from kveil.cli.saving import check_place, signing_key, summary, tell
from kveil.cli.state import state as told
from kveil.errors import InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)

STATE = Annotated[Path, typer.Argument(help="file that keeps what was seen; as secret as the rows")]
BUDGET = Annotated[Path | None, typer.Option(help="budget that `finish` charges; the same in every call", rich_help_panel=LEDGER)]


@app.command("add")
def add(
    state: STATE,
    data: Annotated[
        list[str], typer.Argument(help="files, each of them a batch; - is CSV from standard input", metavar="DATA")
    ],
    k: Annotated[int | None, typer.Option("--k", "-k", help="number of clusters; default 8", rich_help_panel=FIND)] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="privacy loss of `finish`; needed for the first batch", rich_help_panel=PRIVACY)
    ] = None,
    delta: Annotated[float | None, typer.Option(help="0 for a pure guarantee, the default", rich_help_panel=PRIVACY)] = None,
    bounds: Annotated[
        str | None,
        typer.Option(help="LOW,HIGH or a JSON file of pairs, from public knowledge; first batch", rich_help_panel=PRIVACY),
    ] = None,
    ledger: BUDGET = None,
    columns: COLUMNS = None,
    delimiter: DELIMITER = None,
    source: Annotated[
        str | None, typer.Option(help="where these batches come from, with --seq", rich_help_panel=ROWS)
    ] = None,
    seq: Annotated[
        int | None,
        typer.Option(min=0, help="number of the first batch; batches that came already are skipped", rich_help_panel=ROWS),
    ] = None,
    as_json: AS_JSON = False,
    memory: Annotated[
        int | None, typer.Option(help="cells that are counted; default 10000; for the first batch", rich_help_panel=ADVANCED)
    ] = None,
    random_state: SEED = None,
) -> None:  # fmt: skip
    """Add batches of rows to the stream in STATE, which the first call makes. Nothing is released and nothing is charged.

    Every file is a batch. Without --seq a batch that is added twice counts twice, and the promise does not hold: number them.
    """
    from kveil import StreamKMeans, read
    from kveil.source.places import places

    begun = {"n_clusters": k, "epsilon": epsilon, "delta": delta, "memory": memory, "random_state": random_state}
    is_first = not state.exists()
    with _tables(state, data) as tables:
        places(tables)  # refuses a file that is named twice: it would be two batches
        sources = [read(table, columns=parse_labels(columns, table), delimiter=parse_delimiter(delimiter)) for table in tables]
        if is_first:
            _check_place(state)
            if epsilon is None:
                raise InvalidValue("--epsilon is missing. The first batch begins the stream, and fixes what it will promise.")
            given: dict[str, Any] = {name: value for name, value in begun.items() if value is not None}
            model = StreamKMeans(**given, bounds=parse_bounds(bounds, sources[0].names), ledger=ledger)
        else:
            _check_begun(bounds, begun)
            model = StreamKMeans.resume(state, ledger=ledger)
        with progress_on_terminals():
            model.partial_fit(iter(sources), source=source, seq=seq)
        model.save(state)
    batches = {name: [list(pair) for pair in pairs] for name, pairs in model.taken_.items()}
    if as_json:
        typer.echo(json.dumps({"state": str(state), "batches": batches, **told.tell_config()}))
    elif not told.quiet:
        n = sum(last - first + 1 for pairs in model.taken_.values() for first, last in pairs)
        typer.echo(
            f"{state} has seen {n} batch{'es' * (n != 1)}. It is as secret as the rows. `kveil stream finish` releases centres."
        )


@app.command("finish")
def finish(
    state: STATE,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the release; must not exist", rich_help_panel=OUTPUT)],
    ledger: BUDGET = None,
    sign: Annotated[
        Path | None, typer.Option(help="sign the release with this key, from `kveil keys new`", rich_help_panel=LEDGER)
    ] = None,
    go_on: Annotated[
        bool,
        typer.Option("--go-on", help="keep STATE, for more batches and another charge; else it is deleted", rich_help_panel=FIND),
    ] = False,
    format: Annotated[Format, typer.Option(help="format of the file of centres", rich_help_panel=OUTPUT)] = Format.parquet,
    force: Annotated[bool, typer.Option("--force", help="replace an older release at OUT", rich_help_panel=OUTPUT)] = False,
    as_json: AS_JSON = False,
) -> None:
    """Release private centres of all batches that STATE has seen, charge the budget, and delete STATE."""
    from kveil import StreamKMeans

    check_place(out, force)
    key = None if sign is None else signing_key(sign)
    if not state.exists():
        raise InvalidValue(f"there is no stream at {state}. `kveil stream add` begins one.")
    model = StreamKMeans.resume(state, ledger=ledger)
    with progress_on_terminals():
        model.finish(go_on=go_on)
    if go_on:
        model.save(state)  # before OUT is there: the next release must know of this one, also if the command is ended here
    model.release_.save(out, format=format.value, overwrite=force, sign=key)
    if not go_on:
        state.unlink()  # what was released is in OUT, and what was seen is as secret as the rows
    fitted = _Fitted(model)
    if as_json:
        typer.echo(json.dumps({**summary(fitted, out), **told.tell_config()}))
    else:
        tell(fitted, out)


class _Fitted:
    """A finished stream with the names of a fitted table."""

    def __init__(self, model: Any) -> None:
        self.release_ = model.release_
        self.method_, self.verdict_, self.guarantee_ = self.release_.method["used"], self.release_.verdict(), model.guarantee_
        self.cluster_weights_, self.cluster_errors_ = self.release_.weights, self.release_.errors


@contextmanager
def _tables(state: Path, data: list[str]) -> Iterator[list[str]]:
    """The files that were named. Standard input is copied to a file beside STATE, which only its owner may read, and deleted."""
    if "-" not in data:
        yield data
        return
    if data.count("-") > 1:
        raise InvalidValue("standard input can be read once. Name - once.")
    folder = tempfile.mkdtemp(prefix=".kveil-", dir=state.absolute().parent)
    try:
        copy = os.path.join(folder, "stdin.csv")
        with open(copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [copy if each == "-" else each for each in data]
    finally:
        shutil.rmtree(folder)


def _check_begun(bounds: str | None, begun: dict[str, Any]) -> None:
    given = [name for name, value in {**begun, "bounds": bounds}.items() if value is not None]
    if given:
        words = {"n_clusters": "k"}
        named = ", ".join(f"--{words.get(name, name).replace('_', '-')}" for name in given)
        raise InvalidValue(f"this stream was begun already, and its promise is fixed. Leave out {named}.")


def _check_place(state: Path) -> None:
    folder = state.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidValue(f"a stream cannot be kept at {state}: its folder cannot be written. Choose another place.")
