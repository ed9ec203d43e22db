"""Dk-means++: k-means++ of rows that lie at several nodes. Nodes give totals, and one of them a row. Not private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats
from kveil.errors import InvalidValue
from kveil.solve import seeding
from kveil.solve.divergences import Divergence, SquaredEuclidean
from kveil.solve.seeding import First, Nearest, Rng, check_clusters, check_plugs

LocalPick = Literal["d2", "uniform"]


class Node:
    """Rows that stay where they are, and how far they are from the centres that were announced."""

    def __init__(self, rows: ArrayLike, divergence: Divergence = SquaredEuclidean()) -> None:
        self.rows = np.require(rows, np.float64, ["C", "W"])
        if self.rows.ndim != 2 or not self.rows.shape[1] or not np.isfinite(self.rows).all():
            raise InvalidValue("every part must be a table of finite numbers; it may be without rows, but not without columns.")
        self._nearest, self._n_centers = Nearest(len(self.rows), divergence), 0

    @property
    def total(self) -> float:
        """The sum of divergences of its rows to their nearest centre; before there is any, their number."""
        return float(self._nearest.best.sum()) if self._n_centers else float(len(self.rows))

    def pick(self, local_pick: LocalPick, rng: Rng) -> Floats:
        """One of its rows: by divergence, or any, alike."""
        by_distance = local_pick == "d2" and self._n_centers and self.total > 0
        scores = self._nearest.best if by_distance else np.ones(len(self.rows))
        return np.asarray(self.rows[seeding.draw_index(scores, rng)])

    def update(self, center: Floats) -> float:
        """Take note of a centre; returns the new total."""
        self._nearest.add(self.rows, center, self._n_centers)
        self._n_centers += 1
        return self.total


def dkmeans_plusplus(
    parts: Sequence[ArrayLike],
    n_clusters: int,
    *,
    local_pick: LocalPick = "d2",
    first: First = "weighted",
    divergence: Divergence = SquaredEuclidean(),
    random_state: int | Rng | None = None,
) -> Floats:
    """Centres of rows at several nodes: a node is drawn by its total, and gives one of its rows. Not private.

    local_pick: "d2" lets the node draw by squared distance, P(node) P(row | node) = D(row)/sum D: k-means++ of all rows, for
        the same messages. "uniform" is for nodes that cannot (the paper's Forgy nodes): its expected cost is at most
        (2 + ln k)(10 least + 6 s), s the scatter of rows about the mean of their node, for squared distances.
    first: the first node is drawn by its number of rows; "paper" draws it uniformly among those that have any,
        and then that bound does not hold (docs/errata.md 26).
    divergence: how far a row is from a centre, as for `kvariates`; totals are then sums of it.

    >>> dkmeans_plusplus([[[0.0]], [[9.0], [9.0]]], 2, random_state=0).ravel().tolist() in ([0.0, 9.0], [9.0, 0.0])
    True
    """
    check_plugs(divergence=(divergence, "to_center"))
    nodes = [Node(part, divergence) for part in parts]
    check_clusters(n_clusters)
    if local_pick not in ("d2", "uniform"):
        raise InvalidValue(f'local_pick must be "d2" or "uniform", got {local_pick!r}.')
    sizes = np.array([len(node.rows) for node in nodes], dtype=np.float64)
    if not sizes.any() or len({node.rows.shape[1] for node in nodes}) != 1:
        raise InvalidValue("parts must have the same columns, and at least one of them a row.")
    rng = np.random.default_rng(random_state)
    centers, totals = np.empty((n_clusters, nodes[0].rows.shape[1])), seeding.first_weights(sizes, first)
    for t in range(n_clusters):
        chosen = nodes[seeding.draw_index(totals if totals.any() else sizes, rng)]
        centers[t] = chosen.pick(local_pick, rng)
        totals = np.array([node.update(centers[t]) for node in nodes])
    return centers
