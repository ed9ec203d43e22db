"""`kveil compare`: methods side by side, on rows that may be looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_bounds, parse_labels, parse_numbers
from kveil.cli.fit import Objective, Relation, Scaling, model_of
from kveil.errors import BoundsRequired


def compare(
    data: Annotated[Path, typer.Argument(help="PUBLIC rows (.csv, .npz, .npy, .parquet), or the folder of a release")],
    k: Annotated[int, typer.Option("--k", "-k", help="number of clusters")] = 8,
    epsilon: Annotated[float, typer.Option(help="privacy loss; smaller is more private")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for a pure guarantee")] = 0.0,
    bounds: Annotated[str | None, typer.Option(help="LOW,HIGH or a JSON file of pairs; default, of a release: its own")] = None,
    center: Annotated[str | None, typer.Option(help="with --radius: centre of a public ball, default 0")] = None,
    radius: Annotated[float | None, typer.Option(help="radius of a public ball, instead of --bounds")] = None,
    scaling: Annotated[Scaling | None, typer.Option(help="'bounds': every column counts as equally wide")] = None,
    objective: Annotated[Objective, typer.Option(help="squared distances, or distances")] = Objective.k_means,
    methods: Annotated[str | None, typer.Option(help="names with commas between; default all")] = None,
    columns: Annotated[str | None, typer.Option(help="names (or numbers, of arrays) with commas between; default all")] = None,
    rows: Annotated[float | None, typer.Option(help="about how many rows the table will have; default as many as DATA")] = None,
    relation: Annotated[Relation, typer.Option(help="neighbouring tables")] = Relation.add_remove,
    runs: Annotated[int, typer.Option(min=1, help="fits of each method")] = 5,
    random_state: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="steers public choices, never noise")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Cost of every method over the cost without privacy, on PUBLIC rows or on the sample of a release. Charges nothing.

    Choosing a method or a parameter on private rows is itself a release, and no promise covers it.
    """
    from kveil import compare as compared
    from kveil import load, read

    shown: Any
    place: dict[str, Any] = {"center": parse_numbers("--center", center), "radius": radius}
    if (data / "release.json").exists():
        shown = load(data)
        place["bounds"] = parse_bounds(bounds, shown.features)
        if bounds is None and radius is None:
            place |= {name: shown.parameters.get(name) for name in ("center", "radius")}
            place["bounds"] = None if shown.parameters.get("bounds") is None else tuple(shown.parameters["bounds"])
            place |= {"metric": "cosine"} if shown.parameters.get("metric") == "cosine" else {}
    else:
        shown = read(data, columns=parse_labels(columns, data))
        if bounds is None and radius is None:
            raise BoundsRequired("--bounds is missing. Rows are clipped as those of the table will be: pass --bounds LOW,HIGH.")
        place["bounds"] = parse_bounds(bounds, shown.names)
    model = model_of(objective)(
        k, epsilon=epsilon, delta=delta, relation=relation.value, scaling=None if scaling is None else scaling.value, **place
    )
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    found = compared(model, shown, methods=names, rows=rows, n_runs=runs, random_state=random_state)
    typer.echo(json.dumps(found.to_dict()) if as_json else str(found))
