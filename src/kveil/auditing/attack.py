"""An event that tells two tables apart, learned from fits of both.

Every number that left is tried by a threshold. Then scores add many of them up (`scores.py`). A score is learned on each half of
the fits, and looked at on the other half: that picks the score and its threshold, by the lower bound of epsilon it would give.
The event is then fixed: whoever counts it must use fits that were not seen here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kveil import libraries
from kveil.arrays import Floats, Integers
from kveil.auditing.bound import Bound
from kveil.auditing.leaving import HUGE, Outcomes, leaves
from kveil.auditing.scores import NAMES, Mean, Number, Score, learned, shown

FEWEST = 60  # fits of each table below which scores are not learned
THRESHOLDS = np.linspace(0.02, 0.98, 97)  # shares of fits. Rarer events need more fits than they are worth
MARGIN = 0.9  # of what a learned score promises: it was learned on half of the fits, and has more ways to look good by chance
PICKED_BY = ((4.0, 1.0), (2.5, 1e-1), (1.5, 1e-2), (0.5, 1e-4))  # deviations, weight: picked on fewer fits than it is counted on
MOST_COLUMNS = 200
MOST_TELLING = 40
KOLMOGOROV = 1.36  # the quantile 0.95 of his law
TRIED = 24  # numbers that are tried by themselves


@dataclass(frozen=True, eq=False)
class Event:
    """A score of what left passes a threshold.

    likelier: the table that it speaks for. promise: about its bound, where it was picked; never believed.
    """

    name: str
    likelier: Literal["one", "other"]
    threshold: float
    names: tuple[str, ...]
    score: Score
    promise: float

    def hits(self, outcomes: Outcomes) -> int:
        """In how many of these fits it came up."""
        with libraries.one_thread():
            passed = self.score(outcomes.on(self.names)) > self.threshold
        return int(passed.sum())

    def count(self, one: Outcomes, other: Outcomes, delta: float, error: float) -> Bound:
        """Its counts on fits that it was not learned from."""
        mine, theirs = (one, other) if self.likelier == "one" else (other, one)
        return Bound(self.hits(mine), len(mine), self.hits(theirs), len(theirs), delta, error)


@dataclass(frozen=True)
class Attack:
    """How events are learned. `scores`: of "threshold", "logistic", "stumps", "trees"."""

    delta: float = 0.0
    scores: tuple[str, ...] = ("threshold", "logistic", "stumps", "trees")

    features = staticmethod(leaves)

    def learn(self, one: Outcomes, other: Outcomes) -> Event:
        """The event that promises most."""
        with libraries.one_thread():
            return self._learned(one, other)

    def _learned(self, one: Outcomes, other: Outcomes) -> Event:
        names = self._names(one, other)
        tables = one.on(names), other.on(names)
        events = [Event("nothing", "one", 0.0, names, lambda values: np.zeros(len(values)), 0.0)]
        fewest = min(len(one), len(other))
        if names and fewest:
            events += self._of_numbers(names, *tables) if "threshold" in self.scores else []
            able = self.scores if fewest >= FEWEST else ()
            events += [self._of_score(name, names, *tables) for name in able if name in NAMES]
        return max(events, key=lambda event: event.promise)

    def _names(self, one: Outcomes, other: Outcomes) -> tuple[str, ...]:
        """Numbers that differ between fits; the most telling, if there are very many."""
        both = Outcomes.joined([one, other])
        values = shown(both.values)
        moving = np.flatnonzero((values != values[:1]).any(axis=0)) if len(values) else np.array([], dtype=int)
        varying = np.array(sorted({values[:, i].tobytes(): i for i in moving[::-1]}.values()), dtype=int)  # equal ones once
        if len(varying) > MOST_COLUMNS:
            gaps = _gaps(values[: len(one), varying], values[len(one) :, varying])
            varying = varying[np.argsort(-gaps, kind="stable")[:MOST_COLUMNS]]
        return tuple(both.names[column] for column in varying)

    def _of_numbers(self, names: tuple[str, ...], one: Floats, other: Floats) -> list[Event]:
        tables = shown(one), shown(other)
        telling = np.argsort(-_gaps(*tables), kind="stable")[:TRIED]
        return [self._event(names[i], names, Number(int(i)), tables[0][:, i], tables[1][:, i]) for i in telling]

    def _of_score(self, name: str, names: tuple[str, ...], one: Floats, other: Floats) -> Event:
        halves = [(table[::2], table[1::2]) for table in (one, other)]
        columns = np.arange(len(names)) if name == "trees" else _telling(one, other)
        first, second = (learned(name, columns, halves[0][half], halves[1][half]) for half in (0, 1))
        unseen = [np.concatenate([second(half[0]), first(half[1])]) for half in halves]
        event, score = self._event(NAMES[name], names, first, *unseen), Mean(first, second)
        share = float((np.concatenate(unseen) <= event.threshold).mean())
        cut = float(np.quantile(score(np.vstack([one, other])), share, method="inverted_cdf"))  # as rare an event of both
        return replace(event, name=f"{NAMES[name]} > {cut:.6g}", threshold=cut, score=score, promise=MARGIN * event.promise)

    def _event(self, name: str, names: tuple[str, ...], score: Score, one: Floats, other: Floats) -> Event:
        """The threshold of a score that promises most, for either table."""
        cuts = np.unique(np.quantile(np.concatenate([one, other]), THRESHOLDS, method="inverted_cdf"))
        above = [len(scores) - np.searchsorted(np.sort(scores), cuts, side="right") for scores in (one, other)]
        sizes = len(one), len(other)
        bounds = np.array([
            _quick(above[0], sizes[0], above[1], sizes[1], self.delta), _quick(above[1], sizes[1], above[0], sizes[0], self.delta)
        ])  # fmt: skip
        side, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
        cut = float(cuts[place])
        told = f"{name} is there" if cut <= -2 * HUGE else f"{name} > {cut:.6g}"  # above what `shown` puts for a missing number
        return Event(told, "one" if side == 0 else "other", cut, names, score, float(bounds[side, place]))


def _telling(one: Floats, other: Floats) -> Integers:
    """Numbers that tell something by themselves: their gap would come up in one of twenty, of numbers that tell nothing."""
    gaps = _gaps(shown(one), shown(other))
    order = np.argsort(-gaps, kind="stable")[:MOST_TELLING]
    found: Integers = order[gaps[order] >= min(KOLMOGOROV * np.sqrt(1 / len(one) + 1 / len(other)), gaps.max())]
    return found


def _gaps(one: Floats, other: Floats) -> Floats:
    """The largest gap between the shares of fits that pass a threshold, of each column."""
    both = np.sort(np.vstack([one, other]), axis=0)
    found = np.zeros(both.shape[1])
    for column in range(both.shape[1]):
        cuts = np.unique(both[:: max(1, len(both) // 64), column])
        passed = [np.searchsorted(np.sort(table[:, column]), cuts, side="right") / len(table) for table in (one, other)]
        found[column] = np.abs(passed[0] - passed[1]).max()
    return found


def _quick(hits: Any, runs: int, other_hits: Any, other_runs: int, delta: float) -> Floats:
    """Nearly `lower_epsilons`, by Wilson's limits: thousands of events are compared, and none is believed. Where few fits bound
    nothing, what wider limits would say decides."""
    found: Floats = np.zeros(np.shape(hits))
    for z, weight in PICKED_BY:
        low, high = _wilson(hits, runs, -z), _wilson(other_hits, other_runs, z)
        event, complement = np.maximum(low - delta, 1e-12) / high, np.maximum(1 - high - delta, 1e-12) / (1 - low)
        found += weight * np.maximum(np.log(np.maximum(event, complement)), 0.0)
    return found


def _wilson(hits: Any, runs: int, z: float) -> Floats:
    share = np.asarray(hits) / runs
    middle, spread = share + z * z / (2 * runs), z * np.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    found: Floats = np.clip((middle + spread) / (1 + z * z / runs), 1e-12, 1 - 1e-12)
    return found
