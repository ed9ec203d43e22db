"""Every instance of k-variates++ against the law it must have, by enumeration in exact rationals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats
from seeding_laws import best_partition, cost, defined_law, realised_law

from kveil import seeding
from kveil.errors import InvalidValue
from kveil.solve.nodes import Node

SETS = [
    [[0.0], [1.0], [2.0], [4.0], [8.0]],
    [[-3.0], [-3.0], [0.5], [0.5], [7.0]],
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0]],
    [[0.25, -1.0], [0.25, -1.0], [0.25, -1.0], [2.0, 2.0], [-4.0, 0.5]],
]
WSEVENS = [[1.0] * 5, [3.0, 1.0, 2.0, 0.0, 1.0], [0.5, 0.25, 4.0, 1.0, 1.0]]


@pytest.mark.filterwarnings("ignore::kveil.errors.FewerDistinctPoints")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("points", SETS)
def test_with_the_anchor_as_centre_it_is_kmeans_plusplus(points, k, monkeypatch):
    for weights in WSEVENS:
        law = realised_law(lambda rng, w=weights: seeding.kvariates(points, k, weights=w, random_state=rng).centers, monkeypatch)
        assert law == defined_law(points, weights, k)


def test_whole_weights_are_repeated_points_and_their_scale_is_nothing(monkeypatch):
    points, weights = [[0.0], [1.0], [5.0]], [2, 1, 3]
    repeated = [point for point, times in zip(points, weights, strict=True) for _ in range(times)]

    def law(table, mass):
        return realised_law(lambda rng: seeding.kvariates(table, 2, weights=mass, random_state=rng).centers, monkeypatch)

    assert law(points, weights) == law(repeated, None) == law(points, [7 * w for w in weights])


SIX = [[0.0], [1.0], [2.5], [6.0], [7.0], [12.0]]


def splits():
    """Every way to put six points on two of three nodes."""
    for places in product(range(3), repeat=6):
        if len(set(places)) == 2:
            yield [np.array([SIX[i] for i in range(6) if places[i] == node]).reshape(-1, 1) for node in range(3)]


def test_nodes_that_draw_by_distance_are_kmeans_plusplus_of_all_rows(monkeypatch):
    expected, n_splits = defined_law(SIX, [1] * 6, 2), 0
    for parts in splits():
        law = realised_law(lambda rng, parts=parts: seeding.dkmeans_plusplus(parts, 2, random_state=rng), monkeypatch)
        assert law == expected
        n_splits += 1
    assert n_splits == 3 * (2**6 - 2)


def test_three_centres_over_nodes_one_of_them_empty(monkeypatch):
    parts = [SIX[:2], np.empty((0, 1)), SIX[2:]]
    law = realised_law(lambda rng: seeding.dkmeans_plusplus(parts, 3, random_state=rng), monkeypatch)
    assert law == defined_law(SIX, [1] * 6, 3)


def test_forgy_nodes_are_the_density_that_is_uniform_over_the_node(monkeypatch):
    parts, groups = [SIX[:1], SIX[1:3], SIX[3:]], [0, 1, 1, 2, 2, 2]
    by_nodes = realised_law(lambda rng: seeding.dkmeans_plusplus(parts, 2, local_pick="uniform", random_state=rng), monkeypatch)
    density = seeding.UniformOver(groups)
    by_loop = realised_law(lambda rng: seeding.kvariates(SIX, 2, density=density, random_state=rng).centers, monkeypatch)
    assert by_nodes == by_loop != defined_law(SIX, [1] * 6, 2)


def test_the_printed_first_draw_is_uniform_over_nodes_and_over_synopses(monkeypatch):
    parts = [SIX[:1], np.empty((0, 1)), SIX[1:]]
    law = realised_law(lambda rng: seeding.dkmeans_plusplus(parts, 1, first="paper", random_state=rng), monkeypatch)
    assert [float(law[((x,),)]) for x in (0.0, 1.0, 12.0)] == [0.5, 0.1, 0.1]
    weighted = {first: realised_law(
        lambda rng, first=first: seeding.skmeans_plusplus([[0.0], [1.0]], [1, 3], 1, first=first, random_state=rng), monkeypatch
    ) for first in ("weighted", "paper")}  # fmt: skip
    assert [float(weighted[first][((1.0,),)]) for first in ("weighted", "paper")] == [0.75, 0.5]


def test_a_synopsis_that_holds_every_row_is_kmeans_plusplus(monkeypatch):
    expected = defined_law(SIX, [1] * 6, 2)
    law = realised_law(lambda rng: seeding.skmeans_plusplus(SIX, [1] * 6, 2, random_state=rng), monkeypatch)
    assert law == expected
    probe = seeding.NearestOf(SIX)
    law = realised_law(lambda rng: seeding.kvariates(SIX, 2, probe=probe, random_state=rng).centers, monkeypatch)
    assert law == expected


def test_rows_seen_as_their_synopsis_are_the_weighted_synopsis(monkeypatch):
    """Up to which row stands for a point: both laws are held together by the nearest point of their centres."""
    synopsis, weights = np.array([[1.0], [7.0]]), [3, 3]
    by_rows = realised_law(
        lambda rng: synopsis[np.abs(seeding.kvariates(SIX, 2, probe=seeding.NearestOf(synopsis), random_state=rng).centers
                                    - synopsis.T).argmin(axis=1)], monkeypatch)  # fmt: skip
    first = {centers[0]: sum(p for c, p in by_rows.items() if c[0] == centers[0]) for centers in by_rows}
    by_points = realised_law(lambda rng: seeding.skmeans_plusplus(synopsis, weights, 2, random_state=rng), monkeypatch)
    assert first == {centers[0]: p for centers, p in by_points.items()}


def test_forgy_draws_every_set_of_rows_alike(monkeypatch):
    law = realised_law(lambda rng: seeding.forgy(SIX, 2, random_state=rng), monkeypatch)
    assert len(law) == 30
    assert set(law.values()) == {Fraction(1, 30)}


@pytest.mark.statistical
def test_runs_over_nodes_follow_the_enumerated_law():
    """Public seeds, so this passes for good once it has; a chi-square at 1e-7, and drawing uniformly is caught."""
    rng = np.random.default_rng(5)
    law = defined_law(SIX, [1] * 6, 2)
    parts = [SIX[:1], SIX[1:4], SIX[4:]]

    def distance(local_pick, runs):
        seen = [tuple(map(tuple, seeding.dkmeans_plusplus(parts, 2, local_pick=local_pick, random_state=rng).tolist()))
                for _ in range(runs)]  # fmt: skip
        return sum((seen.count(c) - runs * float(p)) ** 2 / (runs * float(p)) for c, p in law.items())

    limit = stats.chi2.isf(1e-7, len(law) - 1)
    assert distance("d2", 20_000) < limit < distance("uniform", 4000)


SEVEN = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.3], [2.0, 2.0], [2.2, 2.1], [4.0, -1.0], [4.1, -1.0]])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weights", [[1.0] * 7, [1.0, 5.0, 0.5, 2.0, 2.0, 1.0, 3.0]])
def test_noisy_seeds_stay_below_the_bound_of_theorem_2(k, weights):
    """Means of 1000 runs plus five standard errors; public seeds."""
    least, place = best_partition(SEVEN, weights, k)
    mass, factor = np.array(weights), 2 + np.log(k)
    for number, scale in enumerate((0.05, 0.3, 1.0)):
        density, rng = seeding.ProductLaplace(scale), np.random.default_rng(number)
        bias = (mass * ((density.mean(SEVEN) - place) ** 2).sum(axis=1)).sum()
        variance = (mass * density.variance(SEVEN)).sum()
        assert bias == pytest.approx(least)
        assert variance == pytest.approx(mass.sum() * 2 * 2 * scale**2)
        costs = [
            cost(SEVEN, mass, seeding.kvariates(SEVEN, k, weights=mass, density=density, random_state=rng).centers)
            for _ in range(1000)
        ]
        assert np.mean(costs) + 5 * np.std(costs) / np.sqrt(1000) < factor * (6 * least + 2 * bias + 2 * variance)


@pytest.mark.parametrize("k", [2, 3])
def test_exact_expectations_stay_below_the_bounds_of_theorems_2_4_and_5(k, monkeypatch):
    """Without noise the expected cost is a sum over all paths. Constants of the theorems as kveil re-derives them."""
    ones, factor = [1.0] * 7, 2 + np.log(k)
    least, _ = best_partition(SEVEN, ones, k)

    def expected(run):
        return sum(float(p) * cost(SEVEN, ones, centers) for centers, p in realised_law(run, monkeypatch).items())

    plain = expected(lambda rng: seeding.kvariates(SEVEN, k, random_state=rng).centers)
    assert least < plain < 8 * factor * least
    groups = np.array([0, 0, 1, 1, 2, 2, 2])
    scatter = seeding.UniformOver(groups).variance(SEVEN).sum()
    assert scatter == pytest.approx(sum(((SEVEN[groups == g] - SEVEN[groups == g].mean(axis=0)) ** 2).sum() for g in range(3)))
    parts = [SEVEN[groups == g] for g in range(3)]
    uniform = expected(lambda rng: seeding.dkmeans_plusplus(parts, k, local_pick="uniform", random_state=rng))
    assert plain < uniform < factor * (10 * least + 6 * scatter)
    synopsis, counts = np.array([[0.05, 0.1], [2.1, 2.0], [4.0, -1.0]]), [3, 2, 2]
    spread = ((SEVEN - np.repeat(synopsis, counts, axis=0)) ** 2).sum()
    streamed = expected(lambda rng: seeding.skmeans_plusplus(synopsis, counts, k, random_state=rng))
    assert streamed < factor * (10 * least + 4 * spread)


def test_a_node_tells_its_number_of_rows_then_its_distances():
    node = Node(np.array([[0.0], [3.0]]))
    assert node.total == 2.0
    assert node.update(np.array([1.0])) == 1.0 + 4.0
    assert node.update(np.array([3.0])) == 1.0
    assert Node(np.empty((0, 1))).update(np.array([1.0])) == 0.0


@pytest.mark.parametrize(
    "parts", [[], [np.empty((0, 2))], [[[0.0]], [[0.0, 1.0]]], [[0.0, 1.0]], [[[np.nan]]], [np.empty((3, 0))]]
)
def test_parts_that_make_no_table_are_refused(parts):
    with pytest.raises(InvalidValue, match="part"):
        seeding.dkmeans_plusplus(parts, 1)


def test_words_that_mean_nothing_are_refused():
    for bad in ({"local_pick": "best"}, {"first": "last"}):
        with pytest.raises(InvalidValue, match="must be"):
            seeding.dkmeans_plusplus([[[0.0]]], 1, **bad)
