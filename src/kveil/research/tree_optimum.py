"""k-median in the metric of a 2-HST: what centres cost there, and the least that any can, exactly. For Theorem 3.7.

"k-Median Clustering via Metric Embedding", section 3.3: an edge of level i has length 2**(i - 1), so two points whose cells part
at level h, that is between nodes of level h, are 2 (2**(h + 1) - 1) apart. Chains of one cell are collapsed here, which changes
no distance. All demands are public.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kveil.arrays import Floats, Integers
from kveil.partition.hst import Hst
from kveil.solve.hst import leaf_search, subtree_search


class TreeCosts(NamedTuple):
    """Costs in the tree's metric: of Algorithm 4, of the best leaves below the nodes it finds, and of the best leaves of all."""

    seeds: float
    best_leaves: float
    optimum: float


def tree_costs(tree: Hst, counts: Integers, k: int) -> TreeCosts:
    """For a demand of so many people at each point (n,). The optimum is exact.

    A point costs the span of the lowest cell around it that has a centre. So a set of centres saves, for every cell v with one,
    N_v (span of its parent - span of v) of what the root alone would cost: the optimum is k leaves whose ways up cover the most.
    Ways that share their upper part are told apart by cutting the tree into longest ways, and the k longest of those are best.
    """
    numbers = tree.sums(counts)
    saved, longest, heir = _ways(tree, numbers)
    all_of_it = float(numbers[0] * _spans(tree)[0])
    nodes = subtree_search(tree, numbers * tree.gap, k)
    is_heir = np.zeros(tree.n_nodes, dtype=np.bool_)
    is_heir[heir[heir >= 0]] = True
    ways = np.sort(longest[~is_heir])[::-1]
    chosen = leaf_search(tree, numbers, nodes)
    best = np.array([_follow(heir, int(node)) for node in nodes])
    return TreeCosts(
        all_of_it - _covered(tree, saved, chosen), all_of_it - _covered(tree, saved, best), all_of_it - float(ways[:k].sum())
    )


def _spans(tree: Hst) -> Floats:
    """How far two points are that part right below a node; 0 for leaves."""
    spans = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.n_children)
    lowest = tree.factor * tree.diameter / 2**tree.n_levels  # the radius of level 0
    spans[inner] = 4 * tree.gap[tree.first_child[inner]] / lowest - 2
    return spans


def _ways(tree: Hst, numbers: Integers) -> tuple[Floats, Floats, Integers]:
    """What a centre in each node saves there, the most it saves from there down along one way, and the child that way goes to."""
    spans = _spans(tree)
    saved = np.zeros(tree.n_nodes)
    saved[1:] = numbers[1:] * (spans[tree.parent[1:]] - spans[1:])
    longest, heir = saved.copy(), np.full(tree.n_nodes, -1)
    for node in np.flatnonzero(tree.n_children)[::-1]:  # children before parents
        children = tree.children(int(node))
        heir[node] = children[np.argmax(longest[children])]
        longest[node] += longest[heir[node]]
    return saved, longest, heir


def _follow(heir: Integers, node: int) -> int:
    while heir[node] >= 0:
        node = int(heir[node])
    return node


def _covered(tree: Hst, saved: Floats, leaves: Integers) -> float:
    is_covered = np.zeros(tree.n_nodes, dtype=np.bool_)
    for leaf in leaves.tolist():
        node = leaf
        while node > 0 and not is_covered[node]:
            is_covered[node] = True
            node = int(tree.parent[node])
    return float(saved[is_covered].sum())
