"""Universes whose distances are had row by row: nearest centres and claims by scanning rows."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kveil.errors import InvalidValue
from kveil.space import _universe_kernels as kernels
from kveil.space.universe import Distances, Nearest, Universe, indices

BLOCK = 2**22  # distances held at once


class Dense(Universe):
    """A universe that has `_between(sources, targets)`; the rest follows."""

    def distances(self, sources: ArrayLike, targets: ArrayLike | None = None) -> Distances:
        """Distances in steps, one row a source, one column a target; all points if no targets are given."""
        rows = indices(sources, self.n_points, "sources")
        return self._between(rows, None if targets is None else indices(targets, self.n_points, "targets"))

    def claim(self, site: int, label: int, best: Distances, owner: NDArray[np.int32]) -> None:
        """Give every point strictly nearer to `site` than best[u] to `label`, in place."""
        row = self._between(np.array([self._one(site, best, owner)]), None)[0]
        kernels.claim_row(row, int(label), best, owner)

    def nearest(self, centers: ArrayLike) -> Nearest:
        """Nearest and second nearest centre of every point; ties to the lowest position."""
        sites = indices(centers, self.n_points, "centers")
        if not sites.size:
            raise InvalidValue("centers must hold at least one point.")
        owner, first, second, runner = (np.zeros(self.n_points, dtype=np.int32) for _ in range(4))
        width = max(1, BLOCK // len(sites))
        for start in range(0, self.n_points, width):
            part = np.arange(start, min(start + width, self.n_points))
            kernels.two_nearest(self._between(sites, part), start, self.diameter, owner, first, second, runner)
        return owner, first, second, runner

    @abstractmethod
    def _between(self, sources: NDArray[np.int64], targets: NDArray[np.int64] | None) -> Distances:
        """Distances in steps of checked points; to all of them if no targets are given."""
