"""OLk-means++: seeds of a stream that is seen once, one centre per batch. Not private."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.solve.divergences import Divergence, SquaredEuclidean
from kveil.solve.seeding import D2, Nearest, Rng, as_points, as_weights, check_clusters, check_plugs


class OnlineSeeder:
    """One centre per batch, drawn from it by squared distance to the centres so far (the first by weight), until there are k.

    on_full: what later batches do: "stop" leaves the centres as they are; "merge" draws one more and pools the two centres
        that are closest to each other, for which no bound on the cost is known.
    divergence: how far a row is from a centre, as for `kvariates`; both ways added up, how close two centres are.

    With squared distances its expected cost is at most (4 + 32/s^2)(2 + ln k) times the least if every batch carries a share s of
    every cluster's cost, and the mean squared distance of two rows of a cluster is s times the squared diameter of the stream
    (Theorem 6). Sorted streams and tight clusters make s tiny: shuffle, or use `StreamKMeans`.

    >>> seeder = OnlineSeeder(2, random_state=0)
    >>> [seeder.update(batch) for batch in ([[0.0], [0.0]], [[0.0], [9.0]], [[5.0]])]
    [True, True, False]
    >>> seeder.centers.ravel().tolist()
    [0.0, 9.0]
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        on_full: Literal["stop", "merge"] = "stop",
        divergence: Divergence = SquaredEuclidean(),
        random_state: int | Rng | None = None,
    ) -> None:
        check_clusters(n_clusters)
        check_plugs(divergence=(divergence, "to_center"))
        if on_full not in ("stop", "merge"):
            raise InvalidValue(f'on_full must be "stop" or "merge", got {on_full!r}.')
        self.n_clusters, self.on_full, self.rng = int(n_clusters), on_full, np.random.default_rng(random_state)
        self.divergence = divergence
        self.centers: Floats = np.empty((0, 0))  # (centres so far, d)
        self.weights: Floats = np.empty(0)  # how much of the stream was nearest to each when it came

    @property
    def is_full(self) -> bool:
        return len(self.centers) == self.n_clusters

    def update(self, batch: ArrayLike, weights: ArrayLike | None = None) -> bool:
        """See a batch; returns whether a centre was drawn from it. A batch without rows, or without weight, draws none."""
        if not len(np.asarray(batch)) or (weights is not None and not np.any(weights)):
            return False
        rows, mass = as_points(batch), as_weights(weights, batch)
        if self.centers.size and rows.shape[1] != self.centers.shape[1]:
            raise InvalidValue(f"this batch has {rows.shape[1]} column(s) and the first one had {self.centers.shape[1]}.")
        nearest = Nearest(len(rows), self.divergence)
        for index, center in enumerate(self.centers):
            nearest.add(rows, center, index)
        is_drawing = not self.is_full or self.on_full == "merge"
        if is_drawing:
            self._draw(rows, mass, nearest)
        self.weights += np.bincount(nearest.owner, mass, minlength=len(self.centers))
        if len(self.centers) > self.n_clusters:
            self._pool()
        return is_drawing

    def _draw(self, rows: Floats, mass: Floats, nearest: Nearest) -> None:
        """One more centre; rows that are nearer to it than to the others count as its own."""
        n_before = len(self.centers)
        drawn = rows[D2().pick(mass, nearest.best if n_before else None, self.rng)]
        self.centers = np.vstack([self.centers.reshape(n_before, rows.shape[1]), drawn])
        self.weights = np.append(self.weights, 0.0)
        nearest.add(rows, drawn, n_before)

    def _pool(self) -> None:
        """The two centres that are closest become their weighted mean."""
        apart = np.array([self.divergence.to_center(self.centers, center) for center in self.centers])
        apart = apart + apart.T
        apart[np.tril_indices(len(apart))] = np.inf
        i, j = divmod(int(np.argmin(apart)), len(apart))
        share = self.weights[j] / (self.weights[i] + self.weights[j]) if self.weights[i] + self.weights[j] else 0.5
        self.centers[i] += share * (self.centers[j] - self.centers[i])
        self.weights[i] += self.weights[j]
        self.centers, self.weights = np.delete(self.centers, j, axis=0), np.delete(self.weights, j)
