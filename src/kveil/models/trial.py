"""Fits of public rows, with budgets that make the noise as large beside them as it would be beside the rows of a whole table.

Noise acts on a result by its size over the number of rows. A sample of one fifth of the rows, fitted with five times the epsilon
(noise of pure mechanisms is as wide as 1 / epsilon; Gaussian noise as 1 / sqrt(rho), so with 25 times the rho) has the same
deviations over rows, and so the same thresholds, cells and shares. What it misses is the sampling noise of the sample itself, and
that counts are whole numbers: both matter below about 1000 rows.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kveil.arrays import Floats
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import zcdp_epsilon
from kveil.models.curator import CuratorModel
from kveil.models.paying import open_ledger
from kveil.models.public_rows import PublicRows
from kveil.release import Release
from kveil.release.answers import distances, domain_of, scaling_of
from kveil.solve.wkmedian import thorough_kmedian
from kveil.space.euclidean import clip
from kveil.space.unit_ball import is_cosine, unit

MOST_ROWS = 20_000  # of a sample: more take longer and tell little more
FEW_ROWS = 1000
LARGEST = 1024.0  # epsilon: budgets end here, where noise is far below one row
N_STARTS = 3  # of the non-private clustering that costs are compared with


@dataclass(frozen=True)
class Trial:
    """Costs of private fits of public rows over the cost without privacy, for one epsilon of the whole table.

    used: the epsilon of the fits of the sample. is_cut: it would be above 1024, where budgets end.
    seconds: processor time of each fit.
    """

    epsilon: float
    used: float
    is_cut: bool
    ratios: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return float(np.mean(self.ratios))

    @property
    def error(self) -> float | None:
        """Standard error of the mean over runs; None for a single run."""
        return float(np.std(self.ratios, ddof=1) / len(self.ratios) ** 0.5) if len(self.ratios) > 1 else None


def error_cell(error: float | str | None, n_runs: int) -> str:
    """A cell of a table of trials, or its heading; nothing where one run tells no error."""
    return "" if n_runs == 1 or error is None else f"  {error if isinstance(error, str) else f'{error:.3f}':>8}"


class Trials:
    """Fits of one public table, with the noise of a table `factor` times as long. No ledger of the caller is charged.

    start: other public rows, which a fit is given as `fit(X, public=...)` will be.
    """

    def __init__(
        self, public: PublicRows, factor: float, n_runs: int, rng: np.random.Generator, start: PublicRows | None = None
    ) -> None:
        self.public, self.factor, self.n_runs, self._rng, self._start = public, factor, n_runs, rng, start
        self._floors: dict[Any, float] = {}
        self._seed = int(rng.integers(2**31))  # of the yardstick

    def run(self, model: CuratorModel) -> Trial:
        """`n_runs` fits with fresh noise. Refused, as `fit` would, if the parameters do not fit the columns."""
        used, is_cut = scaled_epsilon(model, self.public.rows.shape[1], self.factor)
        ratios, seconds = [], []
        for _ in range(self.n_runs):
            rows = None if model.expected_rows is None else max(1.0, model.expected_rows / self.factor)
            trial = stand_in(model, used, expected_rows=rows, random_state=int(self._rng.integers(2**31)))
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about widths or noise: of a trial, not of a result
                trial.fit(self.public.table, **({} if self._start is None else {"public": self._start.table}))
            seconds.append(time.process_time() - begun)
            ratios.append(self._ratio(trial.release_))
        return Trial(float(model.epsilon), used, is_cut, tuple(ratios), tuple(seconds))

    def _ratio(self, release: Release) -> float:
        """Cost of released centres over that of a non-private clustering, both of the clipped rows, in the model's distance."""
        parameters, rows = release.parameters, self.public.rows
        domain, scaling = domain_of(parameters, rows.shape[1]), scaling_of(parameters)
        is_directions = is_cosine(domain)
        power = 1 if release.kind == "PrivateKMedian" or is_directions else 2
        near = distances(rows, release.centers, domain, scaling).min(axis=1)
        box = str({name: parameters.get(name) for name in ("bounds", "center", "radius", "scaling", "metric")})
        key = (power, len(release.centers), box)
        if key not in self._floors:
            inside = clip(domain, rows)
            scaled = inside / domain.half if scaling == "bounds" else inside
            self._floors[key] = self._floor(scaled, key[1], power, is_directions=is_directions)
        return float((near**power).sum() / self._floors[key])

    def _floor(self, rows: Floats, k: int, power: int, *, is_directions: bool) -> float:
        """Cost without privacy: scikit-learn's k-means, its centres made unit where rows are; or a k-median of the same care."""
        if len(np.unique(rows, axis=0)) <= k:
            raise InvalidValue(
                f"these public rows have at most {k} different ones, which {k} centres fit without any cost. Pass more of them, "
                "or use fewer clusters."
            )
        if power == 1 and not is_directions:
            centers = thorough_kmedian(rows, np.ones(len(rows)), k, np.random.default_rng(self._seed))
        else:
            from sklearn.cluster import KMeans

            centers = KMeans(k, n_init=N_STARTS, random_state=self._seed).fit(rows).cluster_centers_
        if is_directions:
            return float((1 - (rows @ unit(centers).T).max(axis=1)).sum())
        near = np.min([((rows - center) ** 2).sum(axis=1) for center in centers], axis=0)
        return float((near ** (power / 2)).sum())


def scaled_epsilon(model: CuratorModel, n_features: int, factor: float) -> tuple[float, bool]:
    """The epsilon that makes noise `factor` times as small, and whether budgets end before it.

    A pure budget is multiplied by the factor, one of zCDP by its square: epsilon itself would be wrong there.
    """
    is_pure, loss, delta = _loss(model, n_features)
    if factor == 1:
        return float(model.epsilon), False
    wanted = factor * float(loss) if is_pure else zcdp_epsilon(Fraction(factor) ** 2 * loss, delta)
    used = min(float(wanted), LARGEST)
    if _loss(stand_in(model, used), n_features)[0] != is_pure:
        raise InvalidValue(
            "with delta > 0 this method picks the smaller of two kinds of noise, and picks another for a sample of this size. "
            "Use delta=0 here, or a sample as large as the table."
        )
    return used, wanted > LARGEST


def _loss(model: CuratorModel, n_features: int) -> tuple[bool, Fraction, Fraction]:
    """Whether the budget is pure, how much it is (epsilon or rho), and its delta."""
    plan = model.prepared(n_features)[1].budget.plan()
    if plan is None:
        raise InvalidValue("epsilon=inf adds no noise, so there is nothing to plan or compare. Pass a finite epsilon.")
    if all(charge.rho is None for charge in plan.charges):
        return True, Fraction(float(model.epsilon)), Fraction(0)
    return False, sum((charge.zcdp() or Fraction(0) for charge in plan.charges), Fraction(0)), plan.delta


def stand_in(model: CuratorModel, epsilon: float | None = None, **changes: Any) -> CuratorModel:
    """A model with the same parameters that charges no ledger of the caller: only the rule of that ledger is kept."""
    changes = {"ledger": None, "epsilon": model.epsilon if epsilon is None else epsilon, **changes}
    if model.ledger is not None and open_ledger(model.ledger).rule == "zcdp":
        changes["ledger"] = Ledger.memory("trial", changes["epsilon"], model.delta, relation=model.relation, rule="zcdp")
    return type(model)(**{**model.get_params(deep=False), **changes})


def check_model(model: Any) -> CuratorModel:
    """A curator's model of rows with coordinates; others are refused with a reason."""
    if not isinstance(model, CuratorModel):
        raise InvalidType(
            f"the model must be a PrivateKMeans or a PrivateKMedian, not {type(model).__name__}. Streams and federations are not "
            "supported; for devices that trust nobody there is `kveil collect plan`."
        )
    if getattr(model, "universe", None) is not None:
        raise InvalidValue("universes are not supported here: rows must have coordinates. Pass a model with bounds.")
    if model.n_clusters == "auto":
        raise InvalidValue('n_clusters="auto" depends on the rows. Pass a number, such as the largest of k_range.')
    return model
