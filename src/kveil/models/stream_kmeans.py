"""k-means of a stream: rows come in batches, are seen once, and are never held."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from kveil.arrays import Floats
from kveil.desk.leaf_table import LeafTable, depth_for
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.grid import Box
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import Guarantee, PrivacyUnit, no_guarantee
from kveil.methods.task import check_budget, check_clusters, check_count
from kveil.models.judging import warn_of_noise
from kveil.models.paying import is_one_budget, public_generator
from kveil.models.stream_file import parameters_of, restore, to_document
from kveil.models.stream_release import Released, centers_of, pool_of, promised, released
from kveil.models.streaming import StreamClusterer, plain_distances, plain_labels
from kveil.release import Release
from kveil.source.guard import quietly
from kveil.space.bounds import BoundsLike, check_domain, domain_width, names_of
from kveil.stream import checkpoint
from kveil.stream.batches import batches, is_stream
from kveil.stream.coreset import LEAST, Coreset
from kveil.stream.flow import Flow
from kveil.stream.taken import check_label

BITS = 16  # of the grid of a private stream: sums of 2**40 rows, scaled, still fit into 64 bits


class StreamKMeans(StreamClusterer):
    """k-means of rows that come in batches, in fixed memory; with epsilon, released once, at the end, with differential privacy.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of centres.
    memory : str or int, default 10000
        Points kept. Without privacy at most so many weighted points stand for all rows seen. With it, the cells that are
        counted: the largest power of two below, at most 65 536; more are better where there are many columns.
    epsilon : float, optional
        The promise of a private stream; None, the default: no privacy, and centres at any time.
    delta : float, default 0
        0 is a pure promise; with delta > 0 there may be less noise.
    bounds : Bounds, pair, list of pairs or dict, optional
        Public (low, high) of the features, as for `PrivateKMeans`; needed with epsilon, unused without. Cells are cut
        before the rows come, so loose bounds cost more here than there.
    ledger : Ledger or path, optional
        A Ledger, or the path of one, that `finish` is charged to.
    random_state : int, Generator or None
        Steers public choices only. Private noise takes no seed.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        The centres, in the units of the data.
    cluster_weights_ : array (k,) or None
        Noisy shares of rows per cluster; they add up to 1.
    cluster_errors_ : array (k,)
        Standard error of each centre: the root mean squared length of the noise in it.
    guarantee_ : Guarantee
        What was promised and charged.
    release_ : Release
        All of this as one object, to be saved and passed on.

    Notes
    -----
    `partial_fit` takes a batch: whatever `kveil.read` takes, or an iterator of such. With epsilon, centres exist only after
    `finish()`, which charges the budget. `merge` adds another stream, `save` and `resume` survive a crash.

    All attributes may be shared after `finish()` of a private stream. Before it nothing may be: the stream in memory, and
    the file that `save` writes, are as secret as the rows. Without epsilon nothing is private.

    - Private: the rows and their number.  Public: all parameters, the columns, and how many batches came from where. Let a
      clock or the caller, not a number of rows, decide where a batch ends.
    - Neighbours: streams that differ by one record, added or removed. A person with r records is protected r times less.
    - Sensitivity: a row is in one leaf of a partition that was cut before: `kveil.methods.leaves.LeafReading`.
    - Cost: exactly `guarantee()`, at every `finish`, before a number is drawn.
    - Not covered: running time; who reads the memory or the saved state.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import StreamKMeans
    >>> model = StreamKMeans(n_clusters=2, memory=100, random_state=0)
    >>> for day in range(30):
    ...     batch = np.repeat([[0.0, 0.0], [9.0, 1.0]], 20, axis=0)
    ...     model = model.partial_fit(batch)
    >>> sorted(model.cluster_centers_.tolist())
    [[0.0, 0.0], [9.0, 1.0]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        memory: int = 10_000,
        epsilon: float | None = None,
        delta: float = 0.0,
        bounds: BoundsLike | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.memory = memory
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """See all of X, a table or an iterator of batches, as one stream, from the start, and finish it.

        Names and types of columns are public, as for `PrivateKMeans.fit`; text in a CSV counts as missing.

        Parameters
        ----------
        X : table, path, Source or iterator of tables
            All rows of the stream.
        y : ignored
            There for the interface of scikit-learn.

        Returns
        -------
        StreamKMeans
            This model, fitted.
        """
        self._forget()
        return self.partial_fit(X).finish()

    def partial_fit(self, X: Any, y: Any = None, *, source: str | None = None, seq: int | None = None) -> Self:
        """See one batch, or all batches of an iterator.

        Parameters
        ----------
        X : as in `fit`
            One batch, or an iterator of them.
        y : ignored
            There for the interface of scikit-learn.
        source : str, optional
            Where the batch comes from.
        seq : int, optional
            Its number there. It must follow the last one; a batch that came already is refused, so rows that are delivered twice
            count once. Default: the stream's own count. Of an iterator it is the number of its first batch, and the others
            follow; those that came already are skipped. So one that broke can be begun again with the same seq. Without it the
            batches before the break would count twice, and the guarantee would not hold.
        """
        check_label(source, seq)
        for place, batch in enumerate(batches(X)):
            number = None if seq is None else seq + place
            if not (is_stream(X) and self._has(source, number)):
                self._take(batch, source, number)
        return self

    def finish(self, *, go_on: bool = False) -> Self:
        """Find the centres. A private stream charges the budget, releases them, and forgets what it has seen: the next batch
        begins another stream.

        Parameters
        ----------
        go_on : bool, default False
            Keep what was seen, for more rows and another release, which is charged again; its notes say how many there were.
        """
        flow = self._seen()
        if isinstance(flow.kept, Coreset):
            self._centers()
            return self
        n_clusters = self._checked()
        rng = public_generator(self.random_state)
        pool = pool_of(self._budget(), flow.kept, self.ledger)
        self._released: Released | None = released(flow, pool, n_clusters, rng, self)
        flow.n_released += 1
        if not go_on:
            self._flow: Flow | None = None
        warn_of_noise(self._released.release)
        return self

    def merge(self, other: StreamKMeans) -> Self:
        """See all that another stream has seen; it stays as it is. Refused if a batch would count twice, and if they are
        charged to different ledgers: a release of both would then be on one of them only."""
        if not isinstance(other, StreamKMeans):
            raise InvalidType("merge takes another StreamKMeans.")
        if not is_one_budget(self.ledger, other.ledger):
            raise InvalidValue(
                "these streams are charged to different ledgers, so what is released of both would be missing from one of them. "
                "Begin both with the same ledger. Nothing was merged."
            )
        self._seen().merge(other._seen())
        self._found: tuple[Floats, Floats] | None = None
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stream to a file that only its owner may read; a crash leaves the old file or the new one.

        The file is as secret as the rows. The ledger is not in it.
        """
        checkpoint.write(path, *to_document(self, self._seen()))

    @classmethod
    def resume(cls, path: str | os.PathLike[str], *, ledger: Ledger | str | os.PathLike[str] | None = None) -> Self:
        """The stream that `save` wrote, to go on with the batches that it has not seen: `taken_` tells which.

        Parameters
        ----------
        path : str or path
            What `save` wrote.
        ledger : Ledger, str or path, optional
            The one it is charged to; the same as before, if there was one.
        """
        return quietly(lambda: cls._resumed(*checkpoint.read(path), ledger), checkpoint.complaint(path))

    @classmethod
    def _resumed(cls, document: Mapping[str, Any], arrays: dict[str, NDArray[Any]], ledger: Any) -> Self:
        model = cls(**parameters_of(document, ledger))
        names = None if document["names"] is None else tuple(document["names"])
        restore(model._begin(document["columns"], names), document, arrays)
        return model

    def guarantee(self, n_features: int | None = None) -> Guarantee:
        """What `finish` will promise and charge, from the parameters alone.

        Parameters
        ----------
        n_features : int, optional
            Where bounds do not tell and delta > 0, because it decides which noise is smaller.
        """
        if self.epsilon is None:
            return no_guarantee("add-remove", PrivacyUnit(), "stream")
        width = n_features or domain_width(self.bounds, None) or getattr(self, "n_features_in_", None)
        if width is None and self.delta:
            raise InvalidValue("which noise is smaller depends on the number of features: pass guarantee(n_features=...).")
        names = names_of(self.bounds)
        return promised(pool_of(self._budget(), self._table(width or 1, names, depth=1), self.ledger))

    @property
    def cluster_centers_(self) -> Floats:  # type: ignore[override]
        """(k, d) the centres: of what was seen so far; of a private stream, those released last."""
        return self._answer()[0]

    @property
    def cluster_weights_(self) -> Floats:
        """(k,) shares of the rows; noisy for a private stream."""
        return self._answer()[1]

    @property
    def cluster_errors_(self) -> Floats:
        """(k,) standard errors of released centres."""
        return self._release("cluster_errors_").errors

    @property
    def release_(self) -> Release:
        """What may leave the house."""
        return self._release("release_").release

    @property
    def guarantee_(self) -> Guarantee:
        """What was promised."""
        self._answer()
        return self.guarantee() if self.epsilon is None else self._release("guarantee_").release.guarantee

    @property
    def synopsis_(self) -> Coreset:
        """The points that stand for the rows of a stream without privacy, as secret as the rows."""
        kept = self._seen().kept
        if not isinstance(kept, Coreset):
            raise AttributeError("a private stream has no synopsis.")
        return kept

    @property
    def taken_(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """For every source the numbers of the batches that were seen, as intervals (first, last). Public."""
        return self._seen().journal.taken()

    def _has(self, name: str | None, seq: int | None) -> bool:
        flow: Flow | None = getattr(self, "_flow", None)
        return flow is not None and seq is not None and flow.journal.has(name, seq)

    def _take(self, batch: Any, name: str | None, seq: int | None) -> None:
        flow: Flow | None = getattr(self, "_flow", None)
        source = self._opened(batch, is_first=flow is None)
        if source.unit.kind != "record":
            raise InvalidValue(
                "a stream protects records: rows of one person may come in many batches, and nothing bounds them all. Bound what "
                "a person contributes before, or fit a whole table with PrivateKMeans."
            )
        if flow is None and self.epsilon is not None and self.bounds is not None:
            self._warn_of_widths(self._table(source.n_columns, source.names, depth=1).domain, source.names, stacklevel=3)
        begun = self._begin(source.n_columns, source.names) if flow is None else flow
        if isinstance(begun.kept, LeafTable):
            source.check(begun.kept.domain)
        begun.take(source, name, seq, is_held=isinstance(batch, np.ndarray))
        self._found = None

    def _begin(self, n_columns: int, names: tuple[str, ...] | None) -> Flow:
        """An empty stream, from public parameters."""
        self._checked()
        if self.epsilon is None:
            if self.ledger is not None:
                raise InvalidValue("without epsilon there is nothing to charge. Leave out the ledger, or give epsilon.")
            kept: Coreset | LeafTable = Coreset(n_columns, int(self.memory))
        else:
            kept = self._table(n_columns, names, depth_for(int(self.memory)))
            pool_of(self._budget(), kept, self.ledger)  # a budget that cannot be shared out is refused before rows come
        if self._has_released() and n_columns != self.n_features_in_:
            self._released = None  # centres of another space
        self._note_columns(n_columns, names)
        self._flow = flow = Flow(kept, names)
        return flow

    def _checked(self) -> int:
        n_clusters = check_clusters(self.n_clusters, getattr(self, "n_features_in_", 1))
        least = max(LEAST, 2 * n_clusters)
        if check_count("memory", self.memory) < least:
            raise InvalidValue(f"memory must be at least {least} points for {n_clusters} centres; 1000 for each are better.")
        return n_clusters

    def _budget(self) -> tuple[Any, Any]:
        epsilon, delta = check_budget(self.epsilon, self.delta)
        if epsilon is None and self.ledger is not None:
            raise InvalidValue("epsilon=inf adds no noise, so there is nothing to charge. Leave out the ledger, or give epsilon.")
        return epsilon, delta

    def _table(self, n_columns: int, names: tuple[str, ...] | None, depth: int) -> LeafTable:
        domain = check_domain(self.bounds, None, None, n_columns, BITS, names)
        assert isinstance(domain, Box)
        return LeafTable(domain, depth)

    def _seen(self) -> Flow:
        flow: Flow | None = getattr(self, "_flow", None)
        if flow is None:
            raise NotFittedError("this stream has seen no batch, or is finished. Call partial_fit first.")
        return flow

    def _has_released(self) -> bool:
        return getattr(self, "_released", None) is not None

    def _release(self, name: str) -> Released:
        if not self._has_released():
            raise NotFittedError(f"{name} exists only after finish() of a stream with epsilon: until then nothing is released.")
        assert self._released is not None
        return self._released

    def _answer(self) -> tuple[Floats, Floats]:
        if self.epsilon is None:
            return self._centers()
        found = self._release("cluster_centers_")
        return found.centers, found.weights

    def _centers(self) -> tuple[Floats, Floats]:
        """Centres and shares of a stream without privacy, found when they are first wanted after new rows."""
        synopsis = self.synopsis_
        if not len(synopsis):
            raise NotFittedError("this stream has no rows yet. Call partial_fit with a batch that has some.")
        if getattr(self, "_found", None) is None:
            self._found = centers_of(synopsis, self._checked(), public_generator(self.random_state))
        assert self._found is not None
        return self._found

    def _forget(self) -> None:
        for name in ("_flow", "_found", "_released"):
            if hasattr(self, name):
                delattr(self, name)

    @property
    def _domain(self) -> Box:  # type: ignore[override]
        return self._release("a domain").domain

    def _labels(self, rows: Any) -> NDArray[np.int32]:
        return super()._labels(rows) if self.epsilon is not None else plain_labels(rows, self.cluster_centers_)

    def _distances(self, rows: Any) -> Floats:
        return super()._distances(rows) if self.epsilon is not None else plain_distances(rows, self.cluster_centers_)

    def __sklearn_is_fitted__(self) -> bool:
        flow: Flow | None = getattr(self, "_flow", None)
        return self._has_released() if self.epsilon is not None else flow is not None and not flow.is_empty

    def __getstate__(self) -> dict[str, Any]:
        flow = getattr(self, "_flow", None)
        if flow is not None and flow.is_private:
            raise InvalidType("a private stream that goes on cannot be copied or pickled: it is as secret as the rows. Use save.")
        state: dict[str, Any] = super().__getstate__()
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.epsilon is not None
        tags.input_tags.allow_nan = self.epsilon is not None
        return tags
