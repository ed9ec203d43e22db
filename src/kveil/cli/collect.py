"""`kveil collect`: what to expect of a campaign in which nobody is trusted, a rehearsal of one, and the real one."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kveil.cli import answer, campaigns, collect_demo, collect_keys, serve
from kveil.cli._options import bar_on_terminals, parse_labels, parse_numbers
from kveil.errors import BoundsRequired, InvalidValue

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.add_typer(collect_keys.app, name="keys", help="The key that devices pin, and the one that follows it.")
app.command("init")(campaigns.init)
app.command("serve")(serve.serve)
app.command("status")(campaigns.status)
app.command("close")(campaigns.close)
app.command("next")(campaigns.following)
app.command("result")(campaigns.result)
app.command("end")(campaigns.end)
app.command("delete")(campaigns.delete)
app.command("codes")(campaigns.codes)
app.command("answer")(answer.answer)
app.command("demo")(collect_demo.demo)

MOST_DEVICES, MADE_UP = 100_000, 2000  # a rehearsal takes milliseconds for each


class Protocol(StrEnum):
    auto = "auto"
    grid = "grid"
    zoom = "zoom"
    refine = "refine"
    lae = "lae"
    lma = "lma"


class Preset(StrEnum):
    lite = "lite"
    paper = "paper"


@app.command("plan")
def plan(
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="people, about")],
    columns: Annotated[int, typer.Option("--columns", "-d", min=1, help="numbers in a point")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="number of clusters")] = 8,
    epsilon: Annotated[str, typer.Option(help="of each person: a number, or a fraction p/q")] = "1",
    protocol: Annotated[Protocol, typer.Option(help="how to ask; auto chooses by these numbers")] = Protocol.auto,
    preset: Annotated[Preset, typer.Option(help="paper: the constants of the paper, for --protocol lae")] = Preset.lite,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say what a campaign would cost and find, from public numbers alone, and when there are too few people."""
    from kveil.collect.campaign import exact_epsilon
    from kveil.collect.forecast import as_table
    from kveil.collect.forecast import plan as forecast

    expected = forecast(n, k, columns, exact_epsilon(epsilon), protocol.value, preset.value)
    if as_json:
        typer.echo(json.dumps(_plain(expected)))
        return
    for name, text in as_table(expected):
        typer.echo(f"{name}: {text}")


@app.command("simulate")
def simulate(
    data: Annotated[
        Path | None, typer.Argument(help=".csv, .npz, .npy or .parquet, one row per person; default: made-up people")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="number of clusters")] = 3,
    epsilon: Annotated[str, typer.Option(help="of each person: a number, or a fraction p/q")] = "4",
    center: Annotated[str | None, typer.Option(help="centre of the public ball that holds the points, default 0")] = None,
    radius: Annotated[float | None, typer.Option(help="its radius, from public knowledge")] = None,
    protocol: Annotated[str, typer.Option(help="auto, grid, zoom, refine, lae, lae-ball, lae-paper or lma")] = "auto",
    columns: Annotated[str | None, typer.Option(help="columns to use, separated by commas")] = None,
    people: Annotated[
        int | None, typer.Option(min=1, max=MOST_DEVICES, help="made-up people, if there is no DATA; default 2000")
    ] = None,
    storage: Annotated[Path | None, typer.Option(help="SQLite file for the collector; default: memory")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Rehearse a campaign: every row becomes a real client with a ledger, and reports go through a real collector.

    This process sees all rows, so it protects nobody; use it to see what a deployment does, on public or made-up data.
    """
    from kveil.collect.campaign import Campaign
    from kveil.collect.rehearse import rehearse

    if data is not None and people is not None:
        raise InvalidValue("--people makes up people, and DATA has its own. Leave one of them out.")
    if data is None and columns is not None:
        raise InvalidValue("--columns chooses among those of DATA, and there is none. Name a file, or leave it out.")
    if data is None:
        points, radius = _made_up(people or MADE_UP, k), 1.0 if radius is None else radius
    else:
        points = _points(data, columns)
    if radius is None:
        raise BoundsRequired(
            "--radius is missing. Devices clip to a public ball: pass --radius (and --center), not from the rows."
        )
    campaign = Campaign("rehearsal", len(points), k, epsilon, _middle(center, points.shape[1]), radius, protocol)
    start = time.perf_counter()
    with bar_on_terminals() as update:
        played = rehearse(points, campaign, storage=storage, progress=update)
    seconds, expected = time.perf_counter() - start, campaign.plan()
    if as_json:
        told = {"plan": _plain(expected), "answered": played.answered, "seconds": seconds}
        typer.echo(json.dumps({**told, "result": json.loads(played.result.to_json())}))
        return
    _tell(expected, played, seconds)


def _tell(expected: Any, played: Any, seconds: float) -> None:
    from kveil.collect.forecast import as_table

    typer.echo("A rehearsal: one process held all points. What was to be expected:")
    for name, text in as_table(expected):
        typer.echo(f"  {name}: {text}")
    counts = ", ".join(str(n) for n in played.answered)
    typer.echo(f"\n{sum(played.answered)} devices sent 22 bytes each ({counts} per round), in {seconds:.1f} s.")
    typer.echo(str(played.result))


def _plain(expected: Any) -> dict[str, Any]:
    terms = {**vars(expected.terms), "epsilon": str(expected.terms.epsilon)}
    return {**vars(expected), "terms": terms, "ratio": expected.ratio}


def _middle(center: str | None, n_columns: int) -> list[float]:
    """The centre of the ball: one number for all columns, or one for each."""
    given = parse_numbers("--center", center)
    numbers = given if isinstance(given, list) else [given or 0.0] * n_columns
    if len(numbers) != n_columns:
        raise InvalidValue("--center takes one number, or one for each column, separated by commas.")
    return numbers


def _points(data: Path, columns: str | None) -> Any:
    """All rows of a file; a rehearsal holds them."""
    import numpy as np

    from kveil.source import read

    source = read(data, columns=parse_labels(columns, data))
    rows = np.vstack([np.empty((0, source.n_columns)), *(np.asarray(block, dtype=np.float64) for block in source.raw_blocks())])
    if not 1 <= len(rows) <= MOST_DEVICES:
        raise InvalidValue(
            f"a rehearsal takes 1 to {MOST_DEVICES} rows, because every one becomes a client. For more use LocalKMeans, which "
            "plays the same law much faster."
        )
    return rows


def _made_up(people: int, k: int) -> Any:
    """Points of nobody around k places of the unit disc."""
    import numpy as np

    rng = np.random.default_rng(2026)  # made-up people, not noise for privacy
    angles = 2 * np.pi * (np.arange(people) % k) / k
    return 0.6 * np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(0, 0.08, (people, 2))
