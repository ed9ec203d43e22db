"""Counts and coordinate sums of the rows nearest to each centre."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.space.euclidean import Centers, assign
from kveil.summary import _kernels

Integers = NDArray[np.int64]


def cluster_sums(rows: Any, centers: Centers) -> tuple[Integers, Integers]:
    """Raw counts (k,) and raw sums (k, d) of a block of encoded rows; blocks add up.

    One row adds 1 to one count and its code to the sum of the same cluster, whatever the other rows are.
    """
    owner = assign(rows, centers)
    raw_counts = np.zeros(len(centers.codes), dtype=np.int64)
    raw_sums = np.zeros(centers.codes.shape, dtype=np.int64)
    if hasattr(rows, "indices"):
        _kernels.add_sparse_rows(rows.data, rows.indices, rows.indptr, owner, raw_counts, raw_sums)
    else:
        _kernels.add_rows(rows, owner, raw_counts, raw_sums)
    return raw_counts, raw_sums
