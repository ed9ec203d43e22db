"""`kveil reproduce`: published figures, drawn anew with calibrations that hold."""

from __future__ import annotations

import json
import os
import secrets
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil._pictures import import_matplotlib
from kveil.cli._options import bar_on_terminals
from kveil.errors import InvalidValue, MissingExtra, NoisyResultWarning

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def reproduce(context: typer.Context) -> None:
    """Figures of the papers that kveil builds on, with corrected calibrations."""
    context.with_resource(warnings.catch_warnings())
    warnings.simplefilter("ignore", NoisyResultWarning)  # some of what is drawn is noise, and the figures show it


@app.command("highdim-figures")
def highdim_figures(
    data: Annotated[
        Path | None, typer.Option("--data", help="MNIST for figures 2c and 2d: .npz with an array x; public data only")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-highdim-figures"),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="2a, 2c, 2d, settings or small; once per figure; default all of them")
    ] = None,
    sulq_steps: Annotated[
        int, typer.Option(min=0, help="of SuLQ k-means after the paper's method, as a line of its own; 0 leaves it out")
    ] = 8,
    quick: Annotated[bool, typer.Option("--quick", help="fewer rows, points and runs: about a minute")] = False,
    rows: Annotated[int | None, typer.Option(min=100, help="rows of every data set, at most")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="runs of every point; default 5, 2 with --quick")] = None,
    delta: Annotated[float, typer.Option(min=0, max=0.5, help="0 for pure guarantees")] = 1e-6,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Figure 2 (a, c, d) of the high-dimensional paper, its settings, and a comparison in 3 dimensions: plots, tables at OUT."""
    _check_new(out)
    svg = _drawing()
    from kveil.kernel.loss import check_word
    from kveil.release.place import put_folder
    from kveil.research.highdim import FIGURES, QUICK, Size, panels, play, read_images
    from kveil.research.records import as_csv
    from kveil.research.tables import as_markdown, records
    from kveil.research.verdicts import verdicts

    for name in only or ():
        check_word("--only", name, FIGURES)
    skipped = [] if data else ["2c, 2d and settings were skipped: they need MNIST. Pass --data FILE, an .npz with images as x."]
    size = QUICK if quick else Size()
    size = replace(size, rows=rows or size.rows, small=min(rows or size.small, size.small), runs=runs or size.runs)
    drawn = panels(size, delta, None if data is None else read_images(data), sulq_steps, only or FIGURES)
    with bar_on_terminals() as update:
        outcomes = [play(panel, update) for panel in drawn]
    files = {f"figure-{outcome.panel.name}.svg": svg(outcome) for outcome in outcomes}
    report = as_markdown(outcomes, skipped)
    files |= {"results.csv": as_csv(records(outcomes)).encode(), "results.md": report.encode()}
    put_folder(out, files, None)
    if as_json:
        told: dict[str, Any] = {"out": str(out), "files": sorted(files), "results": records(outcomes), "skipped": skipped}
        told["left_out"] = {outcome.panel.name: outcome.left_out for outcome in outcomes}
        typer.echo(json.dumps(told | {"verdicts": [verdict._asdict() for verdict in verdicts(outcomes)]}))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


@app.command("hst-figures")
def hst_figures(
    data: Annotated[
        Path | None, typer.Option("--data", help="MNIST for the images: .npz with arrays x and y; public data only")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-hst-figures"),
    quick: Annotated[bool, typer.Option("--quick", help="fewer points, rows, k and runs: under a minute")] = False,
    points: Annotated[int | None, typer.Option(min=200, help="points of every universe, at most")] = None,
    rows: Annotated[int | None, typer.Option(min=20, help="rows of every demand; default 500, 200 with --quick")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="runs of every point; default 10, 2 with --quick")] = None,
    steps: Annotated[int | None, typer.Option(min=5, max=200, help="swaps of the paper's private searches; default 20")] = None,
    epsilon: Annotated[float, typer.Option(min=0.01, max=100, help="of every private fit")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Figures 2 to 6 of the HST paper and the running time of its earlier version: plots and tables at OUT."""
    _check_new(out)
    svg = _drawing("kveil.research.hst_figure")
    from kveil.release.place import put_folder
    from kveil.research import graph_figure, hst_walk_figure
    from kveil.research.hst_figure import times_svg
    from kveil.research.hst_figures import QUICK, Size, play
    from kveil.research.hst_report import as_markdown, records, timing_records, verdict_records
    from kveil.research.hst_times import timings
    from kveil.research.median_cases import cases, read_digits, timed_universes
    from kveil.research.records import as_csv

    skipped = [] if data else ["The images were skipped: they need MNIST. Pass --data FILE, an .npz with images x and digits y."]
    images = None if data is None else read_digits(data)
    size = (QUICK if quick else Size()).within(points, rows, runs, steps)
    with bar_on_terminals() as update:
        universes = cases(size.points, size.vertices, images)
        outcomes = [outcome for case in universes for outcome in play(case, size, epsilon, update)]
        spent = timings(timed_universes(images), size, update)
    drawn = {f"figure-{outcome.name}-{outcome.kind}.svg": svg(outcome) for outcome in outcomes}
    drawn |= {"figure-3.svg": graph_figure.svg(size.vertices)}
    drawn |= {"figure-5.svg": hst_walk_figure.svg(outcomes, "steps"), "figure-6.svg": hst_walk_figure.svg(outcomes, "best")}
    drawn |= {f"running-time-{name}.svg": times_svg(spent, name) for name in dict.fromkeys(timing.universe for timing in spent)}
    report, results, of_time = as_markdown(outcomes, spent, skipped), records(outcomes), timing_records(spent)
    tell = {"results.csv": as_csv(results), "running-time.csv": as_csv(of_time), "results.md": report}
    files = drawn | {name: text.encode() for name, text in tell.items()}
    put_folder(out, files, None)
    if as_json:
        told = {"out": str(out), "files": sorted(files), "results": results, "running_time": of_time, "skipped": skipped}
        typer.echo(json.dumps(told | {"verdicts": verdict_records(outcomes)}))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


@app.command("kvariates-figures")
def kvariates_figures(
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", help="places for the table, once a file: .npz with an array x of longitudes and latitudes"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-kvariates-figures"),
    quick: Annotated[bool, typer.Option("--quick", help="fewer rows, points and runs: about half a minute")] = False,
    rows: Annotated[int | None, typer.Option(min=100, help="rows of every data set, at most")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="runs of every entry; default 8, 2 with --quick")] = None,
    epsilon: Annotated[float, typer.Option(min=0.01, max=100, help="of every private entry of the table")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Figure 3 and Table 2 of the k-variates++ paper, in shape, and its bounds, measured: plots and tables at OUT."""
    _check_new(out)
    svg = _drawing("kveil.research.kvariates_figure")
    from kveil.release.place import put_folder
    from kveil.research.kvariates_report import as_markdown, entry_records, point_records, theorem_records
    from kveil.research.peers import QUICK, RIVALS, Crowd, figure_3
    from kveil.research.records import as_csv
    from kveil.research.seed_table import cases, read_places, table_2
    from kveil.research.theorems import measured

    skipped = [] if data else ["No places were given. Pass --data FILE, an .npz with longitudes and latitudes as array x."]
    places = {path.stem: read_places(path) for path in data or []}
    crowd = QUICK if quick else Crowd()
    crowd = replace(crowd, rows=min(rows or crowd.rows, crowd.rows))
    tables = cases(rows or (5000 if quick else 200_000), runs or (2 if quick else 8), places)
    with bar_on_terminals() as update:
        points = figure_3(crowd, update)
        entries = [entry for case in tables for entry in table_2(case, epsilon, update)]
        claims = measured(10 if quick else 100, 50 if quick else 200, update)
    report = as_markdown(crowd, points, entries, claims, epsilon, skipped)
    of_points, of_entries, of_claims = point_records(points), entry_records(entries), theorem_records(claims)
    drawn = dict(zip(("figure-3a.svg", "figure-3b.svg"), (svg(points, crowd, rival) for rival in RIVALS), strict=True))
    tables_of = {"figure-3.csv": of_points, "table-2.csv": of_entries, "theorems.csv": of_claims}
    tell = {name: as_csv(records) for name, records in tables_of.items()} | {"results.md": report}
    files = drawn | {name: text.encode() for name, text in tell.items()}
    put_folder(out, files, None)
    if as_json:
        told = {"out": str(out), "files": sorted(files), "figure_3": of_points, "table_2": of_entries, "theorems": of_claims}
        typer.echo(json.dumps(told | {"skipped": skipped}))
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
    from kveil.research.local_report import as_markdown, records, svg
    from kveil.research.local_table import QUICK, Size, play
    from kveil.research.records import as_csv

    size = QUICK if quick else Size()
    size = replace(size, people=(people,) if people else size.people, runs=runs or size.runs)
    with bar_on_terminals() as update:
        cells = play(size, update)
    files = {f"local-{n}.svg": svg(cells, n) for n in size.people}
    report = as_markdown(cells)
    files |= {"results.csv": as_csv(records(cells)).encode(), "results.md": report.encode()}
    put_folder(out, files, None)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": sorted(files), "results": records(cells)}))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


@app.command("local-slopes")
def local_slopes(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; must not exist")] = Path("kveil-local-slopes"),
    quick: Annotated[bool, typer.Option("--quick", help="two numbers of people and of clusters: some seconds")] = False,
    runs: Annotated[int | None, typer.Option(min=2, help="campaigns of every cell; default 8, 2 with --quick")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """How the error of local protocols grows with people and clusters, beside Table 1 of the paper on LAE, at OUT."""
    _check_new(out)
    _drawing()
    from kveil.release.place import put_folder
    from kveil.research.local_slopes import QUICK, Size, measure
    from kveil.research.records import as_csv
    from kveil.research.slopes_report import as_markdown, records, slopes, svg

    size = QUICK if quick else Size()
    size = replace(size, runs=runs or size.runs)
    with bar_on_terminals() as update:
        cells = measure(size, update)
    report = as_markdown(cells, size.epsilon)
    files = {"slopes.svg": svg(cells, size.epsilon), "slopes.csv": as_csv(slopes(cells)).encode()}
    files |= {"results.csv": as_csv(records(cells)).encode(), "results.md": report.encode()}
    put_folder(out, files, None)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": sorted(files), "slopes": slopes(cells), "results": records(cells)}))
        return
    typer.echo(report)
    typer.echo(f"Saved at {out}: {', '.join(sorted(files))}.")


def _drawing(module: str = "kveil.research.figure") -> Any:
    """What draws a figure, asked for before anything is computed."""
    try:
        import_matplotlib()
        return import_module(module).svg
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
