"""Which leaf a noisy tree releases: the exact law for k = 1 on complete binary trees, by sums over the noise.

The node with the best score, noisy count times radius, is found and the larger count followed down to a leaf. What one row can do
to these probabilities is what the mechanism costs, whatever a composition theorem says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kveil.arrays import Floats, Integers

TAIL = 36.0  # deviations of noise that are added up on either side; what is beyond is below 1e-15


@dataclass(frozen=True)
class Depth:
    """How counts of one depth are measured: share * count + Z, P(z) ~ exp(-|z| rate), taken for share times the count."""

    rate: float
    share: int = 1


def leaf_law(counts: Sequence[int], depths: Sequence[Depth]) -> Floats:
    """Probability of every leaf of a complete binary tree to be released. counts: of the 2**m leaves; depths: 1 to m.

    Nodes are numbered level by level; ties go to the lower number. The radius halves from depth to depth.
    """
    tree = _Tree(np.asarray(counts, dtype=np.int64), tuple(depths))
    law = np.zeros(len(counts))
    for leaf in range(len(counts)):
        for depth in range(1, len(depths) + 1):
            law[leaf] += tree.released_from(depth, leaf)
    return law


def worst_loss(one: Floats, other: Floats) -> float:
    """The largest |log-ratio| of two laws: the epsilon that the pair shows."""
    return float(np.abs(np.log(one / other)).max())


class _Tree:
    def __init__(self, counts: Integers, depths: tuple[Depth, ...]) -> None:
        self.depths, self.height = depths, len(depths)
        self.counts = [counts.reshape(2**depth, -1).sum(axis=1) for depth in range(self.height + 1)]
        common = np.lcm.reduce([depth.share for depth in depths])
        # score of a measured value z at a depth: z * worth, a whole number, so that ties are exact
        self.worth = [0, *(2 ** (self.height - 1 - above) * int(common) // how.share for above, how in enumerate(depths))]

    def released_from(self, depth: int, leaf: int) -> float:
        """P(the node of `leaf` at `depth` has the best score, and the way down from it leads to `leaf`)."""
        node = leaf >> (self.height - depth)
        values = self._support(depth, node)
        scores = values * self.worth[depth]
        chance = self._pmf(depth, node, values) * self._way_down(depth, leaf, scores)
        for other_depth in range(1, self.height + 1):
            for other in range(2**other_depth):
                is_below = other_depth >= depth and other >> (other_depth - depth) == node
                if not is_below:  # what is below is in the way down
                    comes_after = (other_depth, other) > (depth, node)
                    chance = chance * self._cdf(other_depth, other, self._most(other_depth, scores, comes_after))
        return float(chance.sum())

    def _way_down(self, depth: int, leaf: int, scores: Integers) -> Floats:
        """P(the larger count leads from the node at `depth` to `leaf`, and no score below the node passes `scores`)."""
        if depth == self.height:
            return np.ones(len(scores))
        child = leaf >> (self.height - depth - 1)
        sibling = child ^ 1
        values = self._support(depth + 1, child)
        ahead = self._pmf(depth + 1, child, values) * self._cdf(depth + 1, sibling, values - (child & 1))  # ties to the first
        summed = np.concatenate([[0.0], np.cumsum(ahead)])
        places = np.clip(self._most(depth + 1, scores, True) - values[0] + 1, 0, len(values))
        chance = summed[places] * self._way_down(depth + 1, leaf, scores)
        for below in range(depth + 2, self.height + 1):
            width = 2 ** (below - depth - 1)
            for other in range(sibling * width, (sibling + 1) * width):
                chance = chance * self._cdf(below, other, self._most(below, scores, True))
        return np.asarray(chance)

    def _most(self, depth: int, scores: Integers, may_tie: bool) -> Integers:
        """The largest value of a node that does not beat the score."""
        worth = self.worth[depth]
        return np.asarray(scores // worth if may_tie else -(-scores // worth) - 1)

    def _support(self, depth: int, node: int) -> Integers:
        how = self.depths[depth - 1]
        reach = int(TAIL / how.rate) + int(self.counts[0][0]) * how.share  # rare leaves: from one end of the counts to the other
        middle = int(self.counts[depth][node]) * how.share
        return np.arange(middle - reach, middle + reach + 1)

    def _pmf(self, depth: int, node: int, values: Integers) -> Floats:
        how = self.depths[depth - 1]
        away = np.abs(values - self.counts[depth][node] * how.share)
        return np.asarray(np.tanh(how.rate / 2) * np.exp(-how.rate * away))

    def _cdf(self, depth: int, node: int, values: Integers) -> Floats:
        how = self.depths[depth - 1]
        away = values - self.counts[depth][node] * how.share
        tail = np.exp(-how.rate * np.where(away >= 0, away + 1, -away)) / (1 + np.exp(-how.rate))
        return np.asarray(np.where(away >= 0, 1 - tail, tail))
