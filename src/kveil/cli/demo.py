"""`kveil demo`: the whole story on a made-up city, from a table to a report that somebody can sign off."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli import city
from kveil.cli._options import progress_on_terminals
from kveil.cli.saving import show_page, summary
from kveil.cli.state import state
from kveil.errors import InvalidValue, MissingExtra

K, EPSILON, BUDGET = 8, 1.0, 2.0
PURPOSE, DATA_NAME = "where to place bus stops", "riders of a made-up city"
ABOUT = 30_000  # riders, as the city says of itself; a plan takes a public figure


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to make; never overwritten")] = Path("kveil-demo"),
    show: Annotated[bool, typer.Option("--open", help="open the report in a browser")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Where do riders of a made-up city start? Plan, fit, say what it cost and what was promised, and write a report."""
    from kveil import Ledger, PrivateKMeans, plan
    from kveil.release.picture import text_picture
    from kveil.release.report import report
    from kveil.release.verify import signer

    def say(text: str) -> None:
        if not (as_json or state.quiet):
            typer.echo(text)

    place = _new_folder(out)
    if place != out:
        say(f"{out} is taken, so this goes to {place}.")
    table, rows = place / "riders.csv", city.riders()
    _write(table, rows)
    say(f"1. A made-up city: {table}, one row per rider, where their trip starts. None of them is real.")
    ledger = Ledger.create(place / "ledger.db", "city", BUDGET, relation="add-remove")
    stating = ledger.stating(purpose=PURPOSE, data_name=DATA_NAME)
    model = PrivateKMeans(K, epsilon=EPSILON, bounds=city.BOUNDS, ledger=stating, random_state=0)
    say(f"   The budget for all releases about them: epsilon {BUDGET:g}.\n")
    say(f"2. Before a row is read: is epsilon {EPSILON:g} enough for about {ABOUT} riders and {K} centres?")
    say(f"{_indented(_plan_words(plan(model, ABOUT, 2)))}\n")
    with progress_on_terminals():
        model.fit(table)
    release = model.release_
    release.save(place / "release")
    left_out = _drawn(release, place / "centers.svg")
    report(release, place / "report.html", ledger=ledger, signature=signer(place / "release"))
    if as_json:
        typer.echo(json.dumps({**summary(model, place / "release"), "report": str(place / "report.html")}))
        return
    say(f"3. The fit: {K} private centres, larger glyphs for more riders.\n\n{text_picture(release)}\n\n{release.verdict()}\n")
    say(f"4. What privacy cost: {_cost(model, rows)}\n")
    say(f"5. What was promised:\n\n{model.guarantee_}\n\nLeft on the ledger: {ledger.remaining()}.\n")
    say(f"6. To hand over: {place / 'report.html'}, one page with promise, verdict, centres and picture. Open it in a browser.")
    say(f"   Saved: {place / 'release'} (centres, card and guarantee); it may be shared.{left_out}")
    say(f"   Not to be shared, were the riders real: {table}.\n")
    say(f"Ask for another release, which takes what is left:\n  {shlex.join(map(str, _again(place, table)))}")
    if state.quiet:
        typer.echo(str(place / "release"))
    if show:
        show_page(place / "report.html")


def _plan_words(found: Any) -> str:
    """The lines of a plan that tell how large the noise will be."""
    lines = str(found).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Noise"))
    return "\n".join(line for line in lines[first + 1 : first + 5] if line.strip())


def _drawn(release: Any, path: Path) -> str:
    """What to say of the picture: where it is, or why it is left out."""
    try:
        release.plot(path)
    except MissingExtra:
        return '\n   The picture is left out, here and in the report: matplotlib is missing. pip install "kveil[report]"'
    return f" A picture: {path}."


def _cost(model: Any, rows: Any) -> str:
    """The cost over that of k-means without privacy: a function of all rows, so of real ones it is not for printing."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances_argmin_min

    best = KMeans(K, n_init=4, random_state=0).fit(rows)
    costs = [(pairwise_distances_argmin_min(rows, found.cluster_centers_)[1] ** 2).sum() for found in (model, best)]
    ratio = costs[0] / costs[1]
    return (
        f"the mean squared distance to the nearest centre is {ratio:.3f} times that of k-means without privacy.\n"
        "   This comparison reads the rows and is not private. It is shown because these riders are made up; for real rows ask\n"
        "   `kveil evaluate`, which pays for a noisy answer."
    )


def _again(place: Path, table: Path) -> list[Any]:
    """A command that spends the rest of the budget; what was typed works again."""
    door = "kveil" if shutil.which("kveil") else sys.argv[0]
    bounds = place / "bounds.json"
    return [
        door,
        "fit",
        table,
        "--k",
        3,
        "--epsilon",
        1,
        "--bounds",
        bounds,
        "--ledger",
        place / "ledger.db",
        "-o",
        place / "three",
    ]


def _new_folder(out: Path) -> Path:
    """A folder made at `out`, or at the first of out-2, out-3, ... that does not exist."""
    out = out / "kveil-demo" if out.name in ("", "..") else out
    why: str | None = "it and its numbered neighbours exist already"
    for number in range(1, 1000):
        place = out if number == 1 else out.with_name(f"{out.name}-{number}")
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:  # also if another demo was quicker
            continue
        except OSError as error:
            why = error.strerror
            break
    raise InvalidValue(f"the demo cannot make a folder at {out}: {why}. Choose another place with -o.")


def _write(table: Path, rows: Any) -> None:
    """The riders, and beside them the public bounds of the city, for the command that is suggested."""
    import numpy as np

    np.savetxt(table, rows, fmt="%.3f", delimiter=",", header=",".join(city.NAMES), comments="")
    bounds = dict(zip(city.NAMES, map(list, city.BOUNDS), strict=True))
    (table.parent / "bounds.json").write_text(json.dumps(bounds) + "\n", encoding="utf-8")


def _indented(text: str) -> str:
    return "\n".join(f"   {line.strip()}" for line in text.splitlines())
