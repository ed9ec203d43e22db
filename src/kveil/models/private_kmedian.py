"""Private k-median for a curator: one party holds the table and lets out only the centres."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import PrivacyUnit, Relation
from kveil.methods.base import Method
from kveil.methods.medians.methods import CandidateMedians, PublicStart, TreeMedians
from kveil.methods.task import check_choice, check_count
from kveil.methods.universe.counts import Counts
from kveil.methods.universe.search import LocalSearch
from kveil.methods.universe.task import PUBLIC_UNIVERSE, UniverseTask, check_centers, check_start
from kveil.models.curator import CuratorModel
from kveil.models.demand import as_column, check_meant
from kveil.models.reading import Blocks
from kveil.source import Source
from kveil.space.bounds import BoundsLike
from kveil.space.places import Places
from kveil.space.universe import Space, check_universe
from kveil.tuning import Counts as CountsTuning
from kveil.tuning import KMedian
from kveil.tuning import LocalSearch as LocalSearchTuning

Number = float | ArrayLike
METHODS: dict[str, type[Method]] = {"tree": TreeMedians, "candidates": CandidateMedians, "weiszfeld": PublicStart}
UNIVERSE_METHODS: dict[str, type[Method]] = {"counts": Counts, "local-search": LocalSearch}


class PrivateKMedian(CuratorModel):
    """k-median centres of rows about people, with differential privacy: a low sum of distances, not of their squares.

    Rows far from all others pull a mean as hard as they are far, and a median no harder than the rest: use this where some
    rows are errors or outliers, and `PrivateKMeans` where all rows count as they are. With a `universe`, such as the junctions
    of a road network, centres are chosen among its points and distances are its own.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres.
    epsilon : float, default 1
        The promise: smaller is more private and noisier. float("inf") gives the noise-free result and a guarantee that
        says "none".
    delta : float, default 0
        0 is a pure promise. With delta > 0 Gaussian noise is used above 3 features, where it is smaller, and always if
        the ledger adds zCDP.
    universe : Graph, Euclidean, Manhattan, Precomputed or Metric, optional
        Public points with a metric: kveil.Graph, Euclidean, Manhattan, Precomputed or Metric. Rows are then a demand on
        it: one column of indices of points, or their coordinates where they have some (the nearest point counts). A row
        that is no index is point 0. The universe must not be made from the rows: its points, order and distances count as
        known to all.
    bounds : Bounds, pair, list of pairs or dict, optional
        Public low and high of the features: (low, high) for all of them; [(low, high), ...], one pair per feature; ([low,
        ...], [high, ...]); {name: (low, high)}; or kveil.Bounds. Two features in another nesting, such as a list of
        lists, are refused if they can be read in two ways. Rows outside are clipped; a row with a missing or infinite
        value counts as the middle of the bounds. Not with a universe.
    center : array-like or float, optional
        The middle of a public ball; default 0.
    radius : float, optional
        The radius of a public ball, instead of bounds.
    method : {"auto", "tree", "candidates", "weiszfeld", "counts", "local-search"}, default "auto"
        Without a universe, where to start: "tree" (noisy counts of a public tree), "candidates" (private swaps among
        cubes, the paper's way), "weiszfeld" (a public start, see init), or "auto": the tree, which measured better,
        unless init is given. Private medians follow in every case, see tuning. With a universe: "counts" (noisy counts of
        a public partition, then an ordinary search; "auto" is this one) or "local-search" (swaps drawn by the exponential
        mechanism, as in "k-Median Clustering via Metric Embedding", corrected).
    init : str or array-like, default "auto"
        For "weiszfeld": "packing" (and "auto") or "spread" start without looking at data, as in PrivateKMeans; or a
        public (k, d) array. For "local-search": "hst" (and "auto"; noisy counts of a random tree), "k-median++" or
        "random" points of the universe, which cost nothing; or k public indices.
    objective : {"k-median", "k-means"}, default "k-median"
        "k-median". With a universe also "k-means", squared distances; without one use `PrivateKMeans` for that.
    n_steps : int or None
        Weiszfeld steps, fixed beforehand; default 4 (pure) or 12 (Gaussian), fewer if released values show that noise
        would drown them. For "local-search" private swaps, default 5.
    scaling : None, "bounds" or "private"
        Without a universe distances are Euclidean. None measures them in the units of the data; "bounds" after mapping
        the bounds of every feature to [-1, 1], which is what columns like age and income want; "private" in a box of mean
        -+ 4 deviations that 15 % of the budget finds, as in PrivateKMeans. Not with a universe, nor with radius.
    expected_rows : float or None
        A public order of magnitude, for choices only. Passing the number of rows of this table would publish it. "counts"
        divides the universe by it, and otherwise pays a twentieth of the budget for a noisy number.
    relation : "add-remove" or "replace-one", default "add-remove"
        "add-remove" (the number of rows is private) or "replace-one".
    ledger : Ledger or path, optional
        A Ledger, or the path of one, that this fit is charged to.
    tuning : object of kveil.tuning, optional
        kveil.tuning.KMedian(...), Counts(...) or LocalSearch(...), constants of the method.
    random_state : int, Generator or None
        Steers public choices only. Private noise takes no seed.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        The centres, in the units of the data.
    center_indices_ : array (k,)
        With a universe: the centres, as numbers of its points.
    cluster_weights_ : array (k,) or None
        Noisy shares of rows per cluster; they add up to 1.
    cluster_errors_ : array (k,)
        Standard error of each centre: the root mean squared length of the noise in it.
    cluster_column_errors_ : array (k, d) or None
        The same for every column.
    verdict_ : Verdict
        Is it any good? `good`, `rough` or `noise`, from released numbers alone.
    method_ : str
        The method that ran.
    guarantee_ : Guarantee
        What was promised and charged.
    release_ : Release
        All of this as one object, to be saved and passed on.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if they have any.

    Notes
    -----
    All attributes may be shared. Not private, and kept nowhere: what predict, transform and score return.

    - Private: the rows and, under add-remove, their number.  Public: all parameters, the columns and the universe.
    - Neighbours: tables that differ by one record (or one person: `kveil.read(X, person=...)`), added, removed or replaced.
    - Sensitivity: of counts, sums and costs of disjoint cells: `kveil.questions.cells`, `kveil.questions.swaps` and
      `kveil.desk.law.Law`; of pulls, weights and distances of places: `kveil.questions.medians`; with a universe:
      `kveil.questions.demand` ("counts") and `kveil.desk.walk.Walk` ("local-search").
    - Cost: exactly `guarantee()`, known before the data and charged before a row is read.
    - Not covered: running time; whatever is not released here.
    - Reference: Balcan, Dick, Liang, Mou, Zhang (2017) for private k-median; Weiszfeld (1937) for the steps; "k-Median
      Clustering via Metric Embedding: Towards Better Initialization with Differential Privacy" for universes.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import Graph, PrivateKMedian
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> model = PrivateKMedian(n_clusters=2, epsilon=1.0, bounds=(-5, 5), random_state=0).fit(X)
    >>> model.cluster_centers_.shape, model.guarantee_.epsilon
    ((2, 2), 1.0)

    >>> street = Graph.from_edges([[i, i + 1] for i in range(99)])  # 100 houses in a row
    >>> homes = np.repeat([10, 90], 500)
    >>> model = PrivateKMedian(n_clusters=2, universe=street, random_state=0).fit(homes)
    >>> sorted((model.center_indices_ // 50).tolist())
    [0, 1]
    """

    center_indices_: NDArray[np.int64]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        universe: Space | None = None,
        bounds: BoundsLike | None = None,
        center: Number | None = None,
        radius: float | None = None,
        method: Literal["auto", "tree", "candidates", "weiszfeld", "counts", "local-search"] = "auto",
        init: Literal["auto", "packing", "spread", "hst", "k-median++", "random"] | ArrayLike = "auto",
        objective: Literal["k-median", "k-means"] = "k-median",
        n_steps: int | None = None,
        scaling: Literal["bounds", "private"] | None = None,
        expected_rows: float | None = None,
        relation: Relation = "add-remove",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        tuning: KMedian | CountsTuning | LocalSearchTuning | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.universe = universe
        self.bounds = bounds
        self.center = center
        self.radius = radius
        self.method = method
        self.init = init
        self.objective = objective
        self.n_steps = n_steps
        self.scaling = scaling
        self.expected_rows = expected_rows
        self.relation = relation
        self.ledger = ledger
        self.tuning = tuning
        self.random_state = random_state

    @property
    def methods(self) -> Mapping[str, type[Method]]:
        return METHODS if self.universe is None else UNIVERSE_METHODS

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the cost of the rows: the sum of distances to the nearest centre (squared, for k-means). Not private.

        Distances are those of `transform`: of clipped rows, in the units of the data; with scaling="bounds" in half-widths of the
        bounds; with a universe those of the universe. It is a sum over rows, not an average.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        float
            At most 0; greater is better.
        """
        power = 2 if self.objective == "k-means" else 1
        return -float(sum((self._nearest(rows) ** power).sum() for rows in self._rows(X)))

    def _pick(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        check_choice("objective", self.objective, ("k-median", "k-means"))
        if self.universe is not None:
            self._check_universe(is_sparse)
        else:
            self._check_rows(is_sparse)
        return super()._pick(is_sparse, n_features)

    def _check_universe(self, is_sparse: bool) -> None:
        if is_sparse:
            raise InvalidValue(
                "a demand is one index, or one place, a row: a sparse matrix has neither. Pass an array of indices."
            )
        if self.bounds is not None or self.center is not None or self.radius is not None:
            raise InvalidValue(
                "a universe is its own domain: rows become its points, nothing is clipped. Leave out bounds, center and radius."
            )
        if self.scaling is not None:
            raise InvalidValue("a universe has its own distances, and no columns to scale. Leave out scaling.")
        if self.method in METHODS:
            raise InvalidValue(
                f'method="{self.method}" looks for centres anywhere in space. On a universe use "counts" or "local-search".'
            )

    def _check_rows(self, is_sparse: bool) -> None:
        if self.objective == "k-means":
            raise InvalidValue(
                'objective="k-means" for rows with coordinates is kveil.PrivateKMeans, which is made for it. Use that class.'
            )
        if self.method in UNIVERSE_METHODS:
            raise InvalidValue(
                f'method="{self.method}" chooses centres among the points of a public universe. Pass universe=kveil.Graph(...), '
                'Euclidean(...) or another, or use method="auto".'
            )
        if is_sparse:
            raise InvalidValue("PrivateKMedian takes dense rows: sparse ones are not supported. Pass X.toarray(), if it fits.")

    def _pointed(self) -> tuple[str, str] | None:
        if self.universe is not None:  # an init alone must not lead to private swaps, which are far worse: they are asked for
            return None if self.tuning is None else super()._pointed()
        return ("weiszfeld", "init belongs to it") if "init" in self._options() else None

    def _auto(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        if self.universe is not None:
            return "counts", "it measured far better than private swaps at equal epsilon"
        return "tree", "it measured better than candidates on contaminated mixtures"

    def _source(self, X: Any) -> Source:
        if self.universe is None:
            return super()._source(X)
        check_meant(X, check_universe(self.universe))
        return super()._source(as_column(X))

    def _width(self) -> int | None:
        return super()._width() if self.universe is None else 1  # charges do not depend on it

    def _assumptions(self) -> tuple[str, ...]:
        return () if self.universe is None else (PUBLIC_UNIVERSE,)

    def _task(
        self, used: str, n_features: int, unit: PrivacyUnit, names: tuple[str, ...] | None = None, max_rows: int = 2**40,
        *, is_sparse: bool = False, blocks: Blocks = (), missing: Any = "middle",
    ) -> Any:  # fmt: skip
        if self.universe is None:
            return super()._task(used, n_features, unit, names, max_rows, is_sparse=is_sparse, blocks=blocks, missing=missing)
        if blocks:
            raise InvalidValue("a universe has points, and no columns of categories. Leave out categories.")
        space = check_universe(self.universe)
        n_clusters = check_centers(self.n_clusters, space)
        epsilon, delta, rows = self._terms()
        return UniverseTask(
            n_clusters, epsilon, delta, Places(space, n_features), self.objective, self.relation, unit,
            self.methods[used].tuning() if self.tuning is None else self.tuning, max_rows,
            n_steps=None if self.n_steps is None else check_count("n_steps", self.n_steps),
            init=check_start(self.init, n_clusters, space.n_points), expected_rows=rows,
            is_zcdp=bool(delta) and self._rule() == "zcdp",
        )  # fmt: skip

    def _keep_centers(self, centers: NDArray[Any], task: Any) -> None:
        for name in ("center_indices_", "cluster_centers_"):
            self.__dict__.pop(name, None)  # of an earlier fit of another kind
        if not isinstance(task, UniverseTask):
            self.cluster_centers_ = centers
            return
        self.center_indices_ = centers
        if task.universe.points is not None:
            self.cluster_centers_ = task.universe.points[centers]

    def _labels(self, rows: Any) -> NDArray[np.int32]:
        if not isinstance(self._domain, Places):
            return super()._labels(rows)
        return np.asarray(self._domain.space.nearest(self.center_indices_)[0][self._domain.encode(rows)])

    def _distances(self, rows: Any) -> NDArray[np.float64]:
        if not isinstance(self._domain, Places):
            return super()._distances(rows)
        apart = self._domain.space.distances(self.center_indices_) * self._domain.space.step
        return np.asarray(apart.T[self._domain.encode(rows)])

    @property
    def _n_features_out(self) -> int:
        return len(self.center_indices_) if isinstance(self._domain, Places) else len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
