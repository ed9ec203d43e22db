"""How many rows of a demand are at every point of a public universe, in every cell of a partition, or in every node of a tree.

Rows come as the index of their point.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, lcm
from typing import Any, ClassVar, Literal

import numpy as np

from kveil.arrays import Integers, Steps
from kveil.partition.budgets import path_shares
from kveil.partition.hst import Hst
from kveil.questions.base import Part, Question

LEVELS = 8  # of a tree, at most
PATH = lcm(*range(1, LEVELS + 1))  # divisible by the height of any such tree
IN_ONE_CELL = "a row is in one cell"


class DemandSize(Question):
    """The number of rows. A person has between 0 and m of them before and after, so it moves by at most m, replaced or not."""

    parts: ClassVar = (
        Part("number of rows", "total", reason="a person has between 0 and all of the rows they may have, before and after"),
    )

    def raw(self, points: Steps) -> tuple[Integers]:
        return (np.array([len(points)]),)


@dataclass(frozen=True)
class PointCounts(Question):
    """Rows at each point (n,): a row adds 1 to one of them."""

    n_points: int
    parts: ClassVar = (Part("points", "counts", reason="a row is at one point"),)

    def raw(self, points: Steps) -> tuple[Integers]:
        return (np.bincount(points, minlength=self.n_points),)


@dataclass(frozen=True, eq=False)
class PartitionCounts(Question):
    """Rows in each cell (m,), `owner` being the cell of each point: a row adds 1 to one of them."""

    owner: Steps
    parts: ClassVar = (Part("cells", "counts", reason=IN_ONE_CELL),)

    def raw(self, points: Steps) -> tuple[Integers]:
        return (np.bincount(self.owner[points], minlength=int(self.owner.max()) + 1),)


@dataclass(frozen=True, eq=False)
class TreeCounts(Question):
    """Weighted counts (nodes - 1,) of all nodes of a public tree but the root, empty ones too.

    A node's count is multiplied by a whole weight, noise of one width is added to all, and the sum is divided by the weight
    again: one release of one stated sensitivity, in which the noise of a node is as narrow as its part of the budget says.
    A row is in the nodes of one path: it adds at most PATH in L1, or with squared weights in L2.
    """

    tree: Hst
    is_squared: bool

    @property
    def parts(self) -> tuple[Part]:
        return (tree_part(is_squared=self.is_squared),)

    @property
    def weights(self) -> Integers:
        return tree_weights(self.tree, is_squared=self.is_squared)

    def raw(self, points: Any) -> tuple[Integers]:
        return (self.weighted(np.bincount(points, minlength=len(self.tree.leaf))),)

    def weighted(self, raw_counts: Integers) -> Integers:
        return np.asarray((self.weights * self.tree.sums(raw_counts))[1:])


@dataclass(frozen=True, eq=False)
class DemandTree(TreeCounts):
    """The same, of a demand that was counted by points before. With Gaussian noise it is one vector."""

    over: ClassVar[type[Question]] = PointCounts

    @property
    def parts(self) -> tuple[Part]:
        kind: Literal["vectors", "coordinates"] = "vectors" if self.is_squared else "coordinates"
        return (Part("tree", kind, PATH),)

    def raw(self, held: tuple[Integers]) -> tuple[Integers]:
        return (self.weighted(held[0]),)


def tree_part(*, is_squared: bool) -> Part:
    """What one row can do to a tree's weighted counts, whatever the tree: known before a plan is made."""
    return Part("cells", "counts", PATH, reason=IN_ONE_CELL, in_l2=is_squared)


def tree_weights(tree: Hst, *, is_squared: bool) -> Integers:
    """Whole weights (nodes,) of a tree of at most `LEVELS` levels; the root, which is not asked for, has 0.

    Along every path from the root they add up to PATH, or their squares to at most PATH squared.
    """
    shares, total = path_shares(tree)
    if not is_squared:
        return shares * (PATH // total)
    roots = [isqrt(share * PATH * PATH // total) for share in range(total + 1)]
    return np.array(roots, dtype=np.int64)[shares]
