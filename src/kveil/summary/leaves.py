"""Counts and sums of all leaves of a public partition: a linear summary, of fixed size, that a stream can fill."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.kernel.grid import Box
from kveil.partition.midpoints import Midpoints
from kveil.partition.projection import AXIS_BITS
from kveil.summary import _kernels
from kveil.summary.frame import Frame, blocks

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_AXES = 20  # with more columns, halvings would not reach them all: leaves are cut in a projection
PROJECTED = 12  # axes of that; they reach half as far as a row may, since few rows lie in a corner of the domain


@dataclass(frozen=True, eq=False)
class Leaves:
    """2**depth leaves, cut before any row was seen: of the cube itself, or of a public projection of it.

    Rows are integers in steps of one length, from the middle of the domain, of L2 norm at most `frame.radius`.
    """

    frame: Frame
    cells: Midpoints
    n_columns: int

    @classmethod
    def of(cls, domain: Box, depth: int) -> Leaves:
        """The leaves of a domain, the same on every machine."""
        frame, d = Frame.of(domain, None), domain.n_columns
        if d > MOST_AXES:
            half = frame.radius // 2
            frame = replace(frame, axes=signs(d, PROJECTED) << AXIS_BITS, reach=half * ceil(sqrt(PROJECTED)))
            return cls(frame, Midpoints.in_turn([half] * PROJECTED, depth), d)
        sides = np.maximum(np.rint(domain.top * (np.ones(d) if frame.ratio is None else frame.ratio)), 1)
        return cls(frame, Midpoints.widest_first(sides, depth), d)

    @property
    def is_projected(self) -> bool:
        return self.frame.axes is not None

    @property
    def n_leaves(self) -> int:
        return 1 << self.cells.depth


def leaf_sums(rows: Any, leaves: Leaves) -> tuple[Integers, Integers]:
    """Raw counts (leaves,) and raw sums (leaves, columns). A row is in one leaf: it adds 1 there, and itself."""
    raw_counts = np.zeros(leaves.n_leaves, dtype=np.int64)
    raw_sums = np.zeros((leaves.n_leaves, leaves.n_columns), dtype=np.int64)
    for block in blocks(rows):
        inside = leaves.frame.centred(block) if leaves.is_projected else leaves.cells.clamped(leaves.frame.measured(block))
        codes = leaves.cells.find(leaves.frame.projected(inside) if leaves.is_projected else inside)
        _kernels.add_rows(inside, codes, raw_counts, raw_sums)
    return raw_counts, raw_sums


def signs(n_columns: int, n_axes: int) -> Integers:
    """A public matrix (columns, axes) of 1 and -1, the same everywhere: sums with random signs nearly keep distances, times
    sqrt(axes) (Achlioptas, 2003), and are exact in integers."""
    text = f"kveil signs {n_columns} x {n_axes}".encode()
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(text).digest(n_columns * n_axes), dtype=np.uint8))
    return np.asarray(2 * bits[: n_columns * n_axes].reshape(n_columns, n_axes).astype(np.int64) - 1)
