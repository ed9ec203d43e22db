"""How a budget is shared out over the nodes of a tree, so that along every path from the root it adds up to the whole.

Why that is enough: a row adds one to the counts of the nodes of one path and to no others, so what it can move costs the sum
of their budgets. The budget of a node must not depend on the leaf one comes from: dividing by the length of each path would
give a node above two leaves two budgets. The root is not counted and costs nothing. All of this is public.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kveil.arrays import Integers
from kveil.errors import InvalidValue
from kveil.partition.hst import Hst

Split = Literal["uniform", "halving"]


def path_shares(tree: Hst, split: Split = "uniform") -> tuple[Integers, int]:
    """Whole shares (nodes,), the root's 0, and what they add up to along every path from the root to a leaf.

    "uniform": every depth gets the same. "halving": each depth half of the one above, as in the paper, scaled to cost what is
    said. A leaf also gets what the depths below it would have had.
    """
    height = max(1, tree.height)
    if split == "uniform":
        at_depth = [1] * height
    elif split == "halving":
        at_depth = [2 ** (height - depth) for depth in range(1, height + 1)]
    else:
        raise InvalidValue('split must be "uniform" or "halving".')
    alone = np.array([0, *at_depth])
    with_rest = np.concatenate([[0], np.cumsum(at_depth[::-1])[::-1]])
    shares = np.where(tree.n_children > 0, alone[tree.depth], with_rest[tree.depth])
    return shares.astype(np.int64), sum(at_depth)
