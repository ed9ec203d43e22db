"""HeavyCellMarker on counts made by hand, descent of the tree, and Bitstogram against both."""

from fractions import Fraction
from math import log2

import numpy as np
import pytest
from exact_answers import Exact

from kveil.collect import bitstogram, oracles
from kveil.collect.answers import Drawn, FromLaw
from kveil.collect.descent import Level, descend, threshold
from kveil.collect.device import reports
from kveil.collect.marker import guesses, least_people, mark, n_levels
from kveil.collect.one_grid import cell_query
from kveil.collect.queries import Query, Terms
from kveil.partition.lsh import is_medium
from kveil.partition.public_map import ROOT, PublicMap, side

PLAIN = PublicMap(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))


def keys(*some):
    return np.array(some, dtype=np.uint64)


LEVELS = [
    Level(2, keys(0, 1, 3), np.array([90.0, 20.0, 60.0]), 1.0),
    Level(4, keys(0, 2, 5, 13), np.array([70.0, 10.0, 99.0, 55.0]), 1.0),  # 5 is a child of 1, which is light
    Level(6, keys(1, 53), np.array([4.0, 3.0]), 1.0),
]


def test_heavy_cells_reach_the_threshold_and_have_a_heavy_parent():
    heavy = mark(LEVELS, [50.0, 40.0, 30.0], 2)
    assert [some.tolist() for some in heavy] == [[0, 3], [0, 13], []]


def test_an_empty_level_ends_it_even_if_deeper_cells_would_pass():
    assert [some.tolist() for some in mark(LEVELS, [500.0, 0.0, 0.0], 2)] == [[], [], []]


def test_a_medium_cell_is_a_light_child_of_a_heavy_one():
    heavy = mark(LEVELS, [50.0, 40.0, 30.0], 2)
    cells = np.arange(16, dtype=np.uint64)
    medium = cells[is_medium(cells, heavy[0], heavy[1], 2)]
    assert medium.tolist() == [1, 2, 3, 12, 14, 15]
    assert not set(medium) & set(heavy[1])
    assert np.arange(4)[is_medium(keys(0, 1, 2, 3), keys(0), heavy[0], 2)].tolist() == [1, 2]


def test_a_higher_optimum_leaves_fewer_cells_heavy():
    def total(opt):
        least = [least_people(level, opt, 2, 5.0) for level in (1, 2, 3)]
        return sum(len(some) for some in mark(LEVELS, least, 2))

    counts = [total(opt) for opt in (0.1, 50.0, 200.0, 1e3, 1e6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0
    assert least_people(2, 1e-9, 2, 5.0) == 5.0


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9])
def test_levels_stop_where_no_cell_could_be_heavy(n):
    """Against brute force: the threshold of a level passes n."""
    k = 8
    for f, opt in enumerate(guesses(n, k)):
        possible = [level for level in range(1, 64) if opt / (k * side(level) ** 2) <= n]
        assert n_levels(n, f) == max([1, *possible])
    assert guesses(n, k)[-1] <= n or len(guesses(n, k)) == 1


def test_the_published_levels_and_guesses():
    assert [n_levels(10**6, f) for f in range(7)] == [6, 6, 5, 5, 4, 4, 3]
    assert len(guesses(10**6, 8)) == 7
    assert log2(ROOT) == pytest.approx(1.585, abs=1e-3)


def told(points):
    """Answers that are exact: everyone's cell is known."""
    return Exact(points, np.ones(len(points)))


def test_the_tree_finds_where_people_are_and_keeps_what_is_left_of_a_parent():
    """60 % of people at one place, the rest spread over a quarter: children that stand out, and a residual at their parent."""
    rng = np.random.default_rng(0)
    n = 40_000
    points = np.vstack([np.tile([0.3, 0.3], (6 * n // 10, 1)), rng.uniform(0.05, 0.68, (4 * n // 10, 2))])
    terms = Terms(n, 2, 2, Fraction(4))
    queries = [cell_query(i, PLAIN, depth, terms) for i, depth in enumerate((4, 8))]
    proxy = descend(told(points), queries, terms, z=30.0, cap=16)
    heaviest = int(proxy.weights.argmax())
    assert np.abs(proxy.points[heaviest] - 0.3).max() <= 3 / 16
    assert proxy.weights[heaviest] == pytest.approx(0.6 * n, rel=0.1)
    assert proxy.weights.sum() <= n * 1.0001


def test_children_never_outweigh_their_parent():
    points = np.tile([0.3, 0.3], (1000, 1))
    terms = Terms(500, 1, 2, Fraction(4))  # fewer people were announced than answered: estimates are scaled to those
    proxy = descend(told(points), [cell_query(0, PLAIN, 4, terms)], terms, z=2.5, cap=8)
    assert proxy.weights.sum() <= 500 * (1 + 1e-9)


def test_where_nothing_stands_out_the_middle_of_the_root_is_the_proxy():
    terms = Terms(100, 1, 2, Fraction(1, 100))
    empty = FromLaw({0: np.zeros((0, 2))}, terms.epsilon, np.random.default_rng(0))
    proxy = descend(empty, [cell_query(0, PLAIN, 8, terms)], terms, z=2.5, cap=8)
    assert proxy.points.tolist() == [[0.0, 0.0]]
    assert proxy.weights.tolist() == [100.0]


def test_cells_of_which_none_stands_out_alone_count_as_a_block():
    """Half of people at one place, half over some 14 cells, none of which reaches a cut of 5 %."""
    rng = np.random.default_rng(0)
    n, terms = 20_000, Terms(20_000, 2, 2, Fraction(4))
    points = np.vstack([np.tile([-0.5, -0.5], (n // 2, 1)), rng.uniform(0.01, 0.7, (n // 2, 2))])
    query = cell_query(0, PLAIN, 8, terms)
    cut = 0.05 * n / (threshold(1.0, 1.0, 256) * np.sqrt(n * oracles.variance(query.kind, query.M, terms.epsilon)))
    alone = descend(told(points), [query], terms, z=cut, cap=400)
    assert alone.weights == pytest.approx([n / 2])
    both = descend(told(points), [query], terms, z=cut, cap=400, is_gathered=True)
    assert both.weights.sum() == pytest.approx(n, rel=0.1)
    assert (both.shared[0], both.shared[1:].min() > 1) == (1.0, True)
    spread_out = both.points[1:].T @ both.weights[1:] / both.weights[1:].sum()
    assert spread_out == pytest.approx([0.355, 0.355], abs=3 / 32)
    assert (both.shrunk < both.weights).all()
    assert both.shrunk[1:].sum() > 0.6 * n / 2, "a block is lowered by its own deviation, not by that of every cell"


def test_the_cut_grows_with_the_number_of_candidates():
    assert threshold(2.5, 2.0, 50) == 5.0
    assert threshold(2.5, 2.0, 10**4) == pytest.approx(5.0 * np.sqrt(2))


def test_bitstogram_puts_the_keys_together_that_the_tree_finds():
    """Two places hold 55 and 25 % of 60 000 people at epsilon 4, which stands out by more than twenty deviations a bit."""
    n, epsilon, rng = 60_000, Fraction(4), np.random.default_rng(1)
    points = np.vstack(
        [np.tile([0.31, 0.3], (55 * n // 100, 1)), np.tile([-0.4, 0.1], (25 * n // 100, 1)), rng.uniform(-0.7, 0.7, (n // 5, 2))]
    )
    points = rng.permutation(points)
    terms = Terms(n, 2, 2, epsilon)
    base = Query(id=0, kind="olh", M=2, kappa=1, key_rule="cell", maps=(PLAIN,), depth=14)
    queries = bitstogram.folded(base, n, terms, seed=9)
    assert len(queries) == 15
    weights = np.array([query.weight for query in queries])
    assert weights[-1] / weights.sum() == pytest.approx(1 / 3)
    shares = np.split(points, (np.cumsum(weights)[:-1] * n) // weights.sum())
    drawn = {}
    for query, some in zip(queries, shares, strict=True):
        seeds = rng.integers(0, 2**64, len(some), dtype=np.uint64)
        drawn[query.id] = (seeds, reports(query, some, seeds, epsilon)[0])
    found, people, sd = bitstogram.heavy_keys(Drawn(drawn, 2), queries, terms, z=5.0)
    expected = np.sort(PLAIN.cells(np.array([[0.31, 0.3], [-0.4, 0.1]]), 14))
    assert found.tolist() == expected.tolist()
    assert sorted(people) == pytest.approx([0.25 * n, 0.55 * n], abs=6 * sd + 0.02 * n)
