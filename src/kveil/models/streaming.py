"""What models of streams share: how a batch is opened, and answers by centres that may have no domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from narwhals.dependencies import is_into_dataframe
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kveil.arrays import Floats
from kveil.errors import InvalidType, InvalidValue
from kveil.models.clusterer import EuclideanClusterer, check_names
from kveil.source import Source, read
from kveil.space.euclidean import Scaling, check_finite


class StreamClusterer(EuclideanClusterer):
    """Dense batches with the same columns, one after the other."""

    scaling: Scaling = None

    def _opened(self, batch: Any, *, is_first: bool) -> Source:
        """A batch, its schema checked against those before; no row is read."""
        if getattr(self, "epsilon", None) is None and getattr(batch, "shape", ())[1:] == (0,):
            found = f"0 feature(s) (shape={tuple(batch.shape)})"  # without privacy a shape may be told, as scikit-learn does
            raise InvalidValue(f"Found array with {found} while a minimum of 1 is required. Pass at least one column of numbers.")
        if isinstance(batch, list | tuple) and not batch and not is_first:  # a list without rows does not tell its columns
            batch = np.empty((0, self.n_features_in_))
        source = read(batch)
        if source.is_sparse:
            raise InvalidType("streams take dense rows. Pass batch.toarray(), or use PrivateKMeans for sparse tables.")
        if not is_first and source.n_columns != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise InvalidValue(f"X has {source.n_columns} features, but {expected}.")
        if source.names is None or is_into_dataframe(batch):
            check_names(self, batch, reset=is_first)
        elif not is_first and self._names() not in (None, source.names):  # a file, or a table that scikit-learn does not know
            raise InvalidValue("the columns of this batch have other names, or another order, than those before it.")
        return source

    def _names(self) -> tuple[str, ...] | None:
        return tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _note_columns(self, n_columns: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = n_columns
        if names is not None:
            self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def plain_labels(rows: Floats, centers: Floats) -> NDArray[np.int32]:
    """The nearest centre of rows that have no domain, for models without privacy."""
    return np.asarray(plain_distances(rows, centers).argmin(axis=1), dtype=np.int32)


def plain_distances(rows: Floats, centers: Floats) -> Floats:
    """Distances of rows that have no domain to every centre; refused if a value is missing or infinite."""
    return np.asarray(cdist(check_finite(rows), centers))
