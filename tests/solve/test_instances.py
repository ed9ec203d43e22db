"""k-means‖, Forgy and seeds of a stream: what they draw, and what they refuse."""

import warnings
from collections import Counter

import numpy as np
import pytest

from kveil import seeding
from kveil.errors import FewerDistinctPoints, InvalidValue
from kveil.solve.seeding import Nearest, seed


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(3)
    places = 10.0 * rng.standard_normal((8, 3))
    return np.repeat(places, 100, axis=0) + 0.1 * rng.standard_normal((800, 3))


def spread(rows, centers):
    return ((rows[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum()


class TestParallel:
    def test_eight_blobs_are_found_as_by_kmeans_plusplus(self, blobs):
        """Forgy misses some; over public seeds its cost is a hundred times theirs."""
        costs = {
            name: np.mean([spread(blobs, getattr(seeding, name)(blobs, 8, random_state=s)) for s in range(5)])
            for name in ("kmeans_parallel", "kmeans_plusplus", "forgy")
        }
        assert costs["kmeans_parallel"] < 2 * costs["kmeans_plusplus"]
        assert costs["forgy"] > 10 * costs["kmeans_parallel"]

    def test_a_drawn_row_weighs_as_much_as_the_rows_it_is_nearest_to(self, monkeypatch):
        """One round that draws every row that is apart: three candidates with the weights of their places."""
        seen = {}

        def kept(points, n_clusters, *, weights, random_state):
            seen["points"], seen["weights"] = points.ravel().tolist(), weights.tolist()
            return seed(points, n_clusters, weights=weights, random_state=0)

        monkeypatch.setattr("kveil.solve.instances.seed", kept)
        rows, weights = np.array([[0.0], [0.0], [100.0], [101.0]]), [1.0, 2.0, 0.5, 4.0]
        seeding.kmeans_parallel(rows, 2, weights=weights, oversampling=1e9, n_rounds=1, random_state=0)
        held = Counter()
        for place, weight in zip(seen["points"], seen["weights"], strict=True):
            held[place] += weight
        assert held == {0.0: 3.0, 100.0: 0.5, 101.0: 4.0}

    def test_rows_of_weight_zero_are_never_drawn(self):
        for s in range(50):
            found = seeding.kmeans_parallel([[0.0], [5.0], [9.0]], 2, weights=[1, 0, 1], random_state=s)
            assert set(found.ravel().tolist()) == {0.0, 9.0}

    def test_equal_points_give_k_copies(self):
        assert seeding.kmeans_parallel(np.ones((4, 2)), 3, random_state=0).tolist() == [[1.0, 1.0]] * 3
        assert seeding.dkmeans_plusplus([np.ones((4, 2))], 3, random_state=0).tolist() == [[1.0, 1.0]] * 3
        assert seeding.forgy(np.ones((1, 2)), 3, random_state=0).tolist() == [[1.0, 1.0]] * 3

    @pytest.mark.parametrize("bad", [{"oversampling": 0.0}, {"oversampling": np.nan}, {"n_rounds": 0}, {"n_rounds": 1.5}])
    def test_options_that_make_no_sense_are_refused(self, bad):
        with pytest.raises(InvalidValue, match="oversampling"):
            seeding.kmeans_parallel([[0.0]], 1, **bad)


class TestLoop:
    def test_owners_and_costs_are_those_of_the_centres(self, blobs):
        found = seeding.kvariates(blobs, 5, random_state=0)
        squares = ((blobs[:, None] - found.centers[None]) ** 2).sum(axis=2)
        assert np.array_equal(found.owners, squares.argmin(axis=1))
        assert found.costs[-1] == pytest.approx(squares.min(axis=1).sum())
        assert (np.diff(found.costs) <= 0).all()
        assert np.array_equal(blobs[found.anchors], found.centers)

    def test_released_values_are_seeded_without_a_word(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert seed(np.zeros((2, 1)), 4, random_state=0).centers.tolist() == [[0.0]] * 4
            seeding.kvariates([[0.0], [1.0]], 2, random_state=0)
        with pytest.warns(FewerDistinctPoints, match="2 distinct"):
            seeding.kvariates([[0.0], [1.0], [1.0]], 3, random_state=0)

    def test_any_layout_of_the_table_gives_the_same_seeds(self, blobs):
        frozen = blobs.copy()
        frozen.setflags(write=False)
        results = [seeding.kvariates(table, 4, random_state=1).centers for table in (blobs, np.asfortranarray(blobs), frozen)]
        assert all(np.array_equal(results[0], result) for result in results[1:])

    def test_the_compiled_distance_is_the_plain_one(self, blobs):
        class Plain(seeding.SquaredEuclidean):
            """Another class, so that the loop takes the general way, in blocks."""

        fast, plain = Nearest(len(blobs)), Nearest(len(blobs), Plain())
        for index in (3, 500, 799):
            fast.add(blobs, blobs[index], index)
            plain.add(blobs, blobs[index], index)
        assert np.allclose(fast.best, plain.best, rtol=1e-12, atol=1e-12)
        assert np.array_equal(fast.owner, plain.owner)


class TestOnline:
    def test_one_centre_a_batch_until_there_are_k(self):
        seeder = seeding.OnlineSeeder(3, random_state=0)
        batches = [[[0.0]], np.empty((0, 1)), [[0.0], [0.0], [5.0]], [[5.0], [0.0], [9.0]], [[70.0]]]
        assert [seeder.update(batch) for batch in batches] == [True, False, True, True, False]
        assert seeder.centers.ravel().tolist() == [0.0, 5.0, 9.0]
        assert seeder.is_full
        assert seeder.weights.tolist() == [4.0, 2.0, 2.0]

    def test_a_full_seeder_may_pool_the_closest_pair(self):
        seeder = seeding.OnlineSeeder(2, on_full="merge", random_state=0)
        for batch in ([[0.0]] * 3, [[10.0]], [[0.0], [11.0]]):
            assert seeder.update(batch)
        assert len(seeder.centers) == 2
        assert sorted(seeder.centers.ravel().tolist()) in ([0.0, 10.5], [0.0, 11.0])  # by which row of the last batch was drawn
        assert seeder.weights.sum() == 6.0

    def test_pooling_is_by_weight(self):
        seeder = seeding.OnlineSeeder(2, on_full="merge")
        seeder.centers, seeder.weights = np.array([[0.0], [50.0], [4.0]]), np.array([3.0, 1.0, 1.0])
        seeder._pool()
        assert seeder.centers.tolist() == [[1.0], [50.0]]
        assert seeder.weights.tolist() == [4.0, 1.0]

    def test_what_is_closest_is_for_the_divergence_to_say(self):
        """2 and 3 are nearer to each other than 40 and 50, but their ratio is larger."""
        for divergence, pooled in (
            (seeding.SquaredEuclidean(), [2.5, 40.0, 50.0]),
            (seeding.ItakuraSaito(0.1), [2.0, 3.0, 45.0]),
        ):
            seeder = seeding.OnlineSeeder(3, on_full="merge", divergence=divergence)
            seeder.centers, seeder.weights = np.array([[2.0], [3.0], [40.0], [50.0]]), np.ones(4)
            seeder._pool()
            assert seeder.centers.ravel().tolist() == pooled

    def test_a_batch_on_the_centres_draws_a_copy_by_weight(self):
        seeder = seeding.OnlineSeeder(2, random_state=0)
        assert [seeder.update([[1.0, 2.0]]) for _ in range(2)] == [True, True]
        assert seeder.centers.tolist() == [[1.0, 2.0]] * 2

    def test_weights_of_rows_count(self):
        seeder = seeding.OnlineSeeder(1, random_state=0)
        assert not seeder.update([[3.0]], weights=[0.0])
        assert seeder.update([[3.0], [4.0]], weights=[0.0, 2.0])
        assert (seeder.centers.tolist(), seeder.weights.tolist()) == ([[4.0]], [2.0])

    def test_bad_input_is_refused_in_words(self):
        with pytest.raises(InvalidValue, match="on_full"):
            seeding.OnlineSeeder(2, on_full="grow")
        with pytest.raises(InvalidValue, match="n_clusters"):
            seeding.OnlineSeeder(True)
        seeder = seeding.OnlineSeeder(2)
        seeder.update([[0.0]])
        with pytest.raises(InvalidValue, match="column"):
            seeder.update([[0.0, 1.0]])
        with pytest.raises(InvalidValue, match="finite"):
            seeder.update([[np.nan]])
