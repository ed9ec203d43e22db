"""What the reproduction of the k-variates++ paper found, as Markdown, as CSV, and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kveil.research.peers import LOCAL_PICKS, RIVALS, Crowd, Point
from kveil.research.seed_table import CONDITIONAL, Entry

NOTICE = (
    "Drawn by kveil on data made as described, and on files given by path: none of these numbers is the paper's own. Private "
    f'fits have their own guarantee (the line "{CONDITIONAL}" only under an assumption), but costs are exact statistics of the '
    "rows: not for data about people."
)
NODES = {"uniform": "nodes that draw uniformly", "d2": "nodes that draw by distance"}


def point_records(points: Sequence[Point]) -> list[dict[str, Any]]:
    return [point._asdict() for point in points]


def entry_records(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One flat record a method and case: cost over k-means without privacy, and, of seeds, with centres left where drawn."""
    return [
        {
            "case": entry.case,
            "domain": entry.domain,
            "method": entry.method,
            "runs": len(entry.inside),
            "ratio": entry.mean,
            "error": entry.error,
            "ratio_as_drawn": None if entry.drawn is None else float(np.mean(entry.drawn)),
        }
        for entry in entries
    ]


def as_markdown(crowd: Crowd, points: Sequence[Point], entries: Sequence[Entry], epsilon: float, skipped: Sequence[str]) -> str:
    parts = [f"# Figures of k-variates++\n\n{NOTICE}\n", _figure_words(crowd), *_figure(points), _table_words(epsilon)]
    for domain in dict.fromkeys(entry.domain for entry in entries):
        some = [entry for entry in entries if entry.domain == domain]
        parts += [f"### Rows {domain}\n", _table(some), "", *_as_printed(some)]
    return "\n".join([*parts, *(f"{sentence}\n" for sentence in skipped)])


def _figure_words(crowd: Crowd) -> str:
    return (
        f"## Figure 3: What do seeds over nodes cost?\n\n{crowd.rows} rows of {crowd.columns} columns at {crowd.peers} peers, of "
        f"which a share p was moved to other peers. Cost of the seeds over a rival's, in per cent more; mean ± standard error of "
        f"{crowd.tables} data sets, {crowd.seeds} seeds each. No privacy here.\n"
    )


def _figure(points: Sequence[Point]) -> list[str]:
    found = []
    for local_pick in LOCAL_PICKS:
        for rival in RIVALS:
            some = [point for point in points if (point.local_pick, point.rival) == (local_pick, rival)]
            moved = list(dict.fromkeys(point.moved for point in some))
            head = " | ".join(f"p = {share:.0%}" for share in moved)
            lines = [f"| k | {head} |", "| --- |" + " ---: |" * len(moved)]
            for k in dict.fromkeys(point.k for point in some):
                cells = [f"{point.percent:+.1f} ± {point.error:.1f}" for point in some if point.k == k]
                lines.append(f"| {k} | {' | '.join(cells)} |")
            found.append(f"### {NODES[local_pick].capitalize()}, against {rival}\n\n" + "\n".join(lines) + "\n")
    wider = {point.moved: point.scatter for point in points}
    told = ", ".join(f"{times:.1f} at {share:.0%}" for share, times in wider.items())
    return [*found, f"Scatter within peers, over that without moved rows: {told}.\n"]


def _table_words(epsilon: float) -> str:
    return (
        f"## Table 2: What do private seeds cost?\n\nε = {epsilon:g}, δ = 0 per record, add or remove, all of it for the seeds, "
        "or for seeds and steps. Cost over that of k-means without privacy (best of 5), centres moved into the domain; mean ± "
        "standard error. Methods with steps are told the unit L2 ball in either case.\n"
    )


def _table(entries: Sequence[Entry]) -> str:
    cases, methods = (list(dict.fromkeys(some)) for some in zip(*((e.case, e.method) for e in entries), strict=True))
    known = {(entry.case, entry.method): entry for entry in entries}
    lines = [f"| method | {' | '.join(cases)} |", "| --- |" + " ---: |" * len(cases)]
    for method in methods:
        cells = [known.get((case, method)) for case in cases]
        shown = ["-" if cell is None else f"{cell.mean:.3g} ± {cell.error:.2g}" for cell in cells]
        lines.append(f"| {method} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _as_printed(entries: Sequence[Entry]) -> list[str]:
    """Forgy-DP and GUPT over the conditional calibration, centres left where they were drawn, as the paper has it."""
    lines = []
    for base in (entry for entry in entries if entry.method == CONDITIONAL):
        others = {entry.method: entry for entry in entries if entry.case == base.case}
        floor = float(np.mean(base.drawn or base.inside))
        ratios = [f"{name} {np.mean(others[name].drawn or others[name].inside) / floor:.3g}" for name in ("Forgy-DP", "GUPT")]
        lines.append(f"- {base.case}: {', '.join(ratios)}")
    return [f"Over {CONDITIONAL}, centres left where they were drawn:\n", *lines, ""] if lines else []
