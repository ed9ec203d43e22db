"""Counts and sums of all leaves of a public partition, which a stream can add up, and what can be asked of them later."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from kveil.arrays import Integers
from kveil.kernel.grid import Box
from kveil.partition.midpoints import Midpoints
from kveil.partition.projection import AXIS_BITS
from kveil.questions import _kernels
from kveil.questions.base import Part, Question
from kveil.questions.frame import Frame, blocks

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


@dataclass(frozen=True, eq=False)
class LeafTotals(Question):
    """Counts (leaves,) and sums (leaves, columns) of all leaves. A row is in one leaf: it adds 1 there, and itself, in a ball."""

    leaves: Leaves

    @property
    def parts(self) -> tuple[Part, Part]:
        return Part("leaves", "counts"), Part("sums of leaves", "vectors", self.leaves.frame.radius)

    def raw(self, rows: Any) -> tuple[Integers, Integers]:
        leaves = self.leaves
        raw_counts = np.zeros(leaves.n_leaves, dtype=np.int64)
        raw_sums = np.zeros((leaves.n_leaves, leaves.n_columns), dtype=np.int64)
        for block in blocks(rows):
            inside = leaves.frame.centred(block) if leaves.is_projected else leaves.cells.clamped(leaves.frame.measured(block))
            codes = leaves.cells.find(leaves.frame.projected(inside) if leaves.is_projected else inside)
            _kernels.add_rows(inside.astype(np.int64), codes, raw_counts, raw_sums)
        return raw_counts, raw_sums


@dataclass(frozen=True, eq=False)
class LeafCounts(Question):
    """Rows in different cells of a level, each a run of leaves: a row is in at most one."""

    label: str
    level: int
    codes: Integers
    over: ClassVar[type[Question]] = LeafTotals

    def __post_init__(self) -> None:
        is_inside = ((self.codes >= 0) & (self.codes < 1 << self.level)).all()  # -1 would be the last cell once more
        if not is_inside or len(np.unique(self.codes)) != len(self.codes):
            raise AssertionError("cells are codes of their level, none twice: that would count a row twice")

    @property
    def parts(self) -> tuple[Part]:
        return (Part(self.label, "counts"),)

    def raw(self, held: tuple[Integers, Integers]) -> tuple[Integers]:
        return (held[0].reshape(1 << self.level, -1).sum(axis=1)[self.codes],)


@dataclass(frozen=True, eq=False)
class LeafSums(Question):
    """Disjoint sets of leaves: their rows, and the sum of what each row is from the base of its leaf, times a factor of the leaf.

    A row adds 1 to one count. Its vector is no longer than the way from the base to the farthest corner of its leaf (without
    bases: than the radius of all rows), times the factor, and that is held against `length` when the question is made.
    """

    leaves: Leaves
    labels: tuple[str, str]
    owner: Integers  # (leaves,)
    n_owners: int
    length: int
    bases: Integers | None = None  # (leaves, d); None: the middle of the domain
    factors: Integers | None = None  # (leaves,)
    over: ClassVar[type[Question]] = LeafTotals

    def __post_init__(self) -> None:
        factors = np.ones(self.leaves.n_leaves, dtype=np.int64) if self.factors is None else self.factors
        if (factors < 1).any():
            raise AssertionError("factors are at least 1: the bound below is about their size")
        allowed = np.minimum(self.length // factors, 2**31)  # far times factor <= length, if far <= this
        if self.bases is None:
            fits = self.leaves.frame.radius <= allowed.min()
        else:
            fits = not self.leaves.is_projected and bool((squared_reaches(self.leaves, self.bases) <= allowed**2).all())
        if not fits:
            raise AssertionError("a row of some leaf could add a longer vector than the one that is charged for")

    @property
    def parts(self) -> tuple[Part, Part]:
        return Part(self.labels[0], "counts"), Part(self.labels[1], "vectors", self.length)

    def is_about(self, held: Question) -> bool:
        return isinstance(held, LeafTotals) and held.leaves is self.leaves

    def raw(self, held: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
        counts, sums = held
        raw_counts, raw_sums = np.zeros(self.n_owners, dtype=np.int64), np.zeros((self.n_owners, sums.shape[1]), dtype=np.int64)
        np.add.at(raw_counts, self.owner, counts)
        moved = sums if self.bases is None else sums - counts[:, None] * self.bases
        np.add.at(raw_sums, self.owner, moved if self.factors is None else moved * self.factors[:, None])
        return raw_counts, raw_sums


def squared_reaches(leaves: Leaves, bases: Integers) -> Integers:
    """The squared distance (leaves,) from each leaf's base to the farthest corner of the leaf, in whole steps."""
    low, high = leaves.cells.boxes(np.arange(leaves.n_leaves), leaves.cells.depth)
    return np.asarray((np.maximum(np.abs(low - bases), np.abs(high - bases)) ** 2).sum(axis=1))


def signs(n_columns: int, n_axes: int) -> Integers:
    """A public matrix (columns, axes) of 1 and -1, the same everywhere: sums with random signs nearly keep distances, times
    sqrt(axes) (Achlioptas, 2003), and are exact in integers."""
    text = f"kveil signs {n_columns} x {n_axes}".encode()
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(text).digest(n_columns * n_axes), dtype=np.uint8))
    return np.asarray(2 * bits[: n_columns * n_axes].reshape(n_columns, n_axes).astype(np.int64) - 1)
