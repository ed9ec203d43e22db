"""The measured theorems: expectations worked by hand, and bounds that hold, or would be seen to fail."""

import numpy as np
import pytest

from kveil import seeding
from kveil.research.expectations import Small, by_batches, by_distance, by_nodes, expected_cost, settled, small_sets, streams
from kveil.research.theorems import CLAIMS, NoisyNodes, measured, two_centres

pytestmark = pytest.mark.research


def column(*numbers):
    return np.array(numbers, dtype=float)[:, None]


class TestExpectations:
    def test_kmeans_plusplus_by_hand(self):
        """Rows 0, 1, 3. From 0 the next is 1 with 1/10 or 3 with 9/10: 4 or 1 is left. From 1: 0 or 3 with 1/5 and 4/5: 4 or 1.
        From 3: 0 or 1 with 9/13 and 4/13: 1 or 1."""
        expected = (0.1 * 4 + 0.9 * 1 + 0.2 * 4 + 0.8 * 1 + 1) / 3
        assert expected_cost(column(0, 1, 3), 2, by_distance(column(0, 1, 3))) == pytest.approx(expected)

    def test_nodes_by_hand(self):
        """Nodes {0, 1} and {3}, one centre: by size, so any row alike. Two: from 3 the first node has everything."""
        parts = [column(0, 1), column(3)]
        assert expected_cost(column(0, 1, 3), 1, by_nodes(parts)) == pytest.approx((10 + 5 + 13) / 3)
        after_zero, after_one, after_three = (1 * (10 + 4) / 2 + 9 * 1) / 10, (1 * (4 + 5) / 2 + 4 * 1) / 5, 1.0
        found = expected_cost(column(0, 1, 3), 2, by_nodes(parts))
        assert found == pytest.approx((after_zero + after_one + after_three) / 3)

    def test_batches_and_synopses_by_hand(self):
        assert expected_cost(column(0, 2, 9), 2, by_batches([column(0, 2), column(9)])) == pytest.approx(4.0)
        weighted = by_distance(column(1, 9), np.array([2.0, 1.0]))
        assert expected_cost(column(0, 2, 9), 1, weighted) == pytest.approx((2 * (1 + 1 + 64) + (81 + 49)) / 3)
        seen = by_distance(column(0, 9), seen=column(9, 9))
        assert expected_cost(column(0, 9), 2, seen) == pytest.approx((0.5 * 81 + 0) / 2 + (0.5 * 81) / 2)

    @pytest.mark.statistical
    def test_the_functions_of_the_library_cost_as_much(self):
        """Means of 2000 runs with public seeds, within five standard errors."""
        some = next(small_sets(1, np.random.default_rng(1)))
        groups = np.array([0, 0, 0, 1, 1, 2, 2])
        parts, points, weights = [some.rows[groups == g] for g in range(3)], some.rows[:4] + 0.5, np.array([3.0, 1.0, 1.0, 2.0])
        ways = [
            (by_distance(some.rows), lambda rng: seeding.kvariates(some.rows, some.k, random_state=rng).centers),
            (by_nodes(parts), lambda rng: seeding.dkmeans_plusplus(parts, some.k, local_pick="uniform", random_state=rng)),
            (by_distance(points, weights), lambda rng: seeding.skmeans_plusplus(points, weights, some.k, random_state=rng)),
            (by_batches(parts[: some.k]), lambda rng: online(parts[: some.k], rng)),
        ]
        for step, run in ways:
            rng = np.random.default_rng(2)
            costs = [((some.rows[:, None] - run(rng)) ** 2).sum(axis=2).min(axis=1).sum() for _ in range(2000)]
            error = 5 * np.std(costs) / np.sqrt(2000)
            assert abs(np.mean(costs) - expected_cost(some.rows, some.k, step)) <= error + 1e-9

    def test_sets_are_what_they_say(self):
        for some in small_sets(20, np.random.default_rng(0)):
            centers = np.array([some.rows[some.labels == label].mean(axis=0) for label in some.labels])
            assert some.least == pytest.approx(((some.rows - centers) ** 2).sum())
            assert np.array_equal(settled(some.rows, some.labels), some.labels)
        for some, batches in streams(10, np.random.default_rng(0)):
            assert len(batches) == some.k
            assert np.array_equal(np.concatenate(batches), some.rows)


def online(batches, rng):
    seeder = seeding.OnlineSeeder(len(batches), random_state=rng)
    for batch in batches:
        seeder.update(batch)
    return seeder.centers


def test_no_bound_is_passed_and_a_seeding_that_is_not_covered_passes_it():
    """The twin draws the same row every time, far from the others."""
    found = {some.claim: some for some in measured(10, 40, lambda *step: None)}
    assert list(found) == list(CLAIMS)
    bounds = [name for name in CLAIMS if not name.startswith("Lemma")]
    assert all(0 < found[name].largest < 1 for name in bounds)
    noisy, true = ([found[f"Lemma 3, cost of the {rows} rows, m = {m}"].mean for m in (10, 1000)] for rows in ("noisy", "true"))
    assert noisy == pytest.approx([0.9, 1.0], abs=0.35)
    assert true[1] < 0.02 < 0.04 < true[0]
    some = Small.of(column(0, 1, 2, 40, 41, 42, 1000), 2)
    twin = expected_cost(some.rows, 2, lambda centers: [(1.0, some.rows[6])])
    assert twin > some.factor * 8 * some.least
    assert twin > some.factor * 36 * some.least


def test_noisy_nodes_draw_rows_of_the_node_with_noise_around_them():
    rows, groups, rng = column(0, 10, 100), np.array([0, 0, 1]), np.random.default_rng(0)
    drawn = np.array([NoisyNodes(groups, 0.1).draw(rows, 0, rng)[0] for _ in range(200)])
    assert set(np.rint(drawn / 10)) == {0.0, 1.0}
    assert 0.05 < np.std(drawn[drawn < 5]) < 0.2


def test_two_centres_have_the_density_of_the_loop():
    """Rows 0 and 2: the first centre is around either, the second by squared distance to the first."""
    rows, places = np.array([0.0, 2.0]), np.array([0.5, 1.5])
    found = two_centres(rows, places)
    first = (np.exp(-0.5) + np.exp(-1.5)) / 2
    second = (0.25 * np.exp(-1.5) + 2.25 * np.exp(-0.5)) / 2.5
    assert found[0, 1] == pytest.approx(first * second)
