"""Private k-means for a curator: one party holds the table and lets out only the centres."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger, Ticket
from kveil.kernel.loss import Guarantee, Plan, PrivacyUnit, Relation, guarantee, no_guarantee
from kveil.models._clusterer import EuclideanClusterer
from kveil.models._task import (
    Task,
    bounds_by_name,
    check_budget,
    check_choice,
    check_clusters,
    check_count,
    check_domain,
    check_start,
    domain_width,
)
from kveil.models.grid import Grid
from kveil.models.lloyd import Found, Lloyd, default_steps
from kveil.models.mean import Mean
from kveil.models.tree import Tree, tree_bits
from kveil.release import Release
from kveil.source import Source, read
from kveil.tuning import Lloyd as LloydTuning

Number = float | ArrayLike
METHODS: dict[str, Any] = {"tree": Tree, "lloyd": Lloyd, "grid": Grid, "mean": Mean}


class PrivateKMeans(EuclideanClusterer):
    """k-means centres of rows about people, with differential privacy.

    n_clusters: number of centres.
    epsilon, delta: the promise. delta=0 is pure; with delta > 0 Gaussian noise is used where it is smaller (for "lloyd" judged
        by its size, for "tree" above 3 features), and always if the ledger adds zCDP.
        epsilon=float("inf") gives the noise-free result and a guarantee that says "none".
    bounds: public (low, high) of the features: two numbers, two sequences (lows, highs), or {name: (low, high)}. Rows
        outside are clipped; a row with a missing or infinite value counts as the middle of the bounds, so fill or drop
        such rows beforehand, each by itself and with public values.
    center, radius: a public ball instead of bounds; center defaults to 0.
    method: "tree" (noisy counts of a public tree, then relative steps), "lloyd" (DP-Lloyd), "grid" (noisy counts of a uniform
        grid, at most 3 features), "mean" (one mean, k times: the floor to beat), or "auto": the tree for dense rows; DP-Lloyd
        for sparse ones, or if init, n_steps or tuning are given, which belong to it.
    init: "auto" and "spread" start from centres spread over the domain without looking at data; or a public (k, d) array.
    n_steps: Lloyd steps, fixed beforehand; default 5, or from expected_rows.
    scaling: None measures distance in the units of the data; "bounds" after mapping the bounds of every feature to [-1, 1],
        which is what columns like age and income want. A scaler fitted on the rows would not be private.
    expected_rows: a public order of magnitude, for choices only. Passing the number of rows of this table would publish it.
    relation: "add-remove" (the number of rows is private) or "replace-one".
    ledger: a Ledger, or the path of one, that this fit is charged to.
    tuning: kveil.tuning.Lloyd(...), constants of the method.
    random_state: steers public choices (the start) only. Private noise takes no seed.

    May be shared after fit: `cluster_centers_`, `cluster_weights_` (noisy shares), `method_`, `guarantee_`, `release_`,
    `n_features_in_`, `feature_names_in_`. Not private, and kept nowhere: what predict, transform and score return.

    Private:      the rows and, under add-remove, their number.  Public: all parameters and the columns.
    Neighbours:   tables that differ by one record (or one person: `kveil.read(X, person=...)`), added, removed or replaced.
    Sensitivity:  of counts and sums per cluster or cell: `kveil.privatise.cluster_sums.NoisyClusterSums` ("lloyd", "mean") and
                  `kveil.privatise.pool.Pool` ("tree", "grid").
    Cost:         exactly `guarantee()`, known before the data and charged before a row is read.
    Not covered:  running time; whatever is not released here.

    >>> import numpy as np
    >>> from kveil import PrivateKMeans
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> model = PrivateKMeans(n_clusters=2, epsilon=1.0, bounds=(-5, 5), random_state=0).fit(X)
    >>> model.cluster_centers_.shape, model.guarantee_.epsilon
    ((2, 2), 1.0)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: tuple[Number, Number] | Mapping[str, tuple[float, float]] | None = None,
        center: Number | None = None,
        radius: float | None = None,
        method: Literal["auto", "tree", "lloyd", "grid", "mean"] = "auto",
        init: Literal["auto", "spread"] | ArrayLike = "auto",
        n_steps: int | None = None,
        scaling: Literal["bounds"] | None = None,
        expected_rows: float | None = None,
        relation: Relation = "add-remove",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        tuning: LloydTuning | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.center = center
        self.radius = radius
        self.method = method
        self.init = init
        self.n_steps = n_steps
        self.scaling = scaling
        self.expected_rows = expected_rows
        self.relation = relation
        self.ledger = ledger
        self.tuning = tuning
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find private centres of X: an array, a sparse matrix, a frame, a path, a Dask collection, or `kveil.read(...)`.

        The whole budget is charged before a row is read; what rows hold never raises. `y` is ignored.
        """
        source = read(X)  # files are open, the schema is checked, no row is read
        used, why = self._pick(source.is_sparse)
        method = METHODS[used](self._task(used, source.n_columns, source.unit, source.names, source.max_rows))
        source.check(method.task.domain)
        rng = _public_generator(self.random_state)
        plan = method.plan()
        with self._reserve(plan) as ticket:  # the whole plan is spent here
            found = method.run(source, ticket, rng)
        return self._keep(found, method.task, source, plan, ticket, {"asked": self.method, "used": used, "why": why})

    def guarantee(
        self, n_features: int | None = None, *, unit: PrivacyUnit = PrivacyUnit(), is_sparse: bool = False
    ) -> Guarantee:
        """What `fit` will promise and charge, from the parameters alone.

        n_features: where bounds or center do not tell. The total is the same without it; the single mechanisms are then those
            for one feature. With delta > 0 it is needed, because it decides which noise is smaller.
        unit, is_sparse: those of the source, if people are protected or rows are sparse: `kveil.read(...).unit`.
        """
        width = n_features or domain_width(self.bounds, self.center) or getattr(self, "n_features_in_", None)
        if width is None and self.delta:
            raise InvalidValue("which noise is smaller depends on the number of features: pass guarantee(n_features=...).")
        names = tuple(self.bounds) if isinstance(self.bounds, Mapping) else None
        used, _ = self._pick(is_sparse)
        plan = METHODS[used](self._task(used, width or 1, unit, names)).plan()
        return no_guarantee(self.relation, unit, "curator") if plan is None else guarantee(plan, trust="curator")

    def _pick(self, is_sparse: bool) -> tuple[str, str]:
        """Which method, and why: from public facts alone."""
        check_choice("method", self.method, ("auto", *METHODS))
        if self.method in ("tree", "grid") and is_sparse:
            raise InvalidValue(f'method="{self.method}" takes dense rows. Use method="lloyd" for sparse ones, or a dense table.')
        is_plain = self.n_steps is None and isinstance(self.init, str) and self.tuning is None
        if self.method not in ("auto", "lloyd") and not is_plain:
            raise InvalidValue('n_steps, init and tuning belong to method="lloyd". Leave them out, or use that method.')
        if self.method != "auto":
            return self.method, "it was asked for"
        if is_sparse:
            return "lloyd", "rows are sparse"
        if not is_plain:
            return "lloyd", "n_steps, init and tuning belong to it"
        return "tree", "it is the best for dense rows"

    def _task(
        self, used: str, n_features: int, unit: PrivacyUnit, names: tuple[str, ...] | None = None, max_rows: int = 2**40
    ) -> Task:
        n_clusters = check_clusters(self.n_clusters, n_features)
        epsilon, delta = check_budget(self.epsilon, self.delta)
        if epsilon is None and self.ledger is not None:
            raise InvalidValue("epsilon=inf adds no noise, so there is nothing to charge. Leave out the ledger, or give epsilon.")
        check_choice("relation", self.relation, ("add-remove", "replace-one"))
        check_choice("scaling", self.scaling, (None, "bounds"))
        tuning = LloydTuning() if self.tuning is None else self.tuning
        if not isinstance(tuning, LloydTuning):
            raise InvalidType("tuning must be kveil.tuning.Lloyd(...) or None.")
        rows = self.expected_rows
        if rows is not None and not (isinstance(rows, int | float | np.number) and rows >= 1 and math.isfinite(rows)):
            raise InvalidValue("expected_rows must be a public number of at least 1, or None.")
        loss = 1.0 if epsilon is None else float(epsilon)
        n_steps = default_steps(rows, loss, n_clusters, n_features)
        if self.n_steps is not None:
            n_steps = check_count("n_steps", self.n_steps)
        default_bits = tree_bits(n_features, max_rows) if used == "tree" else _bits(rows, loss, n_features)
        bits = default_bits if tuning.bits is None else check_count("bits", tuning.bits)
        bounds = bounds_by_name(self.bounds, names) if isinstance(self.bounds, Mapping) else self.bounds
        domain = check_domain(bounds, self.center, self.radius, n_features, bits)
        start = check_start(self.init, n_clusters, n_features)
        return Task(
            n_clusters, epsilon, delta, domain, self.scaling, self.relation, unit, n_steps, start,
            expected_rows=rows, is_zcdp=bool(delta) and self._rule() == "zcdp", reseed=tuning.reseed,
        )  # fmt: skip

    def _rule(self) -> str | None:
        """How the caller's ledger adds up, if there is one."""
        if self.ledger is None:
            return None
        return str(self._open_ledger().rule)

    def _open_ledger(self) -> Ledger:
        if isinstance(self.ledger, Ledger):
            return self.ledger
        if not isinstance(self.ledger, str | os.PathLike):
            raise InvalidType("ledger must be a kveil Ledger, the path of one, or None.")
        return Ledger.open(self.ledger)

    def _reserve(self, plan: Plan | None) -> Ticket | nullcontext[None]:
        """The ticket of the caller's ledger, or of one made for this fit alone; none without noise."""
        if plan is None:
            return nullcontext()
        if self.ledger is None:
            delta = float(self.delta) if plan.delta else 0.0
            return Ledger.memory("this fit", float(self.epsilon), delta, relation=plan.relation, unit=plan.unit).reserve(plan)
        return self._open_ledger().reserve(plan)

    def _keep(
        self, found: Found, task: Task, source: Source, plan: Plan | None, ticket: Ticket | None, method: dict[str, str]
    ) -> Self:
        """Put on the object what may leave the house, and nothing else."""
        receipt: dict[str, Any] = {"token": None, "ledger": None, "charges": 0, "secure": False}
        if plan is None or ticket is None:
            self.guarantee_ = no_guarantee(self.relation, source.unit, "curator")
        else:
            self.guarantee_ = guarantee(plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons)
            receipt = {
                "token": ticket.token,
                "ledger": None if self.ledger is None else ticket.ledger.name,
                "charges": len(ticket.receipts),
                "secure": all(r.secure for r in ticket.receipts),
            }
        self.cluster_centers_, self.cluster_weights_ = found.centers, found.weights
        self.method_, self.n_features_in_, self._domain = method["used"], source.n_columns, task.domain
        if source.names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.release_ = Release(
            centers=found.centers,
            weights=found.weights,
            features=source.names,
            guarantee=self.guarantee_,
            receipt=receipt,
            kind=type(self).__name__,
            method=method,
            parameters=_public_parameters(task, self.method_),
            notes=(*found.notes, *_draws(plan, ticket)),
        )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _public_generator(random_state: Any) -> np.random.Generator:
    """A generator for public choices, from whatever scikit-learn takes as random_state, or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def _bits(expected_rows: Any, epsilon: float, n_features: int) -> int:
    """16 bits are finer than the noise while rows times epsilon stays below 2**16; then 20, if distances stay exact."""
    return 20 if expected_rows is not None and expected_rows * epsilon >= 2**16 and n_features <= 2**13 else 16


def _draws(plan: Plan | None, ticket: Ticket | None) -> tuple[str, ...]:
    """What a shared-out budget was spent on, draw by draw; the plan lists the others."""
    if plan is None or ticket is None or all(charge.mechanism != "given" for charge in plan.charges):
        return ()
    return tuple(f"drawn: {receipt.charge}" for receipt in ticket.receipts)


def _public_parameters(task: Task, used: str) -> dict[str, Any]:
    """What a reader of the release needs to use it: everything here was known before the data."""
    domain = task.domain
    place: dict[str, Any] = (
        {"center": domain.center.tolist(), "radius": domain.radius}
        if hasattr(domain, "radius")
        else {"bounds": [domain.lower.tolist(), domain.upper.tolist()]}
    )
    steps = {"n_steps": task.n_steps, "init": "spread" if task.start is None else task.start.tolist()}
    return {
        "n_clusters": task.n_clusters,
        "epsilon": "inf" if task.epsilon is None else float(task.epsilon),
        "delta": float(task.delta),
        **place,
        "bits": domain.bits,
        "scaling": task.scaling,
        "relation": task.relation,
        **(steps if used == "lloyd" else {}),
    }
