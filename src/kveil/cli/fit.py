"""`kveil fit`: from a file to a saved release."""

from __future__ import annotations

import json
import math
import os
import secrets
import warnings
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli._options import (
    BY,
    DATA_NAME,
    PURPOSE,
    parse_bounds,
    parse_categories,
    parse_clusters,
    parse_label,
    parse_labels,
    parse_missing,
    parse_numbers,
    parse_range,
    progress_on_terminals,
    stated,
)
from kveil.cli.universe import check_graph_options, read_demand
from kveil.errors import BoundsRequired, InvalidValue, NoisyResultWarning, ScaleWarning, SourceError
from kveil.tuning import Spherical

MOSTLY_NOISE = 5  # an exit code


class Relation(StrEnum):
    add_remove = "add-remove"
    replace_one = "replace-one"


class Format(StrEnum):
    parquet = "parquet"
    csv = "csv"


class Scaling(StrEnum):
    bounds = "bounds"
    private = "private"


class FailOn(StrEnum):
    noise = "noise"


class Objective(StrEnum):
    k_means = "k-means"
    k_median = "k-median"


class Method(StrEnum):
    auto = "auto"
    tree = "tree"
    lloyd = "lloyd"
    grid = "grid"
    sample_aggregate = "sample-aggregate"
    mean = "mean"
    spherical = "spherical"
    candidates = "candidates"
    weiszfeld = "weiszfeld"
    counts = "counts"
    local_search = "local-search"


class Metric(StrEnum):
    euclidean = "euclidean"
    graph = "graph"
    cosine = "cosine"


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help=".csv (with header), .npz (array x), .npy, .parquet; with --metric graph lines `u v`, or `u v length`"
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the release; must not exist")],
    k: Annotated[str, typer.Option("--k", "-k", help="number of clusters, or auto: by noisy counts", metavar="K|auto")] = "8",
    k_range: Annotated[str | None, typer.Option(help="with -k auto: LOW,HIGH, default 2,20")] = None,
    epsilon: Annotated[float, typer.Option(help="privacy loss; smaller is more private")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 for a pure guarantee")] = 0.0,
    bounds: Annotated[str | None, typer.Option(help="LOW,HIGH or a JSON file of pairs; from public knowledge")] = None,
    center: Annotated[str | None, typer.Option(help="with --radius: centre of a public ball, default 0")] = None,
    radius: Annotated[float | None, typer.Option(help="radius of a public ball, instead of --bounds")] = None,
    objective: Annotated[
        Objective | None, typer.Option(help="squared distances, or distances; default k-means, on a graph k-median")
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(help="'cosine': by direction, without bounds; 'graph': DATA is a public edge list, people are in --demand"),
    ] = None,
    signed: Annotated[bool, typer.Option("--signed", help="with --method spherical: negative entries count, too")] = False,
    demand: Annotated[Path | None, typer.Option(help="with --metric graph: one vertex per line, or a table of them")] = None,
    truncate: Annotated[float | None, typer.Option(help="with --metric graph: public cap on distances")] = None,
    method: Annotated[
        Method, typer.Option(help="how; k-median: auto, tree, candidates or weiszfeld; on a graph counts or local-search")
    ] = Method.auto,
    n_steps: Annotated[int | None, typer.Option(help="Lloyd or Weiszfeld steps, or swaps; fixed beforehand")] = None,
    scaling: Annotated[
        Scaling | None,
        typer.Option(help="'bounds': every column counts as equally wide; 'private': by scales found for 15 % of the budget"),
    ] = None,
    missing: Annotated[
        str, typer.Option(help="missing cells: middle, drop, mean (with --scaling private), or a JSON file of public values")
    ] = "middle",
    categories: Annotated[Path | None, typer.Option(help='JSON file of public levels: {"sex": ["female", "male"]}')] = None,
    category_weight: Annotated[float, typer.Option(help="distance between two levels of a category")] = 1.0,
    public: Annotated[
        Path | None, typer.Option(help="PUBLIC rows with the same columns, to start from; never rows of DATA; not protected")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="names (or numbers, of arrays) with commas between; default all, and text in them counts as missing"),
    ] = None,
    person: Annotated[str | None, typer.Option(help="column of ids: protect people instead of records")] = None,
    max_rows_per_person: Annotated[int, typer.Option(help="rows of one person that count")] = 1,
    relation: Annotated[Relation, typer.Option(help="neighbouring tables")] = Relation.add_remove,
    no_privacy: Annotated[bool, typer.Option("--no-privacy", help="with --epsilon inf: no noise, no promise")] = False,
    ledger: Annotated[Path | None, typer.Option(help="budget to charge, from `kveil ledger init`")] = None,
    purpose: PURPOSE = None,
    data_name: DATA_NAME = None,
    by: BY = None,
    sign: Annotated[Path | None, typer.Option(help="sign the release with this key, from `kveil keys new`")] = None,
    format: Annotated[Format, typer.Option(help="of the centres")] = Format.parquet,
    force: Annotated[bool, typer.Option("--force", help="replace an older release at OUT")] = False,
    random_state: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="steers public choices, never noise")] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="'noise': exit with 5 if the result is mostly noise; it is saved")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Private cluster centres of DATA, saved with their guarantee at OUT."""
    on_graph = metric is Metric.graph
    goal = objective or (Objective.k_median if on_graph else Objective.k_means)
    if not on_graph and (demand is not None or truncate is not None):
        raise InvalidValue("--demand and --truncate belong to --metric graph, where DATA is a public edge list.")
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
    rows = demand or data
    chosen: dict[str, Any] = {
        "columns": parse_labels(columns, rows), "person": parse_label(person, rows), "max_rows_per_person": max_rows_per_person
    }  # fmt: skip
    if on_graph:
        source, domain = _on_graph(data, rows, truncate, goal, chosen)
    else:
        chosen |= {"missing": parse_missing(missing, data), "categories": parse_categories(categories, data)}
        check_cosine(metric, goal, bounds, center, radius, scaling)
        chosen |= {"category_weight": category_weight}
        source, domain = _in_space(data, bounds, center, radius, scaling, chosen, is_cosine=metric is Metric.cosine)
    model = model_of(Objective.k_median if on_graph else goal)(
        n_clusters, epsilon=epsilon, delta=delta, method=method.value, n_steps=n_steps, relation=relation.value, ledger=account,
        random_state=random_state, **domain, **({} if between is None else {"k_range": between}),
        **({"tuning": Spherical(signed=True)} if signed else {}),
    )  # fmt: skip
    shown = {} if public is None else {"public": _public(public, data, source, chosen, category_weight)}
    with progress_on_terminals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # notes of the release say both
        warnings.simplefilter("ignore", NoisyResultWarning)
        model.fit(source, **shown)
    model.release_ = replace(model.release_, purpose=purpose or "", data_name=data_name or "")
    model.release_.save(out, format=format.value, overwrite=force, sign=key)
    typer.echo(json.dumps(summary(model, out)) if as_json else words(model, out))
    if fail_on is FailOn.noise and model.verdict_.word == "noise":
        raise typer.Exit(MOSTLY_NOISE)


def _public(public: Path, data: Path, source: Any, chosen: dict[str, Any], category_weight: float) -> Any:
    """The public sample, read as the table is: with its columns, if these have names, and no ids of people."""
    from kveil import read

    if public.exists() and data.exists() and public.samefile(data):
        raise InvalidValue("--public is the table of the fit itself. A public sample is other rows, which anyone may see.")
    terms = {name: chosen[name] for name in ("columns", "missing", "categories")}
    if terms["columns"] is None and not terms["categories"] and source.names and public.suffix.lower() not in (".npy", ".npz"):
        terms["columns"] = list(source.names)
    try:
        return read(public, **terms, category_weight=category_weight)
    except SourceError as error:
        complaint = f"--public: {error}"
    raise SourceError(complaint)


Rows = tuple[Any, dict[str, Any]]  # a source, and the parameters that say where its rows are


def _in_space(
    data: Path, bounds: str | None, center: str | None, radius: float | None, scaling: Scaling | None, chosen: dict[str, Any],
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


def _on_graph(data: Path, demand: Path, truncate: float | None, goal: Objective, chosen: dict[str, Any]) -> Rows:
    from kveil import Graph

    graph = Graph.read(data, truncate=truncate)
    return read_demand(graph, demand, **chosen), {"universe": graph, "objective": goal.value}


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


def check_place(out: Path, force: bool) -> None:
    """Refuse a place where the release could not be saved, before any budget is spent."""
    from kveil.release.folder import check_replaceable
    from kveil.release.place import in_the_way

    if os.path.lexists(out):
        if not force:
            raise in_the_way(out)
        check_replaceable(out)
    place = out.absolute()
    trial = place.parent / f".{place.name}.{secrets.token_hex(6)}.new"  # the kind of name it is saved under at first
    try:
        trial.mkdir()
        trial.rmdir()
        why = None
    except OSError as error:
        why = error.strerror
    if why is not None:
        raise InvalidValue(
            f"a release cannot be saved at {out}: {why}. Nothing was drawn and nothing was charged. Make its folder first, or "
            "choose another place with -o."
        )


def signing_key(path: Path) -> Any:
    """The key that a release will be signed with; refused before any budget is spent."""
    from kveil import SigningKey

    return SigningKey.load(path)


def summary(model: Any, out: Path) -> dict[str, Any]:
    """What a script wants to know: where it is and what was promised."""
    return {
        "release": str(out),
        "method": model.method_,
        "centers": model.release_.centers.tolist(),
        **({} if model.release_.names is None else {"names": list(model.release_.names)}),
        "weights": None if model.cluster_weights_ is None else model.cluster_weights_.tolist(),
        "errors": None if model.cluster_errors_ is None else model.cluster_errors_.tolist(),
        "verdict": model.verdict_.to_dict(),
        "notes": list(model.release_.notes),
        "features": None if model.release_.features is None else list(model.release_.features),
        "guarantee": json.loads(model.guarantee_.to_json()),
    }


def words(model: Any, out: Path) -> str:
    k, d = len(model.release_.centers), model.release_.n_features
    what = f"{k} centres of {d} feature(s)" if d else f"{k} centres among {model.universe.n_points} points"
    called = "" if model.release_.names is None else f"\nVertices: {', '.join(model.release_.names)}"
    alone = "" if model.release_.receipt["ledger"] else " No ledger was named, so nobody adds this release to earlier ones."
    notes = [f"Note: {note}" for note in model.release_.notes if note != model.verdict_.note]
    parts = [
        f"{what} by {model.method_} saved at {out}.{alone}{called}",
        str(model.verdict_),
        "\n".join(notes),
        str(model.guarantee_),
    ]
    return "\n\n".join(part for part in parts if part)
