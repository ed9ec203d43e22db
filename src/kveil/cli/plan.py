"""`kveil plan`: what to expect of a fit before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import parse_bounds, parse_labels, parse_numbers
from kveil.cli.choices import METHODS, Method, Metric, Objective, Relation, Scaling
from kveil.cli.fit import check_cosine, check_method, model_of
from kveil.cli.panels import ADVANCED, AS_JSON, DELTA, EPSILON, FIND, OUTPUT, PRIVACY, ROWS, SEED
from kveil.errors import BoundsRequired, InvalidValue


def plan(
    rows: Annotated[float, typer.Option(help="about how many rows the table has: a public figure", rich_help_panel=ROWS)],
    columns: Annotated[
        int | None, typer.Option("--columns", "-d", min=1, help="number of columns; or give --sample", rich_help_panel=ROWS)
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="number of clusters", rich_help_panel=FIND)] = 8,
    epsilon: EPSILON = 1.0,
    delta: DELTA = 0.0,
    sample: Annotated[
        Path | None, typer.Option(help="PUBLIC rows to try it on; never rows of the table itself", rich_help_panel=ROWS)
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="the PUBLIC sample that `kveil fit --public` will be given", rich_help_panel=ROWS)
    ] = None,
    sample_columns: Annotated[
        str | None, typer.Option(help="columns of the sample, separated by commas; default all", rich_help_panel=ROWS)
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(help="with --sample: LOW,HIGH or a JSON file of pairs", rich_help_panel=PRIVACY)
    ] = None,
    center: Annotated[
        str | None, typer.Option(help="with --radius: centre of a public ball, default 0", rich_help_panel=PRIVACY)
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="radius of a public ball, instead of --bounds", rich_help_panel=PRIVACY)
    ] = None,
    max_rows_per_person: Annotated[
        int, typer.Option(help="rows per person that count, if people are protected", rich_help_panel=PRIVACY)
    ] = 1,
    relation: Annotated[Relation, typer.Option(help="neighbouring tables", rich_help_panel=PRIVACY)] = Relation.add_remove,
    scaling: Annotated[
        Scaling | None, typer.Option(help="bounds: every column counts as equally wide", rich_help_panel=ROWS)
    ] = None,
    metric: Annotated[Metric | None, typer.Option(help="cosine: by direction, without bounds", rich_help_panel=FIND)] = None,
    objective: Annotated[
        Objective, typer.Option(help="squared distances, or distances", rich_help_panel=FIND)
    ] = Objective.k_means,
    for_ratio: Annotated[
        float | None, typer.Option(help="with --sample: which epsilon gives this cost ratio", rich_help_panel=FIND)
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="draw it into this .svg or .png", rich_help_panel=OUTPUT)] = None,
    as_json: AS_JSON = False,
    method: Annotated[
        Method,
        typer.Option(
            help=f"one of {METHODS}; figures without a sample are for the tree", metavar="NAME", rich_help_panel=ADVANCED
        ),
    ] = Method.auto,
    runs: Annotated[int, typer.Option(min=1, help="with --sample: fits at each epsilon", rich_help_panel=ADVANCED)] = 3,
    random_state: SEED = None,
) -> None:
    """See how large the noise of a fit will be and, on a PUBLIC sample, what privacy will cost. Charges nothing.

    --rows and --sample must be public. A sample taken from the private table would publish what it shows.
    """
    from kveil import PrivacyUnit, read
    from kveil import plan as planned

    check_method(objective, method, False)
    if metric is Metric.graph:
        raise InvalidValue("a plan is for rows with coordinates, not for a graph. Leave out --metric, or say --metric cosine.")
    check_cosine(metric, objective, bounds, center, radius, scaling)
    if sample is None and public is None and for_ratio is not None:
        raise InvalidValue("--for-ratio needs --sample or --public: a ratio of costs is found by trying public rows.")
    source, start = (
        None if rows_at is None else read(rows_at, columns=parse_labels(sample_columns, rows_at)) for rows_at in (sample, public)
    )
    known = source or start
    if known is not None and bounds is None and radius is None and metric is not Metric.cosine:
        raise BoundsRequired("--bounds is missing. A sample is clipped as the table will be: pass --bounds LOW,HIGH or --radius.")
    model = model_of(objective)(
        k, epsilon=epsilon, delta=delta, method=method.value, relation=relation.value,
        bounds=parse_bounds(bounds, None if known is None else known.names), center=parse_numbers("--center", center),
        radius=radius, scaling=None if scaling is None else scaling.value,
        **({"metric": metric.value} if metric is Metric.cosine else {}),
    )  # fmt: skip
    unit = PrivacyUnit() if max_rows_per_person == 1 else PrivacyUnit("person", max_rows_per_person, "id")
    found = planned(model, rows, columns, sample=source, public=start, n_runs=runs, random_state=random_state, unit=unit)
    if picture is not None:
        found.save(picture)
    if as_json:
        typer.echo(json.dumps({**found.to_dict(), **_answer(found, for_ratio)}))
        return
    typer.echo(str(found))
    if for_ratio is not None:
        typer.echo(_words(found, for_ratio))


def _answer(found: Any, ratio: float | None) -> dict[str, Any]:
    return {} if ratio is None else {"for_ratio": ratio, "epsilon_for": found.epsilon_for(ratio)}


def _words(found: Any, ratio: float) -> str:
    epsilon, ends = found.epsilon_for(ratio), (found.trials[0], found.trials[-1])
    if epsilon is not None:
        return f"Ratio {ratio:g}: epsilon {epsilon:.3g}."
    if ends[0].ratio < ratio:
        return f"Ratio {ratio:g}: less than epsilon {ends[0].epsilon:.3g}, the least that was tried, is enough."
    return f"Ratio {ratio:g}: not reached up to epsilon {ends[1].epsilon:.3g}."
