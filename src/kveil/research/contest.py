"""Several k-means methods on the same rows at the same promise, run by run. What a version lacks is left out, by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.research.seeders import SEEDERS, private_seeds

Rows = NDArray[np.floating[Any]]
NOT_PRIVATE = "non-private k-means++"


@dataclass(frozen=True)
class Contestant:
    """A method under the name that figures show. `method` is one of PrivateKMeans, private seeds alone (`SEEDERS`), or None for
    scikit-learn without privacy."""

    name: str
    method: str | None
    colour: str  # Okabe and Ito, and a grey: told apart by everyone
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """Rows in a public domain, and how often everyone runs."""

    rows: Rows
    domain: Mapping[str, Any]
    delta: float
    runs: int


@dataclass(frozen=True)
class Cell:
    """All runs of one contestant at one k and epsilon. Costs are mean squared distances to the nearest centre: not private."""

    name: str
    k: int
    epsilon: float | None
    costs: tuple[float, ...]
    seconds: float  # mean of one fit

    @property
    def mean(self) -> float:
        return float(np.mean(self.costs))

    @property
    def deviation(self) -> float:
        return float(np.std(self.costs, ddof=1)) if len(self.costs) > 1 else 0.0


def absent(contestant: Contestant, setting: Setting, k: int) -> str | None:
    """Why a contestant cannot run here, or None; from parameters alone."""
    from kveil.models.private_kmeans import METHODS

    if contestant.method is None or contestant.method in SEEDERS:
        return None
    if contestant.method not in ("auto", *METHODS):
        return f'this version of kveil has no method "{contestant.method}".'
    try:
        _model(contestant, setting, k, 1.0, 0).guarantee(n_features=setting.rows.shape[1])
    except InvalidValue as error:
        return str(error)
    return None


def run(contestant: Contestant, setting: Setting, k: int, epsilon: float) -> Cell:
    """Fit and score, `setting.runs` times. Noise is fresh each time; the run's number steers public choices."""
    costs, start = [], time.perf_counter()
    spent_scoring = 0.0
    for number in range(setting.runs):
        centers = centers_of(contestant, setting, k, epsilon, number)
        scoring = time.perf_counter()
        costs.append(cost(setting.rows, centers))
        spent_scoring += time.perf_counter() - scoring
    seconds = (time.perf_counter() - start - spent_scoring) / setting.runs
    return Cell(contestant.name, k, None if contestant.method is None else epsilon, tuple(costs), seconds)


def cost(rows: Rows, centers: NDArray[np.float64]) -> float:
    """The mean squared distance of rows to their nearest centre."""
    from sklearn.metrics import pairwise_distances_argmin_min

    _, distances = pairwise_distances_argmin_min(rows, centers.astype(rows.dtype))
    return float(np.mean(np.square(distances, dtype=np.float64)))


def centers_of(contestant: Contestant, setting: Setting, k: int, epsilon: float, number: int) -> NDArray[np.float64]:
    if contestant.method in SEEDERS:
        return private_seeds(contestant.method, setting.rows, k, epsilon, setting.domain).inside
    if contestant.method is not None:
        return np.asarray(_model(contestant, setting, k, epsilon, number).fit(setting.rows).cluster_centers_)
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged, or found fewer places than k
        return np.asarray(KMeans(k, n_init=1, random_state=number).fit(setting.rows).cluster_centers_, dtype=np.float64)


def _model(contestant: Contestant, setting: Setting, k: int, epsilon: float, number: int) -> Any:
    from kveil.models.private_kmeans import PrivateKMeans

    promise = {"epsilon": epsilon, "delta": setting.delta, **setting.domain}
    how: dict[str, Any] = {"method": contestant.method, "random_state": number, **contestant.options}
    return PrivateKMeans(k, **promise, **how)
