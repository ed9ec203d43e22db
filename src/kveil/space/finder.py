"""Which of many codes is nearest to a row of codes; ties to the smallest. Exact, and row by row.

In few dimensions a k-d tree proposes and integers decide; otherwise all codes are compared, by matrix products for Euclidean
distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.arrays import Integers
from kveil.space import _universe_kernels as kernels

Codes = NDArray[np.int32]

TILE = 2048  # codes a product
MOST_AXES = 8  # beyond it a tree visits most of its leaves
FEWEST_CODES = 256  # below it a tree is not worth its overhead
TIES = 8  # neighbours asked of the tree; a row with still more ties is compared with all codes


class Finder:
    """Nearest of `codes`, whose numbers are `numbers`, ascending; `norm` is 1 (Manhattan) or 2 (Euclidean)."""

    def __init__(self, codes: Codes, numbers: Integers, norm: int, bits: int) -> None:
        self.codes, self.numbers, self.norm = codes, numbers, norm
        self.squares = np.einsum("ij,ij->i", codes, codes, dtype=np.float64)
        n_codes, n_axes = codes.shape
        # a tree splits at halves of integers: two more bits, and what it adds up is still exact
        is_exact = n_axes * 4 ** (bits + 1) <= 2**53
        self.tree = _tree(codes) if n_axes <= MOST_AXES and n_codes >= FEWEST_CODES and is_exact else None

    def closest(self, rows: Codes) -> Integers:
        if self.tree is None:
            return self.numbers[self._compared(rows)]
        apart, near = self.tree.query(rows, k=TIES, p=self.norm)
        is_tied = apart == apart[:, :1]
        found = np.where(is_tied, near, len(self.codes)).min(axis=1)
        crowded = np.flatnonzero(is_tied[:, -1])  # all of them tie, and there may be more
        found[crowded] = self._compared(rows[crowded])
        return np.asarray(self.numbers[found])

    def _compared(self, rows: Codes) -> Integers:
        best, owner = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=np.int64)
        for start in range(0, len(self.codes), TILE):
            tile = self.codes[start : start + TILE]
            if self.norm == 1:
                kernels.city_nearer(tile, rows, start, best, owner)
            else:
                products = tile.astype(np.float64) @ rows.T.astype(np.float64)
                kernels.nearer(products, self.squares[start : start + TILE], start, best, owner)
        return owner


def _tree(codes: Codes) -> Any:
    from scipy.spatial import KDTree  # half a second to import

    return KDTree(codes)
