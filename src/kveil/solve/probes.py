"""How rows are seen when distances are taken: as they are, or as the nearest point of a synopsis."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from kveil.arrays import Floats


class Probe(Protocol):
    """How rows are seen in round t.

    is_fixed: the same in every round, so that distances need no recomputing.
    is_recordwise: what is seen of a row depends on that row and public values alone. Private seeding takes no other: its
        sensitivity is that of one record.
    """

    is_fixed: bool
    is_recordwise: bool

    def apply(self, t: int, points: Floats, centers: Floats) -> Floats: ...


class Identity:
    """Rows as they are."""

    is_fixed = True
    is_recordwise = True

    def apply(self, t: int, points: Floats, centers: Floats) -> Floats:
        return points


class NearestOf:
    """Every row as the nearest point of a synopsis: k-variates++ of the rows is then weighted k-means++ of the synopsis."""

    is_fixed = True

    def __init__(self, synopsis: ArrayLike, *, is_public: bool = False) -> None:
        self.synopsis, self.is_recordwise = np.asarray(synopsis, dtype=np.float64), is_public
        self._seen: tuple[Floats, Floats] | None = None

    def apply(self, t: int, points: Floats, centers: Floats) -> Floats:
        if self._seen is None or self._seen[0] is not points:
            from scipy.spatial import cKDTree  # quick here: it answers nearest-point queries, and few are asked

            self._seen = points, self.synopsis[cKDTree(self.synopsis).query(points)[1]]
        return self._seen[1]
