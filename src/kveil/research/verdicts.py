"""Whether one method is below another in the high-dimensional figures: counted over k or epsilon, by t-tests over the runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from kveil.research.contest import Cell
from kveil.research.highdim import Outcome
from kveil.research.highdim_methods import DEFAULT, ONE_MEAN, PAPER, SULQ

FALSE_ALARM = 0.05  # of a t-test, two-sided: how often a difference is seen where there is none


class Verdict(NamedTuple):
    """At how many k or epsilon of a figure the first is lower, higher, or neither."""

    first: str
    second: str
    figure: str
    lower: int
    higher: int
    neither: int


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """What the paper claims of its method and SuLQ, and what we would ask besides, figure by figure."""
    return [
        _verdict(outcome, first, second)
        for outcome in outcomes
        for first, second in _pairs(outcome)
        if {first, second} <= {cell.name for cell in outcome.cells}
    ]


def verdict_table(outcomes: Sequence[Outcome]) -> str:
    found = verdicts(outcomes)
    figures = list(dict.fromkeys(verdict.figure for verdict in found))
    cells = {(verdict.first, verdict.second, verdict.figure): verdict for verdict in found}
    lines = [
        "## Which is lower\n",
        "At how many k or ε the first has a lower / higher mean than the second / neither, by Welch's t-test over the runs. "
        f"One in {round(1 / FALSE_ALARM)} such tests errs. One run tells nothing.\n",
        f"| first | second | {' | '.join(figures)} |",
        "| --- | --- |" + " ---: |" * len(figures),
    ]
    for first, second in dict.fromkeys((verdict.first, verdict.second) for verdict in found):
        shown = [cells.get((first, second, figure)) for figure in figures]
        lines.append(f"| {first} | {second} | {' | '.join('' if one is None else _counts(one) for one in shown)} |")
    return "\n".join([*lines, ""])


def _pairs(outcome: Outcome) -> list[tuple[str, str]]:
    """The paper's method with each of its additions against SuLQ, one mean, and itself without; and the default."""
    additions = [
        someone.name for someone in outcome.panel.contestants if someone.method == "candidates" and someone.name != PAPER
    ]
    ours = [PAPER, *additions]
    pairs = [(one, other) for other in (SULQ, ONE_MEAN) for one in ours]
    return [*pairs, *((one, PAPER) for one in additions), *((DEFAULT, one) for one in ours)]


def _verdict(outcome: Outcome, first: str, second: str) -> Verdict:
    pairs = zip(_cells(outcome, first), _cells(outcome, second), strict=True)
    signs = [_sign(one, other) for one, other in pairs]
    return Verdict(first, second, outcome.panel.name, signs.count(-1), signs.count(1), signs.count(0))


def _cells(outcome: Outcome, name: str) -> list[Cell]:
    return [cell for cell in outcome.cells if cell.name == name]


def _sign(one: Cell, other: Cell) -> int:
    """-1 where the first is lower, 1 where it is higher, 0 where the runs do not tell."""
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one run, or runs that are all alike
        chance = ttest_ind(one.costs, other.costs, equal_var=False).pvalue
    return (one.mean > other.mean) - (one.mean < other.mean) if chance < FALSE_ALARM else 0


def _counts(verdict: Verdict) -> str:
    return f"{verdict.lower} / {verdict.higher} / {verdict.neither}"
