"""What becomes of claims of the HST paper: one method's numbers held against another's, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from kveil.research.hst_figures import Cell, Outcome
from kveil.research.median_cases import Kind

FALSE_ALARM = 0.05  # of a paired t-test, two-sided: how often a difference is seen where there is none
PRINTED = ("DP-HST, as printed (invalid)", "DP-k-median++, as printed", "DP-rand, as printed")
CORRECTED = ("DP-HST, corrected", "DP-k-median++, corrected", "DP-rand, corrected")


class Comparison(NamedTuple):
    """Of one method's number with another's, run by run."""

    claim: str
    one: str
    of_one: str
    other: str
    of_other: str


class Verdict(NamedTuple):
    """At how many k on a universe and kind of demand one was lower, higher, or neither by a paired t-test."""

    claim: str
    case: str
    kind: Kind
    lower: int
    higher: int
    level: int


def _compared() -> tuple[Comparison, ...]:
    """The claims of section 5.2 and appendix A.3 in their order, each as printed and as corrected, and what explains them."""
    (hst, plusplus, rand), (ours, our_plusplus, _) = PRINTED, CORRECTED
    return (
        Comparison("seeds without privacy: HST under k-median++", "NDP-HST", "seeds", "NDP-k-median++", "seeds"),
        Comparison("seeds without privacy: HST under random", "NDP-HST", "seeds", "NDP-rand", "seeds"),
        Comparison("final without privacy: HST under k-median++", "NDP-HST", "final", "NDP-k-median++", "final"),
        Comparison("private seeds as printed: HST under k-median++", hst, "seeds", plusplus, "seeds"),
        Comparison("private seeds as printed: HST under random", hst, "seeds", rand, "seeds"),
        Comparison("private steps as printed, on average: HST under k-median++", hst, "iterates", plusplus, "iterates"),
        Comparison("private steps as printed, on average: HST under random", hst, "iterates", rand, "iterates"),
        Comparison("private final as printed: HST under k-median++", hst, "final", plusplus, "final"),
        Comparison("Figure 5 as printed, steps: HST under k-median++", hst, "steps", plusplus, "steps"),
        Comparison("Figure 5 as printed, steps: HST under random", hst, "steps", rand, "steps"),
        Comparison(
            "Figure 5 as printed, seeds counted: HST under k-median++", hst, "steps_with_seeds", plusplus, "steps_with_seeds"
        ),
        Comparison("Figure 5 as printed, steps: HST under swaps that look at nothing", hst, "steps", hst, "aimless_steps"),
        Comparison("Figure 6 as printed, best: HST under k-median++", hst, "best", plusplus, "best"),
        Comparison("Figure 6 as printed, best: HST under random", hst, "best", rand, "best"),
        Comparison("as printed: best step under its HST seeds", hst, "best", hst, "seeds"),
        Comparison("as printed: steps, on average, under their HST seeds", hst, "iterates", hst, "seeds"),
        Comparison("private seeds, corrected: HST under k-median++", ours, "seeds", our_plusplus, "seeds"),
        Comparison("private final, corrected: HST under k-median++", ours, "final", our_plusplus, "final"),
        Comparison("Figure 5 corrected, steps: HST under k-median++", ours, "steps", our_plusplus, "steps"),
        Comparison("Figure 6 corrected, best: HST under k-median++", ours, "best", our_plusplus, "best"),
        Comparison("kveil's default under DP-HST, corrected", "kveil's default", "final", ours, "final"),
        Comparison("kveil's default under DP-k-median++, corrected", "kveil's default", "final", our_plusplus, "final"),
    )


COMPARISONS = _compared()


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """What became of every claim, on every universe and kind of demand."""
    found = []
    for comparison in COMPARISONS:
        for outcome in outcomes:
            signs = _signs(outcome, comparison)
            counted = (signs.count(-1), signs.count(1), signs.count(0))
            found.append(Verdict(comparison.claim, outcome.name, outcome.kind, *counted))
    return found


def farthest_apart(outcomes: Iterable[Outcome]) -> float:
    """The largest relative gap, over all cells, between mean final costs of the three starts without privacy."""
    gaps = []
    for outcome in outcomes:
        for k in outcome.clusters:
            means = [_mean(cell) for cell in outcome.cells if cell.k == k and cell.method.way == "not private"]
            gaps.append(max(means) / min(means) - 1 if min(means) else 0.0)
    return max(gaps)


def floor(outcome: Outcome, k: int) -> float:
    """The lowest mean cost without privacy."""
    return min(_mean(cell) for cell in outcome.cells if cell.k == k and cell.method.way == "not private")


def _mean(cell: Cell) -> float:
    return float(np.mean(cell.all("final")))


def _signs(outcome: Outcome, comparison: Comparison) -> list[int]:
    """For every k -1, 1 or 0; a single run has no spread, and decides nothing, and neither does a universe of one place."""
    signs = []
    for k in outcome.clusters:
        apart = outcome.costs(comparison.one, k, comparison.of_one) - outcome.costs(comparison.other, k, comparison.of_other)
        if len(apart) < 2:
            signs.append(0)
            continue
        most = np.std(apart, ddof=1) / np.sqrt(len(apart)) * stats.t.ppf(1 - FALSE_ALARM / 2, len(apart) - 1)
        signs.append(int(np.sign(apart.mean())) if abs(apart.mean()) > most else 0)
    return signs
