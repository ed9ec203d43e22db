"""k-median++ on a universe: its exact law, its corners, and what it refuses."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from kveil import Euclidean, Graph, Precomputed
from kveil.errors import InvalidValue
from kveil.seeding import kmedian_plusplus

LINE = Graph.from_edges([[0, 1], [1, 2], [2, 3]], lengths=[1, 2, 4])


TRIPLES = list(permutations(range(4), 3))
WEIGHTS = np.array([3.0, 0.5, 1.0, 2.0])


def law(power):
    """The chance of every ordered triple."""
    apart = LINE.distances(np.arange(4)).astype(float) ** power

    def chance(a, b, c):
        second, third = WEIGHTS * apart[a], WEIGHTS * np.minimum(apart[a], apart[b])
        return WEIGHTS[a] / WEIGHTS.sum() * second[b] / second.sum() * third[c] / third.sum()

    return np.array([chance(*triple) for triple in TRIPLES])


@pytest.mark.parametrize(("objective", "power"), [("k-median", 1), ("k-means", 2)])
@pytest.mark.parametrize("space", [LINE, Precomputed(LINE.distances(np.arange(4)))], ids=["graph", "matrix"])
def test_seeds_are_drawn_by_weight_and_distance(space, objective, power):
    """The third seed comes from the table of the second, by rejection. The seed of this test is fixed: a right law would fail a
    fresh one once in 1e9, and the twin, the law of the other objective, is told apart."""
    rng, n_draws = np.random.default_rng(5), 4000
    drawn = [tuple(kmedian_plusplus(space, 3, weights=WEIGHTS, objective=objective, random_state=rng)) for _ in range(n_draws)]
    seen = np.array([drawn.count(triple) for triple in TRIPLES])
    assert seen.sum() == n_draws
    most = chi2.isf(1e-9, len(TRIPLES) - 1)
    right, twin = n_draws * law(power), n_draws * law(3 - power)
    assert right.sum() == pytest.approx(n_draws)
    assert ((seen - right) ** 2 / right).sum() < most < ((seen - twin) ** 2 / twin).sum()


def test_points_without_weight_are_not_drawn_while_others_are_apart():
    space = Euclidean(np.arange(40.0)[:, None])
    weights = np.zeros(40)
    weights[[4, 8, 15, 16, 23]] = 1e-6
    assert sorted(kmedian_plusplus(space, 5, weights=weights, random_state=0)) == [4, 8, 15, 16, 23]


@pytest.mark.parametrize("k", [2, 3, 6])
def test_fewer_places_than_seeds_are_filled_up_with_points_that_are_not_taken(k):
    same = Precomputed(np.where(np.arange(6)[:, None] % 2 == np.arange(6) % 2, 0, 7))  # two places, three points each
    seeds = kmedian_plusplus(same, k, random_state=1)
    assert len(set(seeds.tolist())) == k
    assert {seed % 2 for seed in seeds[:2].tolist()} == {0, 1}


def test_one_point_and_points_in_one_place():
    assert kmedian_plusplus(Precomputed([[0]]), 1).tolist() == [0]
    assert sorted(kmedian_plusplus(Precomputed(np.zeros((3, 3), dtype=int)), 3)) == [0, 1, 2]


def test_the_same_state_gives_the_same_seeds():
    assert kmedian_plusplus(LINE, 3, random_state=4).tolist() == kmedian_plusplus(LINE, 3, random_state=4).tolist()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_clusters": 5}, "from 1 to 4"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": True}, "n_clusters"),
        ({"n_clusters": 2.0}, "n_clusters"),
        ({"weights": [1, 1]}, "one for every point"),
        ({"weights": ["a"] * 4}, "numbers"),
        ({"weights": [1, 1, np.nan, 1]}, "finite"),
        ({"weights": [1, 1, -1, 1]}, "finite"),
        ({"weights": [0, 0, 0, 0]}, "not all of them 0"),
        ({"objective": "k-center"}, "objective"),
    ],
)
def test_what_makes_no_sense_is_refused(options, word):
    with pytest.raises(InvalidValue, match=word):
        kmedian_plusplus(LINE, **{"n_clusters": 2, **options})
