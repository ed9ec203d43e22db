"""An event that tells two tables apart, learned from fits of both.

Every number that left is tried by a threshold. Then scores add many of them up: a logistic regression, boosted stumps, which
are a sum of one log-likelihood ratio per number, and boosted trees. All are learned on one part of the fits. The other part
picks the score and its threshold, by the lower bound of epsilon it would give. The event is then fixed: whoever counts it must
use fits that were not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from kveil.arrays import Floats
from kveil.auditing.bound import Bound
from kveil.auditing.leaving import HUGE, Outcomes, leaves

Score = Callable[[Floats], Floats]

FEWEST = 60  # fits of each table below which scores are not learned
LEARNING = 0.6  # the part of the fits that scores are learned on
THRESHOLDS = np.linspace(0.005, 0.995, 100)
MOST_COLUMNS = 400
MANY = 4000  # fits of each table that a boosted score is learned on at the most


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
        names = self._names(one, other)
        tables = one.on(names), other.on(names)
        cuts = [int(LEARNING * len(table)) for table in tables]
        learning, picking = [table[:cut] for table, cut in zip(tables, cuts, strict=True)], [
            table[cut:] for table, cut in zip(tables, cuts, strict=True)
        ]  # fmt: skip
        best = Event("nothing", "one", 0.0, names, lambda values: np.zeros(len(values)), 0.0)
        if not names or not len(picking[0]) or not len(picking[1]):
            return best
        if "threshold" in self.scores:
            best = max(best, self._best_number(names, tables), key=_promise)
        if min(cuts) >= FEWEST:
            for name, score in _learned(self.scores, *learning):
                event = self._event(name, names, score, score(picking[0]), score(picking[1]))
                best = max(best, event, key=_promise)
        return best

    def _names(self, one: Outcomes, other: Outcomes) -> tuple[str, ...]:
        """Numbers that differ between fits; the most telling, if there are very many."""
        both = Outcomes.joined([one, other])
        shown = np.where(np.isnan(both.values), -HUGE, both.values)
        varying = np.flatnonzero((shown != shown[:1]).any(axis=0)) if len(shown) else np.array([], dtype=int)
        if len(varying) > MOST_COLUMNS:
            gaps = _gaps(shown[: len(one), varying], shown[len(one) :, varying])
            varying = varying[np.argsort(-gaps, kind="stable")[:MOST_COLUMNS]]
        return tuple(both.names[column] for column in varying)

    def _best_number(self, names: tuple[str, ...], tables: tuple[Floats, Floats]) -> Event:
        shown = [np.where(np.isnan(table), -2 * HUGE, table) for table in tables]
        gaps = _gaps(*shown)
        best = None
        for column in np.argsort(-gaps, kind="stable")[:24]:
            event = self._event(names[column], names, _Number(int(column)), shown[0][:, column], shown[1][:, column])
            best = event if best is None else max(best, event, key=_promise)
        assert best is not None
        return best

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
        return Event(f"{name} > {cut:.6g}", "one" if side == 0 else "other", cut, names, score, float(bounds[side, place]))


class _Number:
    """One number that left, by itself."""

    def __init__(self, column: int) -> None:
        self._column = column

    def __call__(self, values: Floats) -> Floats:
        found: Floats = np.where(np.isnan(values[:, self._column]), -2 * HUGE, values[:, self._column])
        return found


class _Learned:
    """The log odds that a classifier gives for the first table."""

    def __init__(self, model: Any, cap: Floats | None = None) -> None:
        self._model, self._cap = model, cap

    def __call__(self, values: Floats) -> Floats:
        found: Floats = self._model.decision_function(values if self._cap is None else _capped(values, self._cap))
        return found


def _learned(asked: Sequence[str], one: Floats, other: Floats) -> Iterator[tuple[str, Score]]:
    values, labels = np.vstack([one[:MANY], other[:MANY]]), np.repeat([1, 0], [len(one[:MANY]), len(other[:MANY])])
    values[:, np.isnan(values).all(axis=0)] = 0.0  # they are there in later fits alone
    if "logistic" in asked:
        tame = np.where(np.abs(values) >= HUGE, np.nan, values)
        tame[:, np.isnan(tame).all(axis=0)] = 0.0
        cap = np.nanquantile(tame, [0.01, 0.99], axis=0)
        model = make_pipeline(RobustScaler(quantile_range=(10, 90)), LogisticRegression(C=0.1, max_iter=300))
        yield "logistic score", _Learned(model.fit(_capped(values, cap), labels), cap)
    for name, leaf_nodes in (("stumps", 2), ("trees", 8)):
        if name in asked:
            boosted = HistGradientBoostingClassifier(
                learning_rate=0.1, max_iter=120, max_leaf_nodes=leaf_nodes, min_samples_leaf=max(10, len(values) // 100),
                l2_regularization=1.0, max_features=0.5, early_stopping=False, random_state=0,
            )  # fmt: skip
            yield f"score of boosted {name}", _Learned(boosted.fit(values, labels))


def _capped(values: Floats, cap: Floats) -> Floats:
    found: Floats = np.where(np.isnan(values), cap.mean(axis=0), np.clip(values, cap[0], cap[1]))
    return found


def _promise(event: Event) -> float:
    return event.promise


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


PICKED_BY = ((2.5, 1.0), (1.0, 1e-2), (0.3, 1e-4))  # deviations, weight. An event is picked on fewer fits than it is counted on
