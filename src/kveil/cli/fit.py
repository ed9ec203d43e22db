"""`kveil fit`: from a table to a saved release."""

from __future__ import annotations

import json
import logging
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    DATA_NAME,
    PURPOSE,
    Data,
    is_array,
    parse_bounds,
    parse_categories,
    parse_clusters,
    parse_delimiter,
    parse_label,
    parse_labels,
    parse_missing,
    parse_numbers,
    parse_range,
    progress_on_terminals,
    stated,
    table_of,
)
from kveil.cli.choices import METHODS, FailOn, Format, Method, Metric, Objective, Relation, Scaling
from kveil.cli.panels import (
    ADVANCED,
    AS_JSON,
    COLUMNS,
    DATA,
    DELIMITER,
    DELTA,
    EPSILON,
    FIND,
    LEDGER,
    MAX_ROWS,
    OUTPUT,
    PERSON,
    PRIVACY,
    ROWS,
    SEED,
)
from kveil.cli.saving import check_place as check_place
from kveil.cli.saving import signing_key as signing_key
from kveil.cli.saving import summary as summary
from kveil.cli.saving import tell
from kveil.cli.state import state
from kveil.cli.universe import check_graph_options, read_demand, read_graph
from kveil.errors import BoundsRequired, InvalidValue, KveilError, NoisyResultWarning, ScaleWarning, SourceError
from kveil.tuning import Spherical

MOSTLY_NOISE = 5  # an exit code

log = logging.getLogger("kveil.cli")


def fit(
    data: DATA,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the release; must not exist", rich_help_panel=OUTPUT)],
    k: Annotated[
        str, typer.Option("--k", "-k", help="number of clusters, or auto", metavar="K|auto", rich_help_panel=FIND)
    ] = "8",
    k_range: Annotated[str | None, typer.Option(help="with -k auto: LOW,HIGH, default 2,20", rich_help_panel=FIND)] = None,
    objective: Annotated[
        Objective | None,
        typer.Option(help="squared distances, or distances; default k-means, on a graph k-median", rich_help_panel=FIND),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="cosine: by direction, without bounds; graph: DATA is a public edge list, people are in --demand",
            rich_help_panel=FIND,
        ),
    ] = None,
    demand: Annotated[
        Path | None, typer.Option(help="with --metric graph: one vertex per line, or a table of them", rich_help_panel=FIND)
    ] = None,
    truncate: Annotated[
        float | None, typer.Option(help="with --metric graph: public cap on distances", rich_help_panel=FIND)
    ] = None,
    xy: Annotated[
        Path | None,
        typer.Option(
            help="with --metric graph: public coordinates of the vertices, lines `vertex x y` or .npy; --demand may be positions",
            rich_help_panel=FIND,
        ),
    ] = None,
    degrees: Annotated[
        bool, typer.Option("--degrees", help="with --metric graph: coordinates are longitude, latitude", rich_help_panel=FIND)
    ] = False,
    epsilon: EPSILON = 1.0,
    delta: DELTA = 0.0,
    bounds: Annotated[
        str | None, typer.Option(help="LOW,HIGH or a JSON file of pairs, from public knowledge", rich_help_panel=PRIVACY)
    ] = None,
    center: Annotated[
        str | None, typer.Option(help="with --radius: centre of a public ball, default 0", rich_help_panel=PRIVACY)
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="radius of a public ball, instead of --bounds", rich_help_panel=PRIVACY)
    ] = None,
    person: PERSON = None,
    max_rows_per_person: MAX_ROWS = 1,
    relation: Annotated[
        Relation, typer.Option(help="neighbouring tables: one record more or less, or another one", rich_help_panel=PRIVACY)
    ] = Relation.add_remove,
    no_privacy: Annotated[
        bool, typer.Option("--no-privacy", help="with --epsilon inf: no noise and no promise", rich_help_panel=PRIVACY)
    ] = False,
    columns: COLUMNS = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option(
            help="bounds: every column counts as equally wide; private: by scales found for 15 % of the budget",
            rich_help_panel=ROWS,
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="missing cells: middle, drop, mean (with --scaling private), or a JSON file of public values",
            rich_help_panel=ROWS,
        ),
    ] = "middle",
    categories: Annotated[
        Path | None, typer.Option(help='JSON file of public levels: {"sex": ["female", "male"]}', rich_help_panel=ROWS)
    ] = None,
    category_weight: Annotated[float, typer.Option(help="distance between two levels of a category", rich_help_panel=ROWS)] = 1.0,
    delimiter: DELIMITER = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="PUBLIC rows with the same columns, to start from. Never rows of DATA; they are not protected",
            rich_help_panel=ROWS,
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="budget to charge, from `kveil ledger init`", rich_help_panel=LEDGER)
    ] = None,
    purpose: PURPOSE = None,
    data_name: DATA_NAME = None,
    by: BY = None,
    sign: Annotated[
        Path | None, typer.Option(help="sign the release with this key, from `kveil keys new`", rich_help_panel=LEDGER)
    ] = None,
    format: Annotated[Format, typer.Option(help="format of the file of centres", rich_help_panel=OUTPUT)] = Format.parquet,
    force: Annotated[bool, typer.Option("--force", help="replace an older release at OUT", rich_help_panel=OUTPUT)] = False,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="noise: exit with 5 if the result is mostly noise; it is saved", rich_help_panel=OUTPUT)
    ] = None,
    as_json: AS_JSON = False,
    method: Annotated[
        Method,
        typer.Option(
            help=f"one of {METHODS}. For k-median: auto, tree, candidates or weiszfeld; "
            "on a graph: auto, counts or local-search",
            metavar="NAME",
            rich_help_panel=ADVANCED,
        ),
    ] = Method.auto,
    n_steps: Annotated[
        int | None, typer.Option(help="Lloyd or Weiszfeld steps, or swaps; fixed beforehand", rich_help_panel=ADVANCED)
    ] = None,
    signed: Annotated[
        bool, typer.Option("--signed", help="with --method spherical: negative entries count, too", rich_help_panel=ADVANCED)
    ] = False,
    random_state: SEED = None,
) -> None:  # fmt: skip
    """Find private cluster centres of DATA, and save them with their guarantee at OUT.

    Prints the centres with their errors, the verdict and the promise; --verbose adds every charge and assumption.
    """
    table = table_of(data)
    on_graph = metric is Metric.graph
    goal = objective or (Objective.k_median if on_graph else Objective.k_means)
    if not on_graph and (degrees or any(option is not None for option in (demand, truncate, xy))):
        raise InvalidValue("--demand, --truncate, --xy and --degrees belong to --metric graph, where DATA is a public edge list.")
    if on_graph:
        check_graph_options(demand, bounds, center, radius, scaling)
        if categories is not None or missing != "middle" or public is not None:
            raise InvalidValue("a graph has points, and no columns. Leave out --categories, --missing and --public.")
    if math.isinf(epsilon) and not no_privacy:
        raise InvalidValue("an infinite epsilon adds no noise and promises nothing. If that is meant, say --no-privacy.")
    if no_privacy and not math.isinf(epsilon):
        raise InvalidValue("--no-privacy goes with --epsilon inf: a finite epsilon adds noise. Leave out one of the two.")
    check_method(goal, method, on_graph)
    if signed and method is not Method.spherical:
        raise InvalidValue("--signed is for --method spherical, which reads negative entries as 0 without it. Name both.")
    n_clusters, between = parse_clusters(k), parse_range("--k-range", k_range)
    if (n_clusters == "auto" or between) and (goal is not Objective.k_means or on_graph):
        raise InvalidValue("-k auto and --k-range are for --objective k-means, not on a graph. Pass a number of clusters.")
    if between and n_clusters != "auto":
        raise InvalidValue("--k-range is what -k auto chooses from. Leave it out, or say -k auto.")
    check_place(out, force)
    key, account = None if sign is None else signing_key(sign), stated(ledger, purpose, data_name, by)
    rows: Data = demand or table
    chosen: dict[str, Any] = {
        "columns": parse_labels(columns, rows), "person": parse_label(person, rows), "max_rows_per_person": max_rows_per_person
    }  # fmt: skip
    if on_graph:
        graph = read_graph(table, truncate, xy, degrees=degrees)
        source, domain = read_demand(graph, Path(str(rows)), **chosen), {"universe": graph, "objective": goal.value}
    else:
        chosen |= {"missing": parse_missing(missing, table), "categories": parse_categories(categories, table)}
        check_cosine(metric, goal, bounds, center, radius, scaling)
        chosen |= {"category_weight": category_weight, "delimiter": parse_delimiter(delimiter)}
        source, domain = _in_space(table, bounds, center, radius, scaling, chosen, is_cosine=metric is Metric.cosine)
    model = model_of(Objective.k_median if on_graph else goal)(
        n_clusters, epsilon=epsilon, delta=delta, method=method.value, n_steps=n_steps, relation=relation.value, ledger=account,
        random_state=random_state, **domain, **({} if between is None else {"k_range": between}),
        **({"tuning": Spherical(signed=True)} if signed else {}),
    )  # fmt: skip
    shown = {} if public is None else {"public": _public(public, table, source, chosen)}
    log.info("%s: %s columns, protects %s", _called(table), source.n_columns if not on_graph else "no", _unit_of(source))
    _fitted(model, source, shown)
    log.info("method %s, because %s", model.method_, model.release_.method["why"])
    model.release_ = replace(model.release_, purpose=purpose or "", data_name=data_name or "")
    model.release_.save(out, format=format.value, overwrite=force, sign=key)
    if as_json:
        typer.echo(json.dumps({**summary(model, out), **state.tell_config()}))
    else:
        tell(model, out)
    if fail_on is FailOn.noise and model.verdict_.word == "noise":
        raise typer.Exit(MOSTLY_NOISE)


def _fitted(model: Any, source: Any, shown: dict[str, Any]) -> None:
    """Fit. Warnings are notes of the release; if there will be none, they go with the error."""
    with progress_on_terminals(), warnings.catch_warnings(record=True) as heard:
        for kind in (ScaleWarning, NoisyResultWarning):
            warnings.simplefilter("always", kind)
        try:
            model.fit(source, **shown)
        except KveilError as error:
            for warning in heard:
                if issubclass(warning.category, ScaleWarning | NoisyResultWarning):
                    error.add_note(str(warning.message))
            raise


def _called(table: Data) -> str:
    from kveil.source.places import called

    return ", ".join(map(called, table)) if isinstance(table, list) else called(table)


def _unit_of(source: Any) -> str:
    return str(getattr(source, "unit", "one record"))


def _public(public: Path, data: Data, source: Any, chosen: dict[str, Any]) -> Any:
    """The public sample, read as the table is: with its columns, if these have names, and no ids of people."""
    from kveil import read
    from kveil.source.places import have_one_in_common

    if public.exists() and have_one_in_common(public, data):
        raise InvalidValue("--public is the table of the fit itself. A public sample is other rows, which anyone may see.")
    terms = {name: chosen[name] for name in ("columns", "missing", "categories", "category_weight")}
    if terms["columns"] is None and not terms["categories"] and source.names and not is_array(public):
        terms["columns"] = list(source.names)
    try:
        return read(public, **terms)
    except SourceError as error:
        complaint = f"--public: {error}"
    raise SourceError(complaint)


Rows = tuple[Any, dict[str, Any]]  # a source, and the parameters that say where its rows are


def _in_space(
    data: Data, bounds: str | None, center: str | None, radius: float | None, scaling: Scaling | None, chosen: dict[str, Any],
    *, is_cosine: bool,
) -> Rows:  # fmt: skip
    from kveil import read
    from kveil.source.base import blocks_of

    source = read(data, **chosen)
    if is_cosine:
        return source, {"metric": "cosine"}
    levels = {place for block in blocks_of(source) for place in range(block.first, block.stop)}
    is_number = [place not in levels for place in range(source.n_columns)]
    names = None if source.names is None else tuple(name for name, own in zip(source.names, is_number, strict=True) if own)
    if bounds is None and radius is None and any(is_number):
        raise BoundsRequired(
            "--bounds is missing. Taking the range from the data would publish its extremes exactly. Pass --bounds LOW,HIGH or a "
            "JSON file, or --radius, from public knowledge; `kveil bounds` searches for a charge."
        )
    place = {"bounds": parse_bounds(bounds, names), "center": parse_numbers("--center", center), "radius": radius}
    return source, {**place, **({"scaling": scaling.value} if scaling else {})}


def check_cosine(metric: Metric | None, goal: Objective, *domain: Any) -> None:
    """Refuse what directions have no use for."""
    if metric is not Metric.cosine:
        return
    if goal is not Objective.k_means:
        raise InvalidValue("--metric cosine is for --objective k-means. Leave out one of the two.")
    if any(value is not None for value in domain):
        raise InvalidValue("--metric cosine makes every row unit. Leave out --bounds, --center, --radius and --scaling.")


def check_method(objective: Objective, method: Method, on_graph: bool) -> None:
    """Refuse a method of another problem, and say which there are."""
    from kveil.models import private_kmeans, private_kmedian

    of_rows = private_kmedian.METHODS if objective is Objective.k_median else private_kmeans.METHODS
    able = ("auto", *(private_kmedian.UNIVERSE_METHODS if on_graph else of_rows))
    if method.value not in able:
        given = "--metric graph" if on_graph else f"--objective {objective.value}"
        raise InvalidValue(f"--method {method.value} is not for {given}. Use one of {', '.join(able)}.")


def model_of(objective: Objective) -> Any:
    """The estimator of an objective."""
    from kveil import PrivateKMeans, PrivateKMedian

    return PrivateKMedian if objective is Objective.k_median else PrivateKMeans
