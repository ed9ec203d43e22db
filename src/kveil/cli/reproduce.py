"""`kveil reproduce`: published figures, drawn anew with calibrations that hold."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import bar_on_terminals
from kveil.errors import InvalidValue, MissingExtra

app = typer.Typer(no_args_is_help=True)


@app.callback()
def reproduce() -> None:
    """Figures of the papers that kveil builds on, with corrected calibrations."""


@app.command("highdim-figures")
def highdim_figures(
    data: Annotated[
        Path | None, typer.Option("--data", help="MNIST for figure 2c: .npz with an array x; public data only")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-highdim-figures"),
    quick: Annotated[bool, typer.Option("--quick", help="fewer rows, points and runs: about a minute")] = False,
    rows: Annotated[int | None, typer.Option(min=100, help="rows of every data set, at most")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="runs of every point; default 5, 2 with --quick")] = None,
    delta: Annotated[float, typer.Option(min=0, max=0.5, help="0 for pure guarantees")] = 1e-6,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Figure 2 (a, c, d) of the high-dimensional paper and a small comparison in 3 dimensions: plots and tables at OUT."""
    _check_new(out)
    svg = _drawing()
    from kveil.release.place import put_folder
    from kveil.research.highdim import QUICK, Size, panels, play, read_images
    from kveil.research.tables import as_csv, as_markdown, records

    skipped = [] if data else ["Figure 2c was skipped: it needs MNIST. Pass --data FILE, an .npz with the images as array x."]
    size = QUICK if quick else Size()
    size = replace(size, rows=rows or size.rows, small=min(rows or size.small, size.small), runs=runs or size.runs)
    drawn = panels(size, delta, None if data is None else read_images(data))
    with bar_on_terminals() as update:
        outcomes = [play(panel, update) for panel in drawn]
    files = {f"figure-{outcome.panel.name}.svg": svg(outcome) for outcome in outcomes}
    report = as_markdown(outcomes, skipped)
    files |= {"results.csv": as_csv(outcomes).encode(), "results.md": report.encode()}
    put_folder(out, files, None)
    if as_json:
        left_out = {outcome.panel.name: outcome.left_out for outcome in outcomes}
        told = {"out": str(out), "files": sorted(files), "results": records(outcomes), "left_out": left_out, "skipped": skipped}
        typer.echo(json.dumps(told))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


@app.command("local-table")
def local_table(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-local-table"),
    quick: Annotated[bool, typer.Option("--quick", help="two shapes, 50 000 people: under a minute")] = False,
    people: Annotated[int | None, typer.Option(min=100, help="people of every campaign; default 100 000 and 1 000 000")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="campaigns of every cell; default 4, 2 with --quick")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """k-means when nobody is trusted: cost of every local protocol over k, columns, people and epsilon, at OUT."""
    _check_new(out)
    _drawing()
    from kveil.release.place import put_folder
    from kveil.research.local_report import as_csv, as_markdown, records, svg
    from kveil.research.local_table import QUICK, Size, play

    size = QUICK if quick else Size()
    size = replace(size, people=(people,) if people else size.people, runs=runs or size.runs)
    with bar_on_terminals() as update:
        cells = play(size, update)
    files = {f"local-{n}.svg": svg(cells, n) for n in size.people}
    report = as_markdown(cells)
    files |= {"results.csv": as_csv(cells).encode(), "results.md": report.encode()}
    put_folder(out, files, None)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": sorted(files), "results": records(cells)}))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


def _drawing() -> Any:
    """What draws a figure, asked for before anything is computed."""
    try:
        from kveil.research.figure import svg

        return svg
    except ImportError:
        missing = MissingExtra('the figures need matplotlib. Nothing was computed. Install it: pip install "kveil[report]"')
    raise missing


def _check_new(out: Path) -> None:
    """Refuse a place where nothing could be saved, before minutes are spent."""
    if os.path.lexists(out):
        raise InvalidValue(f"there is something at {out} already, and it would be overwritten. Choose another place with -o.")
    place = out.absolute()
    trial = place.parent / f".{place.name}.{secrets.token_hex(6)}.new"  # the kind of name it is saved under at first
    why = None
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        why = error.strerror
    if why is not None:
        raise InvalidValue(
            f"the figures cannot be saved at {out}: {why}. Make its folder first, or choose another place with -o."
        )
