"""What the reproduction of the HST figures found, as Markdown, as CSV, and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kveil.research.hst_claims import FALSE_ALARM, Verdict, farthest_apart, floor, verdicts
from kveil.research.hst_figures import Cell, Outcome
from kveil.research.hst_times import Timing
from kveil.research.median_cases import KINDS

NOTICE = (
    "Drawn by kveil on public or made-up data: none of these numbers is the paper's own. Methods as printed are drawn in "
    "floating point for study and promise nothing; DP-HST as printed would cost more than its epsilon even so. Corrected methods "
    "and kveil's default have a guarantee each, but costs are exact statistics of the rows: not for data about people."
)

TABLES = (
    ("Seeds", "seeds"),
    ("After the search", "final"),
    ("Over the steps of the search, on average, as the paper has it", "iterates"),
    ("Figure 5: steps until the average of five steps in a row is least", "steps"),
    ("The same of swaps drawn uniformly, from the same seeds", "aimless_steps"),
    ("Figure 6: the lowest cost on the way, which nobody releases", "best"),
)
COUNTED = ("steps", "steps_with_seeds", "aimless_steps")  # the others are costs


def records(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One flat record a method, k, demand and universe. Costs are sums of distances of the demand."""
    return [_record(outcome, cell) for outcome in outcomes for cell in outcome.cells]


def verdict_records(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [verdict._asdict() for verdict in verdicts(outcomes)]


def timing_records(timings: Sequence[Timing]) -> list[dict[str, Any]]:
    return [timing._asdict() for timing in timings]


def as_markdown(outcomes: Sequence[Outcome], timings: Sequence[Timing], skipped: Sequence[str]) -> str:
    parts = [f"# Figures of HST seeding\n\n{NOTICE}\n", *(_setting(outcome) for outcome in outcomes)]
    parts += [_ratios(outcomes), _claims(outcomes), _running_time(timings)]
    return "\n".join([*parts, *(f"{sentence}\n" for sentence in skipped)])


def _setting(outcome: Outcome) -> str:
    runs = len(outcome.cells[0].runs)
    thousands = " in thousands" if _unit(outcome) > 1 else ""
    said = (
        f"{outcome.points} points, {outcome.rows} rows, ε = {outcome.epsilon:g}, T = {outcome.steps}, {runs} run(s). Sums of "
        f"distances to the nearest centre{thousands}, mean ± standard deviation of the runs."
    )
    tables = [f"{name}:\n\n{_table(outcome, what)}\n" for name, what in TABLES]
    return "\n".join([f"## {outcome.title}, {outcome.kind} demand\n\n{said}\n", *tables])


def _table(outcome: Outcome, what: str) -> str:
    places = outcome.clusters
    lines = [f"| method | {' | '.join(f'k = {k}' for k in places)} |", "| --- |" + " ---: |" * len(places)]
    for name in dict.fromkeys(cell.method.name for cell in outcome.cells if cell.all(what)):
        unit = 1.0 if what in COUNTED else _unit(outcome)
        shown = [_shown(outcome.costs(name, k, what) / unit) for k in places]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _ratios(outcomes: Sequence[Outcome]) -> str:
    """What privacy costs: a line a setting, a column a method."""
    names = [cell.method.name for cell in outcomes[0].cells if cell.method.way != "not private"]
    names = list(dict.fromkeys(names))
    lines = [f"| universe, demand | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    for outcome in outcomes:
        lowest = np.array([floor(outcome, k) or np.nan for k in outcome.clusters])
        means = [np.array([outcome.costs(name, k, "final").mean() for k in outcome.clusters]) / lowest for name in names]
        known = [ratios[np.isfinite(ratios)] for ratios in means]  # a cost of 0 has no ratios
        shown = [f"{ratios.min():.2f} to {ratios.max():.2f}" if len(ratios) else "-" for ratios in known]
        lines.append(f"| {outcome.name}, {outcome.kind} | {' | '.join(shown)} |")
    said = "Mean final cost over the lowest mean without privacy: at the k where that is least, and at the one where it is most."
    return "\n\n".join(["## What does privacy cost?", said, "\n".join(lines)]) + "\n"


def _claims(outcomes: Sequence[Outcome]) -> str:
    found = verdicts(outcomes)
    tables = [_claim_table([verdict for verdict in found if verdict.kind == kind], kind) for kind in KINDS]
    pulls = [(np.mean(cell.all("pull")), np.log(cell.k * outcome.points)) for outcome, cell in _printed(outcomes)]
    paid = max(max(cell.all("paid")) for _, cell in _printed(outcomes))
    said = (
        "At how many k on a universe one is lower / higher / neither, by a paired t-test over the runs. It has a false alarm in "
        f"{FALSE_ALARM:.0%} of cells. A single run decides nothing."
    )
    notes = (
        f"- Without privacy the three starts end at most {farthest_apart(outcomes):.1%} apart, in the mean.\n"
        f"- The printed exponent makes the best first swap e^{min(pulls)[0]:.2f} to e^{max(pulls)[0]:.2f} times as likely as an "
        f"average one. To stand out among all it takes about e^{min(needed for _, needed in pulls):.1f} to "
        f"e^{max(needed for _, needed in pulls):.1f}.\n"
        f"- DP-HST as printed costs up to {paid:.3g} for a claimed {outcomes[0].epsilon:g}, rows added or removed.\n"
    )
    return "\n\n".join(["## Which claims hold?", said, *tables, notes])


def _claim_table(found: Sequence[Verdict], kind: str) -> str:
    names = list(dict.fromkeys(verdict.case for verdict in found))
    lines = [f"| {kind} demand | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    for claim in dict.fromkeys(verdict.claim for verdict in found):
        lines.append(f"| {claim} | {' | '.join(_counted(verdict) for verdict in found if verdict.claim == claim)} |")
    return "\n".join(lines)


def _printed(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, Cell]]:
    return [(outcome, cell) for outcome in outcomes for cell in outcome.cells if cell.method.way == "printed"]


def _running_time(timings: Sequence[Timing]) -> str:
    lines = ["| universe | points | k | k-median++ | HST, tree and search | HST, tree kept |", "| --- |" + " ---: |" * 5]
    for timing in timings:
        shown = [f"{1000 * spent:.3g}" for spent in (timing.plusplus, timing.tree + timing.search, timing.search)]
        lines.append(f"| {timing.universe} | {timing.points} | {timing.k} | {' | '.join(shown)} |")
    said = "CPU of seeds for all points of a universe, in milliseconds, median of a few runs."
    crossings = [_crossing(timings, name) for name in dict.fromkeys(timing.universe for timing in timings)]
    return "\n\n".join(["## Running time", said, "\n".join(lines), "\n".join(crossings)]) + "\n"


def _crossing(timings: Sequence[Timing], universe: str) -> str:
    some = [timing for timing in timings if timing.universe == universe]
    most = max(timing.points for timing in some)
    quicker = [timing.k for timing in some if timing.points == most and timing.tree + timing.search < timing.plusplus]
    when = f"of the k tried first at {min(quicker)}" if quicker else "at no k tried"
    return f"- {universe}, {most} points: a tree and its search are quicker than k-median++ {when}; ln n is {np.log(most):.1f}."


def _counted(verdict: Verdict) -> str:
    return f"{verdict.lower} / {verdict.higher} / {verdict.level}"


def _unit(outcome: Outcome) -> float:
    return 1000.0 if max(max(cell.all("final")) for cell in outcome.cells) >= 1e5 else 1.0


def _shown(costs: np.ndarray) -> str:
    spread = f" ± {_plain(_deviation(costs), 2)}" if len(costs) > 1 else ""
    return f"{_plain(costs.mean(), 4)}{spread}"


def _plain(number: float, digits: int) -> str:
    """So many digits, without an exponent up to a million."""
    return f"{float(f'{number:.{digits}g}'):g}"


def _deviation(costs: Sequence[float] | np.ndarray) -> float:
    return float(np.std(costs, ddof=1)) if len(costs) > 1 else 0.0


def _mean(cell: Cell, what: str) -> float | None:
    return float(np.mean(cell.all(what))) if cell.all(what) else None


def _record(outcome: Outcome, cell: Cell) -> dict[str, Any]:
    seeds, finals = cell.all("seeds"), cell.all("final")
    lowest, is_private = floor(outcome, cell.k), cell.method.way != "not private"
    return {
        "universe": outcome.name,
        "demand": outcome.kind,
        "points": outcome.points,
        "rows": outcome.rows,
        "method": cell.method.name,
        "k": cell.k,
        "epsilon_claimed": outcome.epsilon if is_private else None,
        "epsilon_paid": max(cell.all("paid"), default=None),
        "runs": len(cell.runs),
        "mean_seeds": _mean(cell, "seeds"),
        "sd_seeds": _deviation(seeds) if seeds else None,
        "mean_final": float(np.mean(finals)),
        "sd_final": _deviation(finals),
        "steps": outcome.steps,
        **{f"mean_{what}": _mean(cell, what) for what in ("iterates", *COUNTED, "best")},
        "ratio_to_non_private": float(np.mean(finals)) / lowest if lowest else None,
    }
