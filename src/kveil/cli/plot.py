"""`kveil plot`: a picture of a saved release, or its centres for a map; or what a ledger has spent."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_labels
from kveil.cli.universe import read_graph
from kveil.errors import InvalidValue

MAPS = (".geojson", ".json")
GRAPH = Annotated[Path | None, typer.Option(help="the public edge list of the fit, to draw its edges, too")]
XY = Annotated[Path | None, typer.Option(help="with --graph: coordinates of its vertices, if it holds none")]
DEGREES = Annotated[bool, typer.Option("--degrees", help="with --graph: coordinates are longitude, latitude")]


class Theme(StrEnum):
    light = "light"
    dark = "dark"
    auto = "auto"


def plot(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a saved release; or a ledger: what it has spent")],
    to: Annotated[Path | None, typer.Option("--out", "-o", help=".svg, .png or .geojson to write; default RELEASE.svg")] = None,
    theme: Annotated[Theme, typer.Option(help="'auto': an SVG that follows the reader's system")] = Theme.light,
    level: Annotated[float, typer.Option(help="probability that an ellipse holds the noise in a centre")] = 0.95,
    columns: Annotated[str | None, typer.Option(help="one or two columns, with a comma between: a map of these")] = None,
    graph: GRAPH = None,
    xy: XY = None,
    degrees: DEGREES = False,
    force: Annotated[bool, typer.Option("--force", help="replace the file, if it exists")] = False,
) -> None:
    """Draw RELEASE: where its centres are, how far noise may have moved them, and what was promised.

    Of a ledger, draw how much of its budget was spent.
    """
    from kveil import load

    if out.is_file():
        _draw_ledger(out, to, theme, force, is_map=any(given is not None for given in (columns, graph, xy)) or degrees)
        return
    release = load(out)
    place = new_file(to or Path(f"{out}.svg"), force)
    universe = universe_of(release, graph, xy, degrees)
    chosen = parse_labels(columns, Path("x.csv")) if release.features else parse_labels(columns, Path("x.npy"))
    if place.suffix.lower() in MAPS:
        write(place, json.dumps(_map(release, universe, chosen), ensure_ascii=False, indent=1) + "\n")
    else:
        picture = tuple(chosen) if chosen else None
        written(place, lambda: release.plot(place, theme=theme.value, level=level, columns=picture, universe=universe))
    typer.echo(f"Drawn into {place}. It shows what was released and may be shared as far as the release may.")


def _draw_ledger(db: Path, to: Path | None, theme: Theme, force: bool, *, is_map: bool) -> None:
    """What has been spent of a budget, as SVG: it needs no matplotlib."""
    from kveil import Ledger
    from kveil.filing.spending import alone, spending
    from kveil.release.look import DARK, LIGHT

    told = spending(Ledger.open(db))
    place = to or Path(f"{db}.svg")
    if is_map:
        raise InvalidValue("--columns, --graph, --xy and --degrees are about releases, and this is a ledger. Leave them out.")
    if place.suffix.lower() != ".svg":
        raise InvalidValue("what a ledger has spent is drawn as SVG. Give the path the suffix .svg.")
    if not told.days:
        raise InvalidValue(f'nothing was spent on ledger "{told.name}" yet, so there is nothing to draw.')
    light, dark = (f"color:{look.ink};background:{look.paper}" for look in (LIGHT, DARK))
    chosen = {Theme.light: (light, light), Theme.dark: (dark, dark), Theme.auto: (light, dark)}[theme]
    write(new_file(place, force), alone([told], *chosen))
    typer.echo(f"Drawn into {place}. It shows how much of the budget was spent, and is for whoever may see the ledger.")


def universe_of(release: Any, graph: Path | None, xy: Path | None, degrees: bool) -> Any:
    """The public graph that is drawn behind the centres, if one was named."""
    from kveil.release.picture import is_geographic

    if graph is None and (degrees or xy is not None):
        raise InvalidValue("--xy and --degrees are about the vertices of --graph EDGES. Name the edge list, too.")
    return None if graph is None else read_graph(graph, None, xy, degrees=degrees or is_geographic(release))


def _map(release: Any, universe: Any, columns: Any) -> Any:
    from kveil.release.plot import on_universe

    shown = release if universe is None else on_universe(release, universe)
    longitude, latitude = columns if columns and len(columns) == 2 else (None, None)
    return shown.to_geojson(longitude, latitude)


def new_file(path: Path, force: bool) -> Path:
    """A place for a file, which must not exist unless it may be replaced."""
    if path.is_dir() or (path.exists() and not force):
        raise InvalidValue(f"{path} exists already, and writing would destroy it. Choose another name with -o, or pass --force.")
    return path


def write(path: Path, text: str) -> None:
    """Text into a file; an error in words if it cannot be."""
    written(path, lambda: path.write_text(text, encoding="utf-8"))


def written(path: Path, action: Any) -> None:
    """Do what writes the file; an error in words if it cannot be."""
    try:
        action()
        return
    except OSError as error:
        why = error.strerror
    raise InvalidValue(f"{path} cannot be written: {why}. Choose another place with -o.")
