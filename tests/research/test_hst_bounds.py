"""Theorem 3.7 of the HST paper on trees whose optimum is known, and swaps that starts leave to do (Theorem 3.10)."""

from itertools import combinations

import numpy as np
import pytest

from kveil import Precomputed
from kveil.partition.hst import Hst
from kveil.research.hst_bounds import STARTS, UNIVERSES, measure, proved_steps, search_term, seeds_term
from kveil.research.tree_optimum import tree_costs

pytestmark = pytest.mark.research


def tree_of(places, levels, rng=0):
    apart = np.abs(np.asarray(places)[:, None] - np.asarray(places))
    return Hst.of(Precomputed(apart.astype(np.int32)), levels=levels, beta=1.0, random_state=rng)


def distances(tree):
    """Of all pairs of leaves, by walking up: edges between levels i - 1 and i are 2**(i - 1) long, and leaves are on level 0."""
    level = np.rint(np.log2(tree.gap / (tree.factor * tree.diameter / 2**tree.n_levels))).astype(int)  # of the highest of a chain
    above = [[leaf] for leaf in tree.leaves.tolist()]
    for way in above:
        while way[-1]:
            way.append(int(tree.parent[way[-1]]))
    found = np.zeros((len(above), len(above)))
    for i, j in combinations(range(len(above)), 2):
        child = next(node for node in above[i] if tree.parent[node] in above[j])
        found[i, j] = found[j, i] = 2 * sum(2 ** (i - 1) for i in range(1, level[child] + 2))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_of_a_tree_is_the_least_over_all_sets_of_leaves(seed):
    rng = np.random.default_rng(seed)
    tree = tree_of(np.cumsum(2 ** rng.integers(0, 8, 10)), 10, rng)
    counts = rng.integers(0, 2 ** rng.integers(1, 10), 10)
    apart, people = distances(tree), tree.sums(counts)[tree.leaves]
    for k in range(1, len(tree.leaves)):
        least = min(people @ apart[:, list(some)].min(axis=1) for some in combinations(range(len(people)), k))
        assert tree_costs(tree, counts, k).optimum == pytest.approx(least, abs=1e-9)


def test_theorem_3_7_and_both_of_its_lemmas_hold_on_random_trees():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(5, 40))
        tree = tree_of(np.cumsum(2 ** rng.integers(0, 9, n)), 12, rng)
        counts = rng.integers(0, 2 ** rng.integers(1, 12), n)
        for k in (1, 2, 4):
            found = tree_costs(tree, counts, k)
            assert found.optimum <= found.best_leaves + 1e-9 <= found.seeds + 2e-9
            assert found.best_leaves <= 5 * found.optimum + 1e-9
            assert found.seeds <= 2 * found.best_leaves + 1e-9
            assert found.seeds <= 10 * found.optimum + 1e-9


def test_seeds_can_cost_nearly_twice_the_optimum_of_a_tree():
    """129 people each at two near places and one far away, k = 2, eight levels: both near places have the higher scores."""
    far = 2**8
    tree = Hst.of(Precomputed(np.array([[0, 2, far], [2, 0, far], [far, far, 0]], dtype=np.int32)), levels=8, beta=1.0)
    found = tree_costs(tree, np.array([129, 129, 1]), 2)
    assert (found.seeds, found.optimum) == (510, 258)


@pytest.mark.parametrize("universe", UNIVERSES)
def test_hst_seeds_are_within_a_constant_at_once_and_leave_fewer_swaps_than_k_log_n(universe):
    for found in measure(universe, 200, (4, 20), 2):
        by_start = dict(zip(STARTS, found.searches, strict=True))
        assert 1 <= found.tree <= 10
        assert by_start["HST"].swaps_to_constant == 0
        assert 1 <= by_start["HST"].seeds < 5
        assert by_start["HST"].swaps_to_end <= 2 * found.k * np.log(200)
    if universe == "islands":
        assert by_start["random"].swaps_to_constant > 0  # where nothing is lost at first, nothing is measured


def test_additive_terms_are_those_of_the_proofs():
    n, k = 10_000, 20
    assert seeds_term(n, k, 1.0) == pytest.approx(20 * np.log(n))
    rate = 2.0 / (4 * 21)  # epsilon' of Algorithm 7 for epsilon 2, a diameter of 1 and T = 20
    assert search_term(n, k, 2.0, 20) == pytest.approx((24 * k * np.log(n) + 4 * np.log(n)) / rate)
    assert proved_steps(n, k) == pytest.approx(6 * 20 * np.log(np.log(n)))
