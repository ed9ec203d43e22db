"""Scores of what left: one number that is higher on one table than on the other, learned from fits of both.

"logistic" weighs all numbers, "stumps" adds up one log-likelihood ratio per number (boosted trees of one split each), and "trees"
also sees numbers that tell something only together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from kveil.arrays import Floats, Integers
from kveil.auditing.leaving import HUGE

Score = Callable[[Floats], Floats]

NAMES = {"logistic": "logistic score", "stumps": "score of boosted stumps", "trees": "score of boosted trees"}
LEAVES = {"stumps": 2, "trees": 8}
MANY = 4000  # fits of each table that a score is learned on at the most


def learned(name: str, columns: Integers, one: Floats, other: Floats) -> Score:
    """A score of these columns that is higher on the first table, as far as these fits tell."""
    one, other = one[:MANY, columns], other[:MANY, columns]
    values, labels = np.vstack([one, other]), np.repeat([1, 0], [len(one), len(other)])
    values[:, np.isnan(values).all(axis=0)] = 0.0  # they are there in other fits alone
    if name == "logistic":
        tame = np.where(np.abs(values) >= HUGE, np.nan, values)
        tame[:, np.isnan(tame).all(axis=0)] = 0.0
        cap = np.nanquantile(tame, [0.01, 0.99], axis=0)
        model = make_pipeline(RobustScaler(quantile_range=(10, 90)), LogisticRegression(C=0.1, max_iter=300))
        return LogOdds(columns, model.fit(_capped(values, cap), labels), cap)
    boosted = HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=100, max_leaf_nodes=LEAVES[name], min_samples_leaf=max(10, len(values) // 50),
        l2_regularization=1.0, max_features=0.5, early_stopping=False, random_state=0,
    )  # fmt: skip
    return LogOdds(columns, boosted.fit(values, labels))


class Number:
    """One number that left, by itself. Where it is missing it counts as less than all others."""

    def __init__(self, column: int) -> None:
        self._column = column

    def __call__(self, values: Floats) -> Floats:
        return shown(values[:, self._column])


class LogOdds:
    """The log odds that a classifier gives for the first table."""

    def __init__(self, columns: Integers, model: Any, cap: Floats | None = None) -> None:
        self._columns, self._model, self._cap = columns, model, cap

    def __call__(self, values: Floats) -> Floats:
        seen = values[:, self._columns]
        found: Floats = self._model.decision_function(seen if self._cap is None else _capped(seen, self._cap))
        return found


class Mean:
    """The mean of two scores."""

    def __init__(self, one: Score, other: Score) -> None:
        self._one, self._other = one, other

    def __call__(self, values: Floats) -> Floats:
        return (self._one(values) + self._other(values)) / 2


def shown(values: Floats) -> Floats:
    """Missing numbers as one that is less than all others."""
    found: Floats = np.where(np.isnan(values), -2 * HUGE, values)
    return found


def _capped(values: Floats, cap: Floats) -> Floats:
    found: Floats = np.where(np.isnan(values), cap.mean(axis=0), np.clip(values, cap[0], cap[1]))
    return found
