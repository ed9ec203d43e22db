"""`kveil compare`: methods side by side, on rows that may be looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_bounds, parse_delimiter, parse_labels, parse_numbers, table_of
from kveil.cli.choices import Objective, Relation, Scaling
from kveil.cli.fit import model_of
from kveil.cli.panels import ADVANCED, AS_JSON, COLUMNS, DELIMITER, DELTA, EPSILON, FILES, FIND, PRIVACY, ROWS, SEED
from kveil.errors import BoundsRequired


def compare(
    data: Annotated[
        list[str],
        typer.Argument(help=f"PUBLIC rows, or the folder of a release. Rows: {FILES}", metavar="DATA", show_default=False),
    ],
    k: Annotated[int, typer.Option("--k", "-k", help="number of clusters", rich_help_panel=FIND)] = 8,
    objective: Annotated[
        Objective, typer.Option(help="squared distances, or distances", rich_help_panel=FIND)
    ] = Objective.k_means,
    methods: Annotated[str | None, typer.Option(help="names separated by commas; default all", rich_help_panel=FIND)] = None,
    epsilon: EPSILON = 1.0,
    delta: DELTA = 0.0,
    bounds: Annotated[
        str | None, typer.Option(help="LOW,HIGH or a JSON file of pairs; for a release, default its own", rich_help_panel=PRIVACY)
    ] = None,
    center: Annotated[
        str | None, typer.Option(help="with --radius: centre of a public ball, default 0", rich_help_panel=PRIVACY)
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="radius of a public ball, instead of --bounds", rich_help_panel=PRIVACY)
    ] = None,
    relation: Annotated[Relation, typer.Option(help="neighbouring tables", rich_help_panel=PRIVACY)] = Relation.add_remove,
    columns: COLUMNS = None,
    scaling: Annotated[
        Scaling | None, typer.Option(help="bounds: every column counts as equally wide", rich_help_panel=ROWS)
    ] = None,
    rows: Annotated[
        float | None, typer.Option(help="about how many rows the table will have; default as many as DATA", rich_help_panel=ROWS)
    ] = None,
    delimiter: DELIMITER = None,
    as_json: AS_JSON = False,
    runs: Annotated[int, typer.Option(min=1, help="fits per method", rich_help_panel=ADVANCED)] = 5,
    random_state: SEED = None,
) -> None:
    """Compare the cost of methods with the cost without privacy, on PUBLIC rows or the sample of a release. Charges nothing.

    Choosing a method or a parameter on private rows is itself a release, and no promise covers it.
    """
    from kveil import compare as compared
    from kveil import load, read

    shown: Any
    place: dict[str, Any] = {"center": parse_numbers("--center", center), "radius": radius}
    table = table_of(data)
    if isinstance(table, str) and (Path(table) / "release.json").exists():
        shown = load(table)
        place["bounds"] = parse_bounds(bounds, shown.features)
        if bounds is None and radius is None:
            place |= {name: shown.parameters.get(name) for name in ("center", "radius")}
            place["bounds"] = None if shown.parameters.get("bounds") is None else tuple(shown.parameters["bounds"])
            place |= {"metric": "cosine"} if shown.parameters.get("metric") == "cosine" else {}
    else:
        shown = read(table, columns=parse_labels(columns, table), delimiter=parse_delimiter(delimiter))
        if bounds is None and radius is None:
            raise BoundsRequired("--bounds is missing. Rows are clipped as those of the table will be: pass --bounds LOW,HIGH.")
        place["bounds"] = parse_bounds(bounds, shown.names)
    model = model_of(objective)(
        k, epsilon=epsilon, delta=delta, relation=relation.value, scaling=None if scaling is None else scaling.value, **place
    )
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    found = compared(model, shown, methods=names, rows=rows, n_runs=runs, random_state=random_state)
    typer.echo(json.dumps(found.to_dict()) if as_json else str(found))
