"""What every Euclidean clusterer answers after `fit`, for whoever holds the rows. Nothing asked here is stored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from html import escape
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kveil.arrays import Floats
from kveil.errors import InvalidValue, ScaleWarning
from kveil.kernel.grid import Ball, Box
from kveil.release import Release
from kveil.release.answers import distances, labels
from kveil.release.shown import release_html
from kveil.release.verdict import Verdict
from kveil.source import Source, read
from kveil.space.column_box import ColumnBox
from kveil.space.euclidean import Scaling
from kveil.space.unit_ball import is_cosine
from kveil.space.widths import uneven


class EuclideanClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """predict, transform and score by the released centres. A subclass sets `cluster_centers_`, `_domain` and `scaling`."""

    cluster_centers_: Floats
    n_features_in_: int
    scaling: Any
    fit: Any  # the subclass's own
    _domain: Box | Ball

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centre of every row. A function of rows, so not private: keep it where the rows are.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.

        Returns
        -------
        array (n,) of int32
            The number of the nearest centre, per row.
        """
        return np.concatenate([np.empty(0, dtype=np.int32), *(self._labels(rows) for rows in self._rows(X))])

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> NDArray[np.int32]:
        """Fit, then label the same rows. The labels are not private and are not kept.

        Parameters
        ----------
        X : table, path or Source
            Rows, as for `fit`, which gets further arguments, too.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        array (n,) of int32
            The number of the nearest centre, per row.
        """
        return np.asarray(self.fit(X, **kwargs).predict(X))

    def transform(self, X: Any) -> Floats:
        """Distances of every row to every centre. Not private.

        Rows are clipped to the domain first, as in `fit`, and a row with a missing value is its middle; a model without a domain
        clips nothing. In the units of the data; with scaling="bounds" in half-widths of the bounds. With metric="cosine" it is 1
        minus the cosine: between 0 and 2, and 1 for a row of zeros.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.

        Returns
        -------
        array (n, k)
            Distances, not squared.
        """
        return np.concatenate([np.empty((0, self._n_features_out)), *(self._distances(rows) for rows in self._rows(X))])

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the k-means cost of the rows: the sum of squared distances to the nearest centre. Not private.

        Distances are those of `transform`: of clipped rows, in the units of the data; with scaling="bounds" in half-widths of the
        bounds, so such a score compares with others of the same bounds only. It is a sum over rows, not an average. With
        metric="cosine" it is the mean cosine of rows with the nearest centre, 0 for a row of zeros: at most 1.

        Parameters
        ----------
        X : table, path or Source
            Rows with the columns of the fit.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        float
            Greater is better.
        """
        if is_cosine(getattr(self, "_domain", None)):
            nearest = np.concatenate([np.empty(0), *(self._nearest(rows) for rows in self._rows(X))])
            return float(1.0 - nearest.mean()) if len(nearest) else 0.0
        return -float(sum((self._nearest(rows) ** 2).sum() for rows in self._rows(X)))

    @property
    def labels_(self) -> NDArray[np.int32]:
        """Not kept: it raises an AttributeError that says what to use."""
        raise AttributeError(
            f"{type(self).__name__} keeps no labels_: a label is a function of one row, so it is not private. Whoever holds the "
            "rows may call predict(X)."
        )

    @property
    def inertia_(self) -> float:
        """Not kept: it raises an AttributeError that says what to use."""
        raise AttributeError(
            f"{type(self).__name__} keeps no inertia_: it is a sum over rows without noise, so it is not private. Whoever holds "
            "the rows may call score(X); kveil.evaluate gives a noisy cost, for a charge."
        )

    def _html_repr(self) -> str:
        """For notebooks: the parameters, as of every estimator, and what was released, if anything was."""
        shown = getattr(super(), "_html_repr", None)
        parameters = shown() if callable(shown) else f"<pre>{escape(repr(self))}</pre>"
        release = getattr(self, "release_", None)  # not there before a fit, whether it is an attribute or a property
        return parameters if release is None else f"<div>{parameters}{release_html(release)}</div>"

    def _repr_html_(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **unused: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html_repr()}

    @property
    def verdict_(self) -> Verdict:
        """What the noise did to the result: good, rough or noise. May be shared."""
        check_is_fitted(self, "release_")
        return cast(Release, self.release_).verdict()  # a property of some models

    @property
    def cluster_column_errors_(self) -> Floats | None:
        """(k, d) standard error of every number of every centre, in the unit of its column; None if not known. May be shared."""
        return self.verdict_.column_errors

    def _warn_of_widths(self, domain: Any, names: tuple[str, ...] | None, stacklevel: int) -> None:
        """Say so if one column decides every distance: by public widths, before anything is charged."""
        found = uneven(domain, self._measure, names)
        if found is not None:
            cure = (
                'Pass scaling="bounds", or scaling="private"'
                if "scaling" in self.get_params()
                else "Divide every column by its public width first"
            )
            warnings.warn(ScaleWarning(f"{found}. {cure}, unless that is meant."), stacklevel=stacklevel + 1)

    @property
    def _measure(self) -> Scaling:
        """How distance is measured: in the units of the data, or in half-widths of the box, be it public or found privately."""
        return None if self.scaling is None else "bounds"

    def _labels(self, rows: Any) -> NDArray[np.int32]:
        return labels(rows, self.cluster_centers_, self._domain, self._measure)

    def _distances(self, rows: Any) -> Floats:
        return distances(rows, self.cluster_centers_, self._domain, self._measure)

    def _nearest(self, rows: Any) -> Floats:
        return np.asarray(self._distances(rows).min(axis=1, initial=np.inf))

    def _rows(self, X: Any) -> Iterator[Any]:
        check_is_fitted(self)
        if not isinstance(X, Source):
            check_names(self, X, reset=False)
        source = self._source(X)
        if source.n_columns != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            has_levels = isinstance(getattr(self, "_domain", None), ColumnBox)
            levels = " Read it as in fit, with kveil.read(X, categories=...)." if has_levels else ""
            raise InvalidValue(f"X has {source.n_columns} features, but {expected}.{levels}")
        names = tuple(getattr(self, "feature_names_in_", ()))
        if source is X and names and source.names is not None and source.names != names:
            raise InvalidValue(
                "the columns of this source are not those of the fit, in their order. Choose them with columns=[...]."
            )
        return source.raw_blocks()

    def _source(self, X: Any) -> Source:
        """Where rows come from; files are open, the schema is checked, no row is read."""
        return read(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def check_names(model: Any, X: Any, *, reset: bool) -> None:
    """scikit-learn's check of feature names, and no other: shapes and cells are checked here, in words that quote no row."""
    validate_data(model, X, reset=reset, skip_check_array=True, ensure_2d=False)
