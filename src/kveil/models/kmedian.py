"""k-median without privacy: k points of a universe that serve a demand best."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from kveil.errors import InvalidType, InvalidValue
from kveil.methods.task import check_choice, check_count
from kveil.models.paying import public_generator
from kveil.solve.kmedian import INITS, default_effort, solve_kmedian
from kveil.solve.loss import OBJECTIVES, Loss
from kveil.solve.metric_seeding import demanded
from kveil.space.universe import Space, check_universe


class KMedian(ClusterMixin, BaseEstimator):
    """k centres among the points of a universe with a low sum of distances, in any metric. Not private.

    For public demand, or as the yardstick beside `PrivateKMedian`: whatever is learned here shows its data.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres; at most the number of points.
    init : str or array-like, default "k-median++"
        Where a search starts. "k-median++", "hst" (a tree of the universe: the paper's) or "random".
    objective : {"k-median", "k-means"}, default "k-median"
        "k-median" (distances) or "k-means" (squared distances; centres are still points of the universe).
    n_perturbations : int or None
        How often a few centres are replaced at random and the search goes on from there, keeping what is not worse. 0 is
        one local optimum, within a percent or two of the best; 500 found the best known on all p-median instances tried.
    n_restarts : int or None
        Searches from fresh seeds, of which the cheapest is kept. Where neither is given: one search with 50 perturbations
        on a Graph and on any universe of up to 4096 points; three searches without on a Graph too large for a table; two
        for 50 centres or more where all points are tried; and one search elsewhere. Else None is 0 perturbations or 1 search.
    max_steps : int, default 100
        Most passes over the candidates in one search; it ends before, when no swap with a candidate lowers the cost.
    random_state : int, Generator or None
        Seeds, order of candidates and perturbations.

    Attributes
    ----------
    center_indices_ : array (k,)
        The centres, as numbers of the points of the universe.
    cluster_centers_ : array (k, d) or None
        Their coordinates, where the points have some.
    labels_ : array (n,)
        The nearest centre of every point.
    cost_ : float
        The weighted sum of (squared) distances, in the user's units, as exact as the steps of the universe.

    Examples
    --------
    >>> from kveil import KMedian, Precomputed
    >>> line = Precomputed([[0, 1, 7, 8], [1, 0, 6, 7], [7, 6, 0, 1], [8, 7, 1, 0]])
    >>> model = KMedian(2, random_state=0).fit(line, sample_weight=[9, 1, 1, 9])
    >>> sorted(model.center_indices_.tolist()), model.cost_
    ([0, 3], 2.0)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Literal["k-median++", "hst", "random"] = "k-median++",
        objective: Literal["k-median", "k-means"] = "k-median",
        n_perturbations: int | None = None,
        n_restarts: int | None = None,
        max_steps: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.objective = objective
        self.n_perturbations = n_perturbations
        self.n_restarts = n_restarts
        self.max_steps = max_steps
        self.random_state = random_state

    def fit(self, space: Space, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find centres for a demand of `sample_weight` at every point of `space`, 1 each if not given.

        Parameters
        ----------
        space : Euclidean, Manhattan, Precomputed, Graph or Metric
            The universe.
        y : ignored
            There for the interface of scikit-learn.
        sample_weight : array-like, optional
            (n_points,) the demand at every point.
        """
        check_universe(space)
        if y is not None:
            raise InvalidType(
                "y is there for scikit-learn alone. A demand is weights, one a point: sample_weight=numpy.bincount(people, "
                "minlength=space.n_points)."
            )
        check_choice("init", self.init, INITS)
        check_choice("objective", self.objective, OBJECTIVES)
        demand = demanded(space, self.n_clusters, sample_weight, "sample_weight")
        restarts, shakes = self._effort(default_effort(space, demand, self.n_clusters))
        found = solve_kmedian(
            space, demand, int(self.n_clusters), public_generator(self.random_state), objective=self.objective, init=self.init,
            n_restarts=restarts, n_perturbations=shakes, max_rounds=check_count("max_steps", self.max_steps),
        )  # fmt: skip
        unit = Loss.within(space.diameter, self.objective, demand.total).worth(space.step) * demand.unit
        self.space_, self.center_indices_, self.cost_ = space, found.centers, found.cost * unit
        self.cluster_centers_ = None if space.points is None else space.points[found.centers]
        self.labels_: NDArray[np.int32] = space.nearest(found.centers)[0]
        return self

    def _effort(self, usual: tuple[int, int]) -> tuple[int, int]:
        if self.n_restarts is self.n_perturbations is None:
            return usual
        restarts = 1 if self.n_restarts is None else check_count("n_restarts", self.n_restarts)
        return restarts, 0 if self.n_perturbations is None else _check_natural(self.n_perturbations)

    def predict(self, rows: ArrayLike) -> NDArray[np.int32]:
        """The nearest centre of every row: of a point of the universe by number, or of the point nearest to its coordinates.

        Parameters
        ----------
        rows : array
            Numbers of points (n,), or coordinates (n, d).

        Returns
        -------
        array (n,) of int32
            The number of the nearest centre, per row.
        """
        check_is_fitted(self)
        return np.asarray(self.labels_[self.space_.locate(_checked(self.space_, rows))])


def _check_natural(value: Any) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else check_count("n_perturbations", value)


def _checked(space: Space, rows: ArrayLike) -> NDArray[Any]:
    """Rows as they are, once it is known that none of them would stand for a point by default: nothing is secret here."""
    given = np.asarray(rows)
    if given.dtype.kind not in "iuf":
        return given  # names of vertices, or for `locate` to refuse
    has_coordinates = given.ndim == 2 and space.points is not None and given.shape[1] == space.points.shape[1]
    is_meant = np.isfinite(given) if has_coordinates else (given >= 0) & (given < space.n_points) & (given == np.floor(given))
    if not is_meant.all():
        raise InvalidValue(
            f"rows must be numbers of points, 0 to {space.n_points - 1}, or finite coordinates where the universe has them."
        )
    return given
