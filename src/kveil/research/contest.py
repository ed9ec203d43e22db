"""Several k-means methods on the same rows at the same promise, run by run. What a version lacks is left out, by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import floor_delta, floor_epsilon, zcdp_epsilon, zcdp_rho
from kveil.research.seeders import SEEDERS, private_seeds
from kveil.tuning import Lloyd

Rows = NDArray[np.floating[Any]]
NOT_PRIVATE = "non-private k-means++"


@dataclass(frozen=True)
class Setting:
    """Rows in a public domain, and how often everyone runs."""

    rows: Rows
    domain: Mapping[str, Any]
    delta: float
    runs: int


Options = Mapping[str, Any]


@dataclass(frozen=True)
class Contestant:
    """A method under the name that figures show. `method` is one of PrivateKMeans, private seeds alone (`SEEDERS`), or None for
    scikit-learn without privacy. `options` may follow from the setting, k and the number of the run. With `sulq_steps` half of
    the budget is kept for so many Lloyd steps from the centres that the method found."""

    name: str
    method: str | None
    colour: str  # Okabe and Ito, a grey and a wine red: told apart by everyone
    options: Options | Callable[[Setting, int, int], Options] = field(default_factory=dict)
    sulq_steps: int = 0
    most_runs: int | None = None  # for slow ones that are far from all others


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

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(len(self.costs))


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
    spent_scoring, runs = 0.0, min(setting.runs, contestant.most_runs or setting.runs)
    for number in range(runs):
        centers = centers_of(contestant, setting, k, epsilon, number)
        scoring = time.perf_counter()
        costs.append(cost(setting.rows, centers))
        spent_scoring += time.perf_counter() - scoring
    seconds = (time.perf_counter() - start - spent_scoring) / runs
    return Cell(contestant.name, k, None if contestant.method is None else epsilon, tuple(costs), seconds)


def cost(rows: Rows, centers: NDArray[np.float64]) -> float:
    """The mean squared distance of rows to their nearest centre."""
    from sklearn.metrics import pairwise_distances_argmin_min

    _, distances = pairwise_distances_argmin_min(rows, centers.astype(rows.dtype))
    return float(np.mean(np.square(distances, dtype=np.float64)))


def centers_of(contestant: Contestant, setting: Setting, k: int, epsilon: float, number: int) -> NDArray[np.float64]:
    if contestant.method in SEEDERS:
        return private_seeds(contestant.method, setting.rows, k, epsilon, setting.domain).inside
    if contestant.sulq_steps:
        return _with_steps_after(contestant, setting, k, epsilon, number)
    if contestant.method is not None:
        return np.asarray(_model(contestant, setting, k, epsilon, number).fit(setting.rows).cluster_centers_)
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged, or found fewer places than k
        return np.asarray(KMeans(k, n_init=1, random_state=number).fit(setting.rows).cluster_centers_, dtype=np.float64)


def _with_steps_after(contestant: Contestant, setting: Setting, k: int, epsilon: float, number: int) -> NDArray[np.float64]:
    """The method and then plain Lloyd steps from its centres, which are public once released. Both are charged to one ledger
    of (epsilon, delta), which refuses what would pass it."""
    ledger = Ledger.memory("both", epsilon, setting.delta, relation="add-remove")
    half = half_of(epsilon, setting.delta)
    found = _model(contestant, setting, k, half, number, ledger=ledger).fit(setting.rows).cluster_centers_
    steps = Contestant("steps", "lloyd", "", plain_steps(contestant.sulq_steps, found))
    return np.asarray(_model(steps, setting, k, half, number, ledger=ledger).fit(setting.rows).cluster_centers_)


def plain_steps(n_steps: int, start: Any) -> Options:
    """SuLQ k-means: Lloyd steps from a public start that leave centres without rows where they are."""
    return {"n_steps": n_steps, "init": start, "tuning": Lloyd(reseed=False)}


def half_of(epsilon: float, delta: float) -> float:
    """The epsilon of a fit that spends half of what (epsilon, delta) allows: half of rho, or of epsilon itself if delta is 0."""
    if not delta:
        return epsilon / 2
    exact = floor_delta(delta)
    half = zcdp_rho(floor_epsilon(epsilon), exact) / 2
    return zcdp_epsilon(half - Fraction(1, 2**39), exact)  # a unit less, since the way to epsilon and back is rounded


def _model(contestant: Contestant, setting: Setting, k: int, epsilon: float, number: int, ledger: Ledger | None = None) -> Any:
    from kveil.models.private_kmeans import PrivateKMeans

    promise = {"epsilon": epsilon, "delta": setting.delta, **setting.domain}
    options = contestant.options
    how: dict[str, Any] = {"method": contestant.method, "random_state": number}
    how |= options(setting, k, number) if callable(options) else options
    return PrivateKMeans(k, **promise, **how, ledger=ledger)
