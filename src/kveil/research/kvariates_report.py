"""What the reproduction of the k-variates++ paper found, as Markdown, as CSV, and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kveil.research.peers import LOCAL_PICKS, RIVALS, Crowd, Point
from kveil.research.seed_table import CONDITIONAL, MADE, Entry
from kveil.research.spreads import theorem_10_delta, theorem_10_g
from kveil.research.theorems import Measured

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


def theorem_records(claims: Sequence[Measured]) -> list[dict[str, Any]]:
    return [claim._asdict() for claim in claims]


def as_markdown(
    crowd: Crowd,
    points: Sequence[Point],
    entries: Sequence[Entry],
    claims: Sequence[Measured],
    epsilon: float,
    skipped: Sequence[str],
) -> str:
    parts = [f"# Figures of k-variates++\n\n{NOTICE}\n", _figure_words(crowd), *_figure(points), _table_words(epsilon)]
    for domain in dict.fromkeys(entry.domain for entry in entries):
        some = [entry for entry in entries if entry.domain == domain]
        parts += [f"### Rows {domain}\n", _table(some), "", *_as_printed(some)]
    return "\n".join([*parts, _theorems(claims), _theorem_10(epsilon), *(f"{sentence}\n" for sentence in skipped)])


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


def _theorems(claims: Sequence[Measured]) -> str:
    words = (
        "## Theorems: do their bounds hold?\n\nLeft side over right side on small made-up sets: below 1, the bound holds. "
        "Lemma 3 is a bound from below: what falls towards 0 as m grows is not bounded so. Exact expectations, or means of runs "
        "where there is noise. No bound: sets on which the theorem's constant is infinite, or 0.\n"
    )
    lines = ["| claim | sets | no bound | mean | largest |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {some.claim} | {some.sets} | {some.silent} | {some.mean:.2g} | {some.largest:.2g} |" for some in claims]
    return "\n".join([words, *lines, ""])


def _theorem_10(epsilon: float) -> str:
    """What the theorem grants at the sizes of the paper's table: rows even in a ball, the best case there is."""
    words = (
        "Theorem 10 at the sizes of Table 2, for rows even in a ball. Shown is the least δ it allows. Beside it is the largest ε "
        f"of one seed, ln rho(2R), for which it bounds the ratio of likelihoods by e^ε, ε = {epsilon:g}.\n"
    )
    lines = ["| sizes | δ | ε of one seed | tabulated |", "| --- | ---: | ---: | ---: |"]
    for m, d, k, tilde in (sizes for sizes in MADE if sizes[3] is not None):
        base, slope = theorem_10_g(m, k, d, 0.0), theorem_10_g(m, k, d, 1.0) - theorem_10_g(m, k, d, 0.0)
        ratio = (np.expm1(epsilon) - base) / slope
        shown = f"{np.log(ratio):.2g}" if ratio > 1 else "none"
        lines.append(f"| {m} x {d}, k = {k} | {theorem_10_delta(m, k):.2g} | {shown} | {tilde:g} |")
    return "\n".join([words, *lines, ""])


def _as_printed(entries: Sequence[Entry]) -> list[str]:
    """Forgy-DP and GUPT over the conditional calibration, centres left where they were drawn, as the paper has it."""
    lines = []
    for base in (entry for entry in entries if entry.method == CONDITIONAL):
        others = {entry.method: entry for entry in entries if entry.case == base.case}
        floor = float(np.mean(base.drawn or base.inside))
        ratios = [f"{name} {np.mean(others[name].drawn or others[name].inside) / floor:.3g}" for name in ("Forgy-DP", "GUPT")]
        lines.append(f"- {base.case}: {', '.join(ratios)}")
    return [f"Over {CONDITIONAL}, centres left where they were drawn:\n", *lines, ""] if lines else []
