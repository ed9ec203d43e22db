"""A curator's fit: check, reserve, run a method, and keep what may leave the house. Shared by every Euclidean model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.grid import Ball, Box
from kveil.kernel.ledger import Ticket
from kveil.kernel.loss import Guarantee, Plan, PrivacyUnit, Relation, guarantee, no_guarantee
from kveil.methods.base import Facts, Found, Method
from kveil.methods.scales import Scaled
from kveil.methods.task import (
    PRIVATE_INITS,
    Task,
    check_budget,
    check_choice,
    check_clusters,
    check_count,
    check_expected_rows,
    check_init,
)
from kveil.models.clusterer import EuclideanClusterer
from kveil.models.judging import warn_of_noise, with_verdict
from kveil.models.paying import file_release, open_ledger, public_generator, receipt_of, reserve, stated_by
from kveil.models.reading import Blocks, check_unknown, domain_of_columns, names_beside, told_of_reading
from kveil.release import Release
from kveil.solve.synopsis import why_left_out
from kveil.source import Source
from kveil.source.base import blocks_of, missing_of
from kveil.source.threads import one_blas_thread
from kveil.space.bounds import domain_width, names_of
from kveil.space.widths import domain_notes


class CuratorModel(EuclideanClusterer, ABC):
    """The flow of every model whose curator holds the table. A subclass has parameters, `methods`, and a way to pick one."""

    n_clusters: int | Literal["auto"]
    epsilon: float
    delta: float
    bounds: Any
    center: Any
    radius: Any
    method: str
    init: Any
    n_steps: int | None
    expected_rows: float | None
    relation: Relation
    ledger: Any
    tuning: Any
    random_state: Any

    def fit(self, X: Any, y: Any = None, *, public: Any = None, **unknown: Any) -> Self:
        """Find private centres of X: an array, a sparse matrix, a frame, a path, a Dask collection, or `kveil.read(...)`.

        The whole budget is charged before a row is read; what rows hold never raises. Names and types of columns are public and
        may: a column of type text is refused, and so are lists and arrays of objects that are not all numbers. A CSV has no
        types, so text in it counts as missing. `y` is ignored. Weights of rows are a column of the table, with a public bound:
        `kveil.read(X, person=..., max_rows_per_person=..., weight=...)`.

        Parameters
        ----------
        X : array, sparse matrix, frame, str, path or Source
            The private rows.
        y : ignored
            There for the interface of scikit-learn.
        public : as X, optional
            PUBLIC rows with the same columns, such as an open table of the same kind, for PrivateKMeans with method "tree".
            Centres start from them where private rows say that they fit; the promise and its cost stay the same. They are NOT
            protected: centres may show them. Never rows of X, or of the same people. docs/public-sample.md
        """
        check_unknown(unknown)
        source = self._source(X)  # files are open, the schema is checked, no row is read
        used, why = self._pick(source.is_sparse, source.n_columns)
        task = self._task(
            used, source.n_columns, source.unit, source.names, source.max_rows, is_sparse=source.is_sparse,
            blocks=blocks_of(source), missing=missing_of(source),
        )  # fmt: skip
        if public is not None:
            task = replace(task, sample=self._sample(public, X, source, used, task))
        method = self._method(used, task)
        source.check(method.task.domain)
        rng = public_generator(self.random_state)
        plan = method.budget.plan()
        self._warn_of_widths(method.task.domain, source.names, stacklevel=2)  # not later: as an error it must cost nothing
        # One thread of BLAS throughout: taking others down and up again for every pass costs a tenth of a short fit.
        with reserve(plan, self.ledger, self.epsilon, self.delta) as ticket, np.errstate(all="ignore"), one_blas_thread():
            found = method.run(method.budget.open(source, method.task.domain, ticket), rng)  # rows stay behind the desk
        self._keep(found, method.task, source, plan, ticket, {"asked": self.method, "used": used, "why": why})
        warn_of_noise(self.release_)
        return self

    def guarantee(
        self, n_features: int | None = None, *, unit: PrivacyUnit = PrivacyUnit(), is_sparse: bool = False, blocks: Blocks = ()
    ) -> Guarantee:
        """What `fit` will promise and charge, from the parameters alone.

        Parameters
        ----------
        n_features : int, optional
            Where bounds or center do not tell. The total is the same without it; the single mechanisms are then those for one
            feature. With delta > 0 it is needed, because it decides which noise is smaller.
        unit : PrivacyUnit
            That of the source, if people are protected: `kveil.read(...).unit`.
        is_sparse : bool, default False
            Whether rows are sparse.
        blocks : tuple
            The categories of the source, if it has some.
        """
        width, of_levels = n_features or self._width(), sum(len(block.levels) for block in blocks)
        width = width + of_levels if width is not None and n_features is None else width
        if width is None and self.delta:
            raise InvalidValue("which noise is smaller depends on the number of features: pass guarantee(n_features=...).")
        plan = self.prepared(width or 1, unit=unit, is_sparse=is_sparse, blocks=blocks)[1].budget.plan()
        if plan is None:
            return no_guarantee(self.relation, unit, "curator")
        return guarantee(plan, trust="curator", assumptions=self._assumptions())

    def prepared(
        self, n_features: int, *, unit: PrivacyUnit = PrivacyUnit(), is_sparse: bool = False, blocks: Blocks = ()
    ) -> tuple[str, Any]:
        """The method that `fit` would run on rows of so many features, by name, with its budget: from the parameters alone.

        Parameters
        ----------
        n_features : int
            How many columns.
        unit, is_sparse, blocks : as in `guarantee`
            Those of the source.
        """
        names = names_of(self.bounds)
        if blocks and names is not None:
            names = names_beside(names, blocks)
        used, _ = self._pick(is_sparse, n_features)
        return used, self._method(used, self._task(used, n_features, unit, names, is_sparse=is_sparse, blocks=blocks))

    def _width(self) -> int | None:
        """How many features rows will have, if that is known without them."""
        return domain_width(self.bounds, self.center) or getattr(self, "n_features_in_", None)

    def _assumptions(self) -> tuple[str, ...]:
        """What its guarantees rest on besides what every guarantee does."""
        return ()

    @property
    @abstractmethod
    def methods(self) -> Mapping[str, type[Method]]:
        """What it can do, by name."""

    @abstractmethod
    def _auto(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        """Which method "auto" is, and why, when no option points at one."""

    def _pick(self, is_sparse: bool, n_features: int) -> tuple[str, str]:
        """Which method, and why: from public facts alone."""
        check_choice("method", self.method, ("auto", *self.methods))
        used, why = self.method, "it was asked for"
        if self.method == "auto":
            used, why = self._pointed() or self._auto(is_sparse, n_features)
        chosen = self.methods[used]
        if is_sparse and not chosen.takes_sparse:
            able = " or ".join(f'"{name}"' for name, method in self.methods.items() if method.takes_sparse)
            raise InvalidValue(f'method="{used}" takes dense rows. Use method={able} for sparse ones, or a dense table.')
        for option in sorted(self._options() - chosen.options):
            able = " or ".join(f'"{name}"' for name, method in self.methods.items() if option in method.options)
            if able:
                raise InvalidValue(
                    f'{option} belongs to method={able}. Leave it out, or use that method: "{used}" has no such option.'
                )
        if self.tuning is not None and type(self.tuning) is not chosen.tuning:
            able = ", ".join(sorted({method.tuning.__name__ for method in self.methods.values()}))
            raise InvalidType(
                f'tuning must be kveil.tuning.{chosen.tuning.__name__}(...) or None for method="{used}". '
                f"{type(self).__name__} takes {able}, each with its own method."
            )
        return used, why

    def _pointed(self) -> tuple[str, str] | None:
        """The method that the given options belong to, if there are any."""
        for name, method in self.methods.items():
            if self.tuning is not None and type(self.tuning) is method.tuning:
                return name, "the tuning belongs to it"
        for name, method in self.methods.items():
            if self._options() and self._options() <= method.options:
                given = sorted(self._options())
                return name, f"{' and '.join(given)} {'belongs' if len(given) == 1 else 'belong'} to it"
        return None

    def _options(self) -> frozenset[str]:
        """Which options of single methods were given."""
        is_named = isinstance(self.init, str)
        is_given = {
            "n_steps": self.n_steps is not None,
            "init": not (is_named and self.init == "auto"),
            "private init": is_named and self.init in PRIVATE_INITS,
        }
        return frozenset(option for option, given in is_given.items() if given)

    def _task(
        self, used: str, n_features: int, unit: PrivacyUnit, names: tuple[str, ...] | None = None, max_rows: int = 2**40,
        *, is_sparse: bool = False, blocks: Blocks = (), missing: Any = "middle",
    ) -> Any:  # fmt: skip
        """What is asked for, checked: from public parameters and the schema of the rows."""
        n_clusters, k_range = self._clusters(used, n_features, is_sparse)
        epsilon, delta, rows = self._terms()
        check_choice("scaling", self.scaling, (None, "bounds", "private"))
        chosen = self.methods[used]
        private = PRIVATE_INITS if "private init" in chosen.options else ()
        tuning = chosen.tuning() if self.tuning is None else self.tuning
        facts = Facts(n_features, 1.0 if epsilon is None else float(epsilon), rows, max_rows)
        bits = chosen.bits(facts) if tuning.bits is None else check_count("bits", tuning.bits)
        fills = missing == "mean" and self.scaling == "private"  # otherwise the source refuses
        domain = self._place(n_features, bits, names, blocks, fills=fills)
        if self.scaling is not None and isinstance(domain, Ball):
            raise InvalidValue(
                f'scaling="{self.scaling}" needs bounds: a ball is as wide in every column. Leave out scaling, or give bounds.'
            )
        return Task(
            n_clusters, epsilon, delta, domain, self._measure, self.relation, unit, tuning,
            n_steps=None if self.n_steps is None else check_count("n_steps", self.n_steps),
            init=check_init(self.init, n_clusters, n_features, private), expected_rows=rows,
            max_rows=max_rows, is_sparse=is_sparse, is_zcdp=bool(delta) and self._rule() == "zcdp", k_range=k_range,
            reading=told_of_reading(blocks, missing),
        )  # fmt: skip

    def _place(self, n_features: int, bits: int, names: tuple[str, ...] | None, blocks: Blocks, *, fills: bool) -> Box | Ball:
        """The public domain of the rows."""
        return domain_of_columns((self.bounds, self.center, self.radius), n_features, bits, names, blocks, fills=fills)

    def _sample(self, public: Any, X: Any, source: Source, used: str, task: Any) -> Any:
        """The rows of a public sample, where the method takes one."""
        raise InvalidValue('public is for PrivateKMeans with method="tree". Leave it out.')

    def _clusters(self, used: str, n_features: int, is_sparse: bool) -> tuple[int, tuple[int, int] | None]:
        """How many centres are asked for; or the most of a range, and the range, of which released values choose."""
        return check_clusters(self.n_clusters, n_features), None

    def _method(self, used: str, task: Any) -> Any:
        """The method; in a box that is found privately, if that is asked for."""
        make = self.methods[used]
        return Scaled(make, task) if self.scaling == "private" else make(task)

    def _terms(self) -> tuple[Fraction | None, Fraction, float | None]:
        """What every task has: epsilon, delta and the expected number of rows, checked."""
        epsilon, delta = check_budget(self.epsilon, self.delta)
        if epsilon is None and self.ledger is not None:
            raise InvalidValue("epsilon=inf adds no noise, so there is nothing to charge. Leave out the ledger, or give epsilon.")
        check_choice("relation", self.relation, ("add-remove", "replace-one"))
        return epsilon, delta, check_expected_rows(self.expected_rows)

    def _rule(self) -> str | None:
        """How the caller's ledger adds up, if there is one."""
        if self.ledger is None:
            return None
        return str(open_ledger(self.ledger).rule)

    def _keep(
        self, found: Found, task: Any, source: Source, plan: Plan | None, ticket: Ticket | None, method: dict[str, str]
    ) -> Self:
        """Put on the object what may leave the house, and nothing else."""
        if found.scales is not None:  # every reader clips and measures as the fit did
            task = replace(task, domain=found.scales.box(task.domain), scales=found.scales)
        if plan is None or ticket is None:
            self.guarantee_ = no_guarantee(self.relation, source.unit, "curator")
        else:
            self.guarantee_ = guarantee(
                plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons, assumptions=self._assumptions()
            )
        left_out = None if found.synopsis is None else why_left_out(found.synopsis)
        self._keep_centers(found.centers, task)
        self.cluster_weights_, self.cluster_errors_ = found.weights, found.errors
        self.method_, self.n_features_in_, self._domain = method["used"], source.n_columns, task.domain
        if source.names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        release = Release(
            centers=found.centers,
            weights=found.weights,
            errors=found.errors,
            names=found.names,
            places=found.places,
            features=source.names if found.centers.ndim == 2 else None,  # points of a universe have no columns
            guarantee=self.guarantee_,
            receipt=receipt_of(ticket, self.ledger),
            kind=type(self).__name__,
            method=method,
            parameters={**task.public(), **({} if found.sample is None else {"public_sample": found.sample})},
            notes=(*found.notes, *([left_out] if left_out else []), *domain_notes(task.domain, self._measure, source.names)),
            synopsis=None if left_out else found.synopsis,
            **stated_by(self.ledger),
        )
        self.release_ = with_verdict(release)
        file_release(self.ledger, self.release_)
        return self

    def _keep_centers(self, centers: NDArray[Any], task: Any) -> None:
        self.cluster_centers_ = centers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
