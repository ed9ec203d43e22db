"""`kveil report`: a saved release as one HTML page, for whoever signs it off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kveil.cli.plot import DEGREES, GRAPH, XY, new_file, universe_of, write
from kveil.cli.saving import show_page
from kveil.errors import InvalidValue


def report(
    out: Annotated[Path, typer.Argument(metavar="RELEASE", help="folder of a saved release")],
    to: Annotated[Path | None, typer.Option("--out", "-o", help="the .html to write; default RELEASE.html")] = None,
    ledger: Annotated[Path | None, typer.Option(help="the ledger that paid: show its state and who asked, too")] = None,
    graph: GRAPH = None,
    xy: XY = None,
    degrees: DEGREES = False,
    force: Annotated[bool, typer.Option("--force", help="replace the file, if it exists")] = False,
    show: Annotated[bool, typer.Option("--open", help="open it in a browser")] = False,
) -> None:
    """One page that needs no network: promise, verdict, centres, pictures, budget and card of RELEASE.

    RELEASE is checked as by `kveil verify`; exit with 4, and no page, if a check fails.
    """
    from kveil import load
    from kveil.release.report import report as page
    from kveil.release.verify import check_good, signer

    if to is not None and to.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue("a report is a page in HTML. Give the path the suffix .html; a browser prints it as PDF.")
    release = load(out)
    check_good(out, ledger)
    universe = universe_of(release, graph, xy, degrees)
    place = new_file(to or Path(f"{out}.html"), force)
    write(place, page(release, ledger=ledger, signature=signer(out), universe=universe))
    shown = "\nIt also shows the ledger's budget, and who asked if stated." if ledger else ""
    typer.echo(f"Written to {place}. It shows what was released and may be shared as far as the release may.{shown}")
    if show:
        show_page(place)
