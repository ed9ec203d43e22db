"""Private k-means for a curator: one party holds the table and lets out only the centres."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from kveil.errors import InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Relation
from kveil.methods.base import Method
from kveil.methods.candidates import Candidates
from kveil.methods.grid import UniformGrid
from kveil.methods.lloyd import Lloyd
from kveil.methods.mean import Mean
from kveil.methods.sample_aggregate import SampleAggregate
from kveil.methods.spherical import Spherical
from kveil.methods.task import check_choice, check_clusters
from kveil.methods.tree.method import Tree
from kveil.models.curator import CuratorModel
from kveil.models.public_rows import check_sample
from kveil.models.reading import Blocks
from kveil.questions.frame import FEW_COLUMNS, stays_sparse
from kveil.solve.choosing import check_range
from kveil.source import Source
from kveil.space.bounds import BoundsLike
from kveil.space.unit_ball import UnitBall

Number = float | ArrayLike
METHODS: dict[str, type[Method]] = {
    "tree": Tree,
    "lloyd": Lloyd,
    "grid": UniformGrid,
    "candidates": Candidates,
    "sample-aggregate": SampleAggregate,
    "mean": Mean,
    "spherical": Spherical,
}
OF_DIRECTIONS = ("tree", "spherical")  # methods for metric="cosine"
CHOOSING = ("tree", "grid")  # methods that can choose the number of clusters by what they released
DEFAULT_RANGE = (2, 20)


class PrivateKMeans(CuratorModel):
    """k-means centres of rows about people, with differential privacy.

    Parameters
    ----------
    n_clusters : int or "auto", default 8
        Number of centres; or "auto": as many as noisy counts of cells suggest, chosen inside the same budget (method
        "tree" or "grid"). A note of the release says whether the number is clear or a guess; `release_.cost_curve()`
        shows what others would cost, and `release_.recluster(k)` gives them, both for no charge.
    k_range : (int, int), optional
        (low, high) for "auto", default (2, 20), at most 100. Without signal there are `low` centres.
    epsilon : float, default 1
        The promise: smaller is more private and noisier. float("inf") gives the noise-free result and a guarantee that
        says "none".
    delta : float, default 0
        0 is a pure promise. With delta > 0 Gaussian noise is used where it is smaller (for "lloyd" judged by its size,
        for "tree" and "candidates" above 3 features), and always if the ledger adds zCDP.
    bounds : Bounds, pair, list of pairs or dict, optional
        Public low and high of the features: (low, high) for all of them; [(low, high), ...], one pair per feature; ([low,
        ...], [high, ...]); {name: (low, high)}; or kveil.Bounds. Two features in another nesting, such as a list of
        lists, are refused if they can be read in two ways. Rows outside are clipped; a row with a missing or infinite
        value counts as the middle of the bounds, so fill or drop such rows beforehand, each by itself and with public
        values.
    center : array-like or float, optional
        The middle of a public ball; default 0.
    radius : float, optional
        The radius of a public ball, instead of bounds.
    method : {"auto", "tree", "lloyd", "grid", "candidates", "sample-aggregate", "mean", "spherical"}, default "auto"
        "tree" (noisy counts of a public tree, then relative steps), "lloyd" (DP-Lloyd), "grid" (noisy counts of a uniform
        grid, at most 3 features), "candidates" (cubes that many rows share, swaps among them, one recovery: the corrected
        algorithm of a paper), "sample-aggregate" (average of many blocks of rows, a baseline), "mean" (one mean, k times:
        the floor to beat), "spherical" (noisy sums of unit rows in columns that matter, for metric="cosine"), or "auto":
        the tree; DP-Lloyd if init or n_steps are given, which belong to it; or the method that tuning belongs to; for
        metric="cosine" "spherical" where rows are sparse, have more than 1000 columns, and delta > 0. Sparse rows are for
        "tree", "lloyd", "candidates", "mean" and "spherical".
    metric : {"euclidean", "cosine"}, default "euclidean"
        "euclidean", or "cosine" for text, tags and embeddings: every row is made unit, by itself and for free, and
        centres are unit vectors. It needs no bounds and takes none. A row of zeros, or with a missing value, is no
        direction: it is read as 0, "spherical" counts it nowhere, and `predict` says 0. `transform` is 1 minus the
        cosine, and `score` the mean cosine of rows with their centre.
    init : str or array-like, default "auto"
        "packing" (and "auto": random centres as far from each other and the walls as fits) or "spread" (k-means of even
        points) start without looking at data; or a public (k, d) array. For "lloyd" also "noisy-sample" (k-means of a few
        rows with noise) and "variates" (private k-variates++), which spend a quarter of the budget: for study, never
        picked by "auto".
    n_steps : int or None
        Lloyd steps, fixed beforehand; default 5, or from expected_rows.
    scaling : None, "bounds" or "private"
        None measures distance in the units of the data; "bounds" after mapping the bounds of every feature to [-1, 1],
        which is what columns like age and income want (not with radius); "private" where public bounds are far wider than
        what the columns hold: 15 % of the budget finds a mean and a deviation of every column, and the fit runs in the
        box of mean -+ 4 deviations, mapped to [-1, 1] (dense rows, 1 to 64 columns, not "lloyd" or "mean").
        `release_.parameters` then have that box as "bounds", and what it came from as "scaled_by". Without scaling a
        column more than 100 times as wide as another gives a `kveil.errors.ScaleWarning`. A scaler fitted on the rows
        would not be private.
    expected_rows : float or None
        A public order of magnitude, for choices only. Passing the number of rows of this table would publish it.
    relation : "add-remove" or "replace-one", default "add-remove"
        "add-remove" (the number of rows is private) or "replace-one".
    ledger : Ledger or path, optional
        A Ledger, or the path of one, that this fit is charged to.
    tuning : object of kveil.tuning, optional
        Constants of the method, for example kveil.tuning.Lloyd(...).
    random_state : int, Generator or None
        Steers public choices (the start) only. Private noise takes no seed.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        The centres, in the units of the data.
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

    - Private: the rows and, under add-remove, their number.  Public: all parameters and the columns.
    - Neighbours: tables that differ by one record (or one person: `kveil.read(X, person=...)`), added, removed or replaced.
    - Sensitivity: of counts, sums and costs: the `parts` of each question, `kveil.questions`, and `kveil.desk.law.Law`; of
      averages: `kveil.desk.block_centers.BlockCenters`; of private starts: `kveil.desk.noisy_sample.NoisySample`,
      `bounded_share.BoundedShare`, `seeds.LaplaceSeeds`.
    - Cost: exactly `guarantee()`, known before the data and charged before a row is read.
    - Not covered: running time; whatever is not released here.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import PrivateKMeans
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> model = PrivateKMeans(n_clusters=2, epsilon=1.0, bounds=(-5, 5), random_state=0).fit(X)
    >>> model.cluster_centers_.shape, model.guarantee_.epsilon
    ((2, 2), 1.0)
    """

    methods: ClassVar[Mapping[str, type[Method]]] = METHODS

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        k_range: tuple[int, int] | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: BoundsLike | None = None,
        center: Number | None = None,
        radius: float | None = None,
        method: Literal["auto", "tree", "lloyd", "grid", "candidates", "sample-aggregate", "mean", "spherical"] = "auto",
        metric: Literal["euclidean", "cosine"] = "euclidean",
        init: Literal["auto", "spread", "packing", "noisy-sample", "variates"] | ArrayLike = "auto",
        n_steps: int | None = None,
        scaling: Literal["bounds", "private"] | None = None,
        expected_rows: float | None = None,
        relation: Relation = "add-remove",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        tuning: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.k_range = k_range
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.center = center
        self.radius = radius
        self.method = method
        self.metric = metric
        self.init = init
        self.n_steps = n_steps
        self.scaling = scaling
        self.expected_rows = expected_rows
        self.relation = relation
        self.ledger = ledger
        self.tuning = tuning
        self.random_state = random_state

    def _clusters(self, used: str, n_features: int, is_sparse: bool) -> tuple[int, tuple[int, int] | None]:
        if not isinstance(self.n_clusters, str):
            if self.k_range is not None:
                raise InvalidValue('k_range is what n_clusters="auto" chooses from. Leave it out, or pass n_clusters="auto".')
            return super()._clusters(used, n_features, is_sparse)
        check_choice("n_clusters", self.n_clusters, ("auto",))
        low, high = check_range(DEFAULT_RANGE if self.k_range is None else self.k_range)
        if used not in CHOOSING:
            raise InvalidValue(
                f'n_clusters="auto" reads noisy counts of cells, which method={" and ".join(map(repr, CHOOSING))} have and '
                f"{used!r} has not. Use one of these, or pass a number."
            )
        if is_sparse and stays_sparse(n_features, getattr(self.tuning, "nonzeros", None)):
            raise InvalidValue(
                f'n_clusters="auto" is for dense rows, or sparse ones of at most {FEW_COLUMNS} columns without tuning.nonzeros. '
                "Pass a number."
            )
        return check_clusters(high, n_features), (low, high)

    def _sample(self, public: Any, X: Any, source: Source, used: str, task: Any) -> Any:
        if used != "tree":
            raise InvalidValue(f'public is for method="tree", and this fit uses "{used}". Leave out one of the two.')
        if source.is_sparse and stays_sparse(source.n_columns, task.tuning.nonzeros):
            raise InvalidValue(
                f"public is for dense rows, or sparse ones of at most {FEW_COLUMNS} columns: nothing tells yet whether a sample "
                "fits wide sparse rows. Leave it out, or pass a dense table."
            )
        if task.k_range is not None:
            raise InvalidValue('n_clusters="auto" reads cells of the tree, which a public sample replaces. Pass a number.')
        return check_sample(public, X, source, task.n_clusters)

    def _auto(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        if self.metric == "cosine":
            is_wide = is_sparse and n_features > FEW_COLUMNS
            if is_wide and (self.delta > 0 or self.epsilon == float("inf")):
                return "spherical", "it does best for sparse directions of many columns"
            return "tree", "pure noise on so many columns needs tuning.nonzeros" if is_wide else "it is the best for dense rows"
        return "tree", "it does best for sparse rows too" if is_sparse else "it is the best for dense rows"

    def _pick(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        is_cosine = check_choice("metric", self.metric, ("euclidean", "cosine")) == "cosine"
        given = [name for name in ("bounds", "center", "radius", "scaling") if getattr(self, name) is not None]
        if is_cosine and given:
            raise InvalidValue(
                f'metric="cosine" makes every row unit, so there is nothing to clip or to scale. Leave out {given[0]}.'
            )
        used, why = super()._pick(is_sparse, n_features)
        if is_cosine and used not in OF_DIRECTIONS:
            able = " or ".join(f'"{name}"' for name in OF_DIRECTIONS)
            raise InvalidValue(
                f'metric="cosine" is for method={able}, and "{used}" measures distance. Use one of these, or "auto".'
            )
        if not is_cosine and used == "spherical":
            raise InvalidValue('method="spherical" and its tuning cluster directions: pass metric="cosine", and no bounds.')
        return used, why

    def _place(self, n_features: int, bits: int, names: tuple[str, ...] | None, blocks: Blocks, *, fills: bool) -> Box | Ball:
        if self.metric != "cosine":
            return super()._place(n_features, bits, names, blocks, fills=fills)
        if blocks:
            raise InvalidValue(
                'metric="cosine" makes rows unit, and levels of categories have lengths of their own. Leave them out.'
            )
        return UnitBall(n_features, bits)
