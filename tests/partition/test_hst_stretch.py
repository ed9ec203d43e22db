"""Why the factor of the radii is random: with a fixed one, near neighbours part at the very top."""

import numpy as np
import pytest

from kveil.partition.hst import Hst
from kveil.space.matrix import Precomputed

TREES = 400


def neighbours_among_many(n, diameter=2000):
    """Points 0 and 1 are 1 apart; all others are half a diameter from 0, one more from 1, and a diameter from each other."""
    matrix = np.full((n, n), diameter)
    matrix[0, 1:] = matrix[1:, 0] = diameter // 2
    matrix[1, 2:] = matrix[2:, 1] = diameter // 2 + 1
    matrix[0, 1] = matrix[1, 0] = 1
    np.fill_diagonal(matrix, 0)
    return Precomputed(matrix)


def parted_at_the_top(space, **how):
    """In how many trees of one level the two neighbours are in different cells."""
    trees = (Hst.of(space, levels=1, **how) for _ in range(TREES))
    return sum(tree.leaf[0] != tree.leaf[1] for tree in trees)


@pytest.mark.statistical
def test_a_random_factor_keeps_neighbours_together_and_a_fixed_one_does_not():
    """n = 100. A fixed factor parts them with probability 98/100 (unless one of the two comes first), a random one only if the
    radius is between 1000 and 1001, probability log2(1001/1000) = 0.0014. Chances of a false alarm: 3e-24 and 2e-16."""
    space = neighbours_among_many(100)
    assert parted_at_the_top(space) < 0.05 * TREES
    assert parted_at_the_top(space, beta=1.0) > 0.90 * TREES
