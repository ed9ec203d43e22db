"""k-means of a stream by its seeds alone: one centre per batch, drawn when the batch comes. Not private."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from kveil.arrays import Floats
from kveil.errors import FewerDistinctPoints
from kveil.kernel.loss import Guarantee, PrivacyUnit, no_guarantee
from kveil.methods.task import check_choice, check_clusters
from kveil.models.paying import public_generator
from kveil.models.streaming import StreamClusterer, plain_distances, plain_labels
from kveil.solve.online import OnlineSeeder
from kveil.source import Source
from kveil.space.euclidean import check_finite
from kveil.stream.batches import batches, is_stream


class OnlineKMeans(StreamClusterer):
    """One centre per batch, drawn from it by squared distance to the centres so far, until there are `n_clusters`. Not private.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres.
    on_full : {"stop", "merge"}, default "stop"
        What later batches do. "stop": nothing more is drawn. "merge": each draws one more, and the two centres that are
        closest to each other become one; no bound on the cost is known.
    random_state : int, Generator or None
        Steers the draws.

    Notes
    -----
    `partial_fit` takes one batch, or an iterator of batches. A table given to `fit` is cut into as many batches as there are
    centres, in the order of its rows. Use it where a centre must be fixed when its batch has passed; its cost is bounded only
    if every batch has its share of every cluster (Theorem 6 of Nock, Canyasse, Boreli, Nielsen, 2016), so not for sorted
    streams, nor for tight clusters. `StreamKMeans` has no such conditions and is usually far better.

    Nothing here is private: a centre is a row, and so is what predict, transform and score return.

    Examples
    --------
    >>> from kveil import OnlineKMeans
    >>> days = ([[0.0], [0.1]], [[9.0], [9.1]], [[0.2], [9.2]])
    >>> OnlineKMeans(n_clusters=2, random_state=0).partial_fit(iter(days)).cluster_centers_.shape
    (2, 1)
    """

    def __init__(self, n_clusters: int = 8, *, on_full: Literal["stop", "merge"] = "stop", random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.on_full = on_full
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """See all of X from the start: the batches of an iterator, or a table cut into batches.

        Parameters
        ----------
        X : table, path, Source or iterator of tables
            All rows of the stream.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        OnlineKMeans
            This model, fitted.
        """
        for name in ("_seeder", "_copies"):
            if hasattr(self, name):
                delattr(self, name)
        for batch in batches(X):
            self._take(batch, 1 if is_stream(X) else check_clusters(self.n_clusters, 1))
        n_missing = int(self.n_clusters) - len(self.cluster_centers_)
        if n_missing:
            warnings.warn(FewerDistinctPoints(f"fewer batches with rows than {self.n_clusters}: centres repeat."), stacklevel=2)
        self._copies = n_missing
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """See one batch, or all batches of an iterator.

        Parameters
        ----------
        X : table, path, Source or iterator of tables
            The next rows of the stream.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        OnlineKMeans
            This model, with what it saw.
        """
        self._copies = 0
        for batch in batches(X):
            self._take(batch, 1)
        return self

    @property
    def cluster_centers_(self) -> Floats:  # type: ignore[override]
        """The centres so far, in the order they were drawn: as many as batches with rows, up to `n_clusters`."""
        seeder = self._seen()
        return np.resize(seeder.centers, (len(seeder.centers) + getattr(self, "_copies", 0), self.n_features_in_))

    @property
    def cluster_weights_(self) -> Floats:
        """The share of the rows that were nearest to each centre when they came."""
        seeder = self._seen()
        return np.append(seeder.weights / seeder.weights.sum(), np.zeros(getattr(self, "_copies", 0)))

    @property
    def guarantee_(self) -> Guarantee:
        """None: nothing here is private."""
        self._seen()
        return no_guarantee("add-remove", PrivacyUnit(), "stream")

    def _take(self, batch: Any, n_parts: int) -> None:
        begun: OnlineSeeder | None = getattr(self, "_seeder", None)
        source = self._opened(batch, is_first=begun is None)
        seeder = self._begun() if begun is None else begun
        for rows in _cut(source, n_parts, is_held=not isinstance(batch, str | os.PathLike | Source)):
            seeder.update(rows)
        if begun is None:
            self._note_columns(source.n_columns, source.names)
        self._seeder = seeder

    def _begun(self) -> OnlineSeeder:
        n_clusters = check_clusters(self.n_clusters, 1)
        check_choice("on_full", self.on_full, ("stop", "merge"))
        return OnlineSeeder(n_clusters, on_full=self.on_full, random_state=public_generator(self.random_state))

    def _seen(self) -> OnlineSeeder:
        seeder: OnlineSeeder | None = getattr(self, "_seeder", None)
        if seeder is None or not len(seeder.centers):
            raise NotFittedError("no batch with rows has come yet. Call partial_fit first.")
        return seeder

    def _labels(self, rows: Any) -> NDArray[np.int32]:
        return plain_labels(rows, self.cluster_centers_)

    def _distances(self, rows: Any) -> Floats:
        return plain_distances(rows, self.cluster_centers_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_seeder") and len(self._seeder.centers) > 0


def _cut(source: Source, n_parts: int, *, is_held: bool) -> Iterator[Floats]:
    """The rows in so many batches, one after the other, all finite; of a file, every block of it in so many."""
    blocks = (check_finite(rows) for rows in source.raw_blocks())
    for rows in (np.concatenate(list(blocks)),) if is_held or n_parts == 1 else blocks:
        yield from np.array_split(rows, n_parts)
