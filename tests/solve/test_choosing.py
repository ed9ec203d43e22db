"""How many clusters released points show, on points made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kveil.errors import InvalidValue
from kveil.solve.choosing import check_range, choice, chosen, curve, most_clusters
from kveil.solve.cloud import Cloud, cloud
from kveil.solve.synopsis import Distances, Projected, Synopsis

SIX = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0], [4.5, 20.0], [20.0, 4.5]])
NEAR = np.array([[x, y] for x in (-1, 0, 1) for y in (-1, 0, 1)])


def clumps(n: int) -> Cloud:
    """Nine cells around each of n places, as heavy as rows are there."""
    points = np.concatenate([place + 0.5 * NEAR for place in SIX[:n]])
    weights = np.tile(100.0 / (1 + (NEAR**2).sum(axis=1)), n)
    return Cloud(points, weights, np.full(len(points), 0.25 / 6), 1.0, True)


def synopsis_of(shown: Cloud, **changes) -> Synopsis:
    m, d = shown.points.shape
    half = np.full((m, d), 0.25)
    return Synopsis("cells", shown.points, shown.weights, np.ones(m, dtype=bool), half, 1.0, 1e3, 1.0, **changes)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_clumps_are_counted_and_six_of_them_are_clear(n):
    found = chosen(synopsis_of(clumps(n)), 1.0, (2, 20))
    assert found.k == n
    assert found.is_clear == (n == 6)  # nine cells per clump: with fewer clumps there are too few to be sure
    assert f"{n} is " in found.why
    assert ("too few to be sure" in found.why) == (n != 6)


def test_a_curve_falls_and_says_how_many_centres_noise_tells_apart():
    shown = clumps(6)
    found = curve(shown, 10, np.random.default_rng(0))
    assert found.k.tolist() == list(range(1, 11))
    assert (np.diff(found.cost) < 0).all()
    middle = np.average(shown.points, axis=0, weights=shown.weights)
    away = ((shown.points - middle) ** 2).sum(axis=1) + shown.spreads
    assert found.cost[0] == pytest.approx(np.average(away, weights=shown.weights))
    assert found.silhouette[0] == 0
    assert np.argmax(found.silhouette) == 5
    assert found.told_apart.tolist()[:6] == [1, 2, 3, 4, 5, 6]
    loud = curve(shown._replace(deviation=1e3), 6, np.random.default_rng(0))
    assert loud.told_apart[5] == 0


def test_few_cells_and_none_give_the_least_number_as_a_guess():
    few = Cloud(SIX, np.ones(6), np.zeros(6), 1.0, True)
    for shown in (few, None):
        found = choice(curve(shown, most_clusters(shown, 20), np.random.default_rng(0)), shown, 5)
        assert (found.k, found.is_clear) == (5, False)
        assert "guess" in found.why
    assert chosen(synopsis_of(clumps(6)), 1.0, (7, 12)).k >= 7  # never outside its range


def test_a_projection_shows_no_more_clusters_than_the_budget_tells_apart():
    assert most_clusters(clumps(6), 20) == 18
    assert most_clusters(clumps(6), 10) == 10
    assert most_clusters(clumps(6)._replace(is_cells=False), 50) == 27  # leaves are means of more rows than cells
    assert most_clusters(clumps(6)._replace(most=12.0), 20) == 6


def test_spreads_of_leaves_fill_what_the_cost_of_one_mean_leaves():
    """Four leaves whose boxes are too wide: what is within them and between them adds up to the whole."""
    points, outer = np.vstack([np.eye(4), -np.eye(4)]), 8 * 2.0 ** (-np.arange(40) / 4)
    counts = np.zeros(40)
    counts[10] = 1000.0
    bins = Distances(counts, 1.0, outer, True)
    whole = bins.middles[10] ** 2
    leaves = Synopsis(
        "leaves",
        3 + points,
        np.full(8, 125.0),
        np.ones(8, dtype=bool),
        np.full((8, 4), 1.0),
        1.0,
        1e3,
        1.0,
        np.full(4, 3.0),
        bins,
    )
    assert cloud(leaves, 1.0).spreads == pytest.approx(np.full(8, whole - 1))
    assert cloud(leaves, 2.0).points == pytest.approx((3 + points) / 2)  # columns that are scaled
    shown = Projected(points[:, :2], np.full(8, 125.0), np.full((8, 2), 1.0), np.eye(4)[:, :2], 9.0, 0.5, 1.0)
    seen = cloud(Synopsis("centers", points[:0], [], [], points[:0], 0.0, 1e3, 1.0, np.zeros(4), bins, projected=shown), 1.0)
    assert seen.spreads == pytest.approx(np.full(8, whole / 2 - 0.5))
    assert (seen.most, seen.is_cells, seen.deviation) == (9.0, False, 1.0)
    tight = cloud(replace(leaves, points=3 + 100 * points), 1.0)  # between leaves there is more than the whole: noise
    assert tight.spreads == pytest.approx(np.full(8, 0.07 * 4 / 3))


@pytest.mark.parametrize("given", [(1, 5), (5, 5), (2, 101), (2,), "2,5", (2.0, 5), (True, 5), None, 7])
def test_what_is_no_range_is_refused(given):
    with pytest.raises(InvalidValue, match="k_range"):
        check_range(given)
    assert check_range([2, np.int64(100)]) == (2, 100)
