"""The numbers of a reproduction as CSV, as Markdown, and for JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kveil.research.contest import NOT_PRIVATE, Cell
from kveil.research.highdim import Outcome
from kveil.research.verdicts import verdict_table

NOTICE = (
    "Drawn by kveil with corrected calibrations and fresh noise: none of these numbers is the paper's "
    "own. Every private fit has its own guarantee, but costs are exact statistics of the rows: not for data about people."
)


def records(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One flat record a cell: where, who, the mean cost of a row with its deviation, over non-private k-means++, and the time."""
    return [_record(outcome, cell) for outcome in outcomes for cell in outcome.cells]


def as_markdown(outcomes: Sequence[Outcome], skipped: Sequence[str]) -> str:
    """A table per figure: one line per method, one column per k or epsilon, cells "mean ± standard error"; then who is lower."""
    parts = [f"# High-dimensional figures\n\n{NOTICE}\n"]
    for outcome in outcomes:
        parts += [f"## Figure {outcome.panel.name}: {outcome.panel.title}\n", f"{setting_words(outcome)}\n", _table(outcome), ""]
        left_out = [f"- left out: {name}, since {reason}" for name, reason in outcome.left_out.items()]
        parts += [*left_out, ""] if left_out else []
    return "\n".join([*parts, verdict_table(outcomes), *(f"{sentence}\n" for sentence in skipped)])


def setting_words(outcome: Outcome) -> str:
    panel, setting = outcome.panel, outcome.panel.setting
    n, d = setting.rows.shape
    fixed = f"k = {panel.clusters[0]}" if panel.is_sweep else f"ε = {panel.epsilons[0]:g}"
    place = "the unit ball" if "radius" in setting.domain else "the unit cube"
    return (
        f"{n} rows of {d} columns in {place}, {fixed}, δ = {setting.delta:g}, {runs_words(outcome)}. Mean squared distance to "
        "the nearest centre, mean ± standard error."
    )


def runs_words(outcome: Outcome, but: Collection[str] = ()) -> str:
    """How many runs there are, and of whom, but for some, fewer."""
    runs = outcome.panel.setting.runs
    few = {cell.name: len(cell.costs) for cell in outcome.cells if len(cell.costs) < runs and cell.name not in but}
    return ", ".join([f"{runs} run{'s' * (runs > 1)}", *(f"of {name} {n}" for name, n in few.items())])


def _table(outcome: Outcome) -> str:
    panel = outcome.panel
    places = panel.epsilons if panel.is_sweep else panel.clusters
    head = [f"ε = {place:g}" if panel.is_sweep else f"k = {place}" for place in places]
    names = list(dict.fromkeys(cell.name for cell in outcome.cells))
    lines = [f"| method | {' | '.join(head)} |", "| --- |" + " ---: |" * len(places)]
    for name in names:
        cells = [cell for cell in outcome.cells if cell.name == name]
        shown = [f"{cell.mean:.4g}" + (f" ± {cell.error:.1g}" if len(cell.costs) > 1 else "") for cell in cells]
        shown = shown * len(places) if len(shown) == 1 else shown  # without privacy one number serves every epsilon
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _record(outcome: Outcome, cell: Cell) -> dict[str, Any]:
    n, d = outcome.panel.setting.rows.shape
    floor = next(other.mean for other in outcome.cells if other.name == NOT_PRIVATE and other.k == cell.k)
    return {
        "figure": outcome.panel.name,
        "method": cell.name,
        "rows": n,
        "columns": d,
        "k": cell.k,
        "epsilon": cell.epsilon,
        "delta": None if cell.epsilon is None else outcome.panel.setting.delta,
        "runs": len(cell.costs),
        "mean_cost": cell.mean,
        "sd_cost": cell.deviation,
        "ratio_to_non_private": cell.mean / floor if floor else None,
        "seconds_a_fit": round(cell.seconds, 3),
    }
