"""Constants of the k-variates++ paper: worked by hand, and against their definitions, word by word."""

from itertools import combinations, product
from math import inf, sqrt

import numpy as np
import pytest

from kveil.errors import InvalidValue
from kveil.research import delta_s, delta_w, eta, online_share, theorem_10_delta, theorem_10_g
from kveil.research.partitions import best_labels, least_cost, partitions
from kveil.research.ratios import least_ratio, potential
from kveil.research.spreads import _packed_sets, balls_meet

pytestmark = pytest.mark.research


def column(*numbers):
    return np.array(numbers, dtype=float)[:, None]


def made(seed, m, d):
    return np.random.default_rng(seed).integers(-9, 10, (m, d)).astype(float)


class TestSpread:
    def test_by_hand(self):
        assert delta_w(column(0, 1, 3), 2) == 9.0
        assert delta_w(column(0, 1, 3), 2, diameter=6.0) == 36.0
        assert delta_w(column(0, 2, 5, 9), 3) == 81 / 4  # from 0 and 5 the others are 4 and 16 away, and the 16 is left out
        assert delta_w(column(0, 0, 0, 1), 2) == inf  # from 0 without the one at 1

    @pytest.mark.parametrize("k", [2, 3, 4])
    @pytest.mark.parametrize("seed", range(3))
    def test_it_is_the_definition(self, seed, k):
        """For any N of k - 1 points and any B of all points but one; and nothing smaller serves."""
        rows = made(seed, 7, 2)
        sums = [
            sum(min(((rows[a] - rows[n]) ** 2).sum() for n in N) for a in B)
            for N in combinations(range(7), k - 1) for B in combinations(range(7), 6)
        ]  # fmt: skip
        wide = max(((a - b) ** 2).sum() for a in rows for b in rows)
        assert delta_w(rows, k) == pytest.approx(wide / min(sums))

    def test_it_shrinks_like_one_over_the_rows_on_even_data(self):
        """Definition 7 of 50 and of 200 even points: about four times less."""
        rng = np.random.default_rng(0)
        few, many = (np.mean([delta_w(rng.uniform(-1, 1, (m, 1)), 2) for _ in range(10)]) for m in (50, 200))
        assert 3 < few / many < 5


class TestMonotonic:
    def test_by_hand(self):
        """From 0: 16 + 36 against 1 + 1 about the middle 5. From 4: 20 against 9 + 4. From 6: 40 against 4 + 4."""
        assert delta_s(column(0, 4, 6), 2, least=2) == 26 - 1

    def test_as_printed_it_is_infinite_unless_all_points_are_one(self):
        """A single point away from N is packed, and its own mean costs nothing."""
        assert delta_s(column(0, 4, 6), 2) == inf
        assert delta_s(made(0, 6, 2), 3) == inf
        assert delta_s(column(5, 5, 5), 2) == 0.0
        assert delta_s(column(0, 4, 6), 2, is_over_all=True) < inf

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize(("least", "is_over_all"), [(2, False), (1, True)])
    def test_it_is_the_definition(self, k, least, is_over_all):
        """In one column a set is packed if some place of a fine grid is as near to all of it as N is. Whole numbers, so that
        intervals meet in points of the grid."""
        rows, worst = made(3, 6, 1), 1.0
        grid = np.arange(-60, 60.5, 0.5)
        for N in (N for size in range(1, k) for N in combinations(range(6), size)):
            near = np.array([min((rows[a, 0] - rows[n, 0]) ** 2 for n in N) for a in range(6)])
            free = [a for a in range(6) if a not in N]
            for A in (A for size in range(least, len(free) + 1) for A in combinations(free, size)):
                if not any(all((rows[a, 0] - x) ** 2 <= near[a] for a in A) for x in grid):
                    continue
                closer = np.minimum(near, (rows[:, 0] - rows[list(A), 0].mean()) ** 2)
                counted = list(range(6) if is_over_all else A)
                if near[counted].sum() > 0:
                    worst = max(worst, near[counted].sum() / closer[counted].sum() if closer[counted].sum() else inf)
        assert delta_s(rows, k, least=least, is_over_all=is_over_all) == pytest.approx(worst - 1)

    def test_only_what_some_place_is_as_near_to_as_all_of_n_is_packed(self):
        """N = {0, 10}: the place must lie in [0, 2] for 1, in [8, 10] for 9, in [0, 6] for 3, and in [2, 10] for 6."""
        rows = column(0, 10, 1, 9, 3, 6)
        near = np.array([min(x**2, (x - 10) ** 2) for x in rows.ravel()])
        found = [[int(rows[i, 0]) for i in some] for some in _packed_sets(rows, near, [2, 3, 4, 5], 2)]
        assert found == [[1, 3], [1, 6], [9, 6], [3, 6], [1, 3, 6]]

    def test_balls_meet_as_a_grid_says(self):
        """Discs in the plane: a grid point in all of them proves that they meet; where they do not, none is."""
        xs = np.array(list(product(np.linspace(-3, 3, 121), repeat=2)))
        rng, met = np.random.default_rng(5), []
        for _ in range(150):
            centers, squared = rng.uniform(-1, 1, (4, 2)), rng.uniform(0.3, 1.6, 4)
            seen = (((xs[:, None] - centers) ** 2).sum(axis=2) <= squared).all(axis=1).any()
            met.append(balls_meet(centers, squared))
            assert met[-1] >= seen
            shrunk = ((xs[:, None] - centers) ** 2).sum(axis=2) <= (np.sqrt(squared) + 0.04)[None] ** 2
            assert shrunk.all(axis=1).any() >= met[-1]  # within half a step of the grid
        assert 20 < sum(met) < 130
        assert balls_meet(column(-1, 1), np.array([1.0, 1.0]))  # touching
        assert not balls_meet(column(-1, 1), np.array([1.0, 0.99]))


class TestStretching:
    def test_by_hand(self):
        rows = column(0, 2)
        assert eta(rows, rows, 1) == (0.0, 0.0)
        assert eta(rows, rows + 1, 1).low == pytest.approx((1 + sqrt(5)) / 2)
        assert eta(rows, column(0.5, 1.5), 1) == pytest.approx((0.0, 0.0))  # shrunk about its mean: nothing is lost
        # Blown up: 16 seen for 4 from each point, and far away both cost the same.
        found = eta(rows, column(-1, 3), 1)
        assert found.low == pytest.approx(3.0)
        assert found.low <= found.high

    def test_a_cluster_that_is_seen_at_k_places_has_no_eta(self):
        """Centres on the two places cost nothing as seen, and 4 in truth."""
        rows, seen = column(-1, 1, 9, 11), column(0, 0, 10, 10)
        labels = [0, 0, 0, 0]
        assert eta(rows, seen, 2, labels=labels) == (inf, inf)
        assert eta(rows, seen, 2) == (0.0, 0.0)  # each of the two clusters is seen at one place: the definition leaves them out

    @pytest.mark.parametrize("seed", range(2))
    def test_a_grid_of_centres_finds_nothing_worse(self, seed):
        """Two clusters of four, two centres on a fine grid: the worst ratio of the definition is in the range."""
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.uniform(-1, 1, (4, 1)), 8 + rng.uniform(-1, 1, (4, 1))])
        seen, worst = rows + rng.uniform(-0.3, 0.3, rows.shape), 1.0
        labels = best_labels(rows, 2)
        assert sorted(np.bincount(labels)) == [4, 4]
        for label in (0, 1):
            own, shown = rows[labels == label], seen[labels == label]
            grid = np.linspace(own.min() - 4, own.max() + 4, 70)
            for C in combinations(grid, 2):
                centers = np.array(C)[:, None]
                for a in range(4):
                    left = potential(own, centers) / potential(own, own[a : a + 1])
                    right = potential(shown, centers) / potential(shown, shown[a : a + 1])
                    worst = max(worst, left / right)
        found = eta(rows, seen, 2)
        assert found.low + 1 >= worst * (1 - 1e-9)  # the search is at least as good as the grid
        assert found.high >= found.low

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(InvalidValue, match="seen"):
            eta(column(0, 1, 2), column(0, 1), 1)
        with pytest.raises(InvalidValue, match="labels"):
            eta(column(0, 1, 2), column(0, 1, 2), 1, labels=[0])
        with pytest.raises(InvalidValue, match="partitions"):
            eta(np.zeros((40, 1)), np.zeros((40, 1)), 3)
        with pytest.raises(InvalidValue, match="n_clusters"):
            delta_w(column(0, 1, 2), 1)
        with pytest.raises(InvalidValue, match="fewer points"):
            delta_s(np.zeros((30, 1)), 3)
        with pytest.raises(InvalidValue, match="fewer points"):
            delta_w(np.zeros((300, 1)), 5)


class TestOnline:
    def test_by_hand(self):
        """One cluster 0, 4, 1, 3: pairs add up to 40 of 6 x 16; about its mean the second batch costs 2 of 10."""
        found = online_share([column(0, 4), column(1, 3)], 1)
        assert found.width == pytest.approx(40 / 96)
        assert found.share.high == pytest.approx(0.2)
        assert 0 < found.share.low <= 0.2
        assert found.share_of_theorem == found.share

    def test_a_batch_with_k_places_of_a_cluster_or_without_it_carries_nothing(self):
        assert online_share([column(0, 1), column(8, 9)], 2).share_of_theorem == (0.0, 0.0)
        assert online_share([column(0, 1, 2, 8, 9, 10), column(0.5, 1.5, 8, 9, 10)], 2).share_of_theorem.high == 0.0

    def test_a_grid_of_centres_finds_nothing_worse(self):
        rng = np.random.default_rng(1)
        batches = [np.concatenate([rng.uniform(-1, 1, (3, 1)), rng.uniform(5, 7, (3, 1))]) for _ in range(2)]
        found, least = online_share(batches, 2), 1.0
        rows, home = np.concatenate(batches), np.repeat([0, 1], 6)
        for own in (rows[:, 0] < 3, rows[:, 0] > 3):
            grid = np.linspace(rows[own].min() - 3, rows[own].max() + 3, 80)
            for C in combinations(grid, 2):
                centers = np.array(C)[:, None]
                for part in (0, 1):
                    least = min(least, potential(rows[own & (home == part)], centers) / potential(rows[own], centers))
        assert found.share.low <= found.share.high <= least * (1 + 1e-9)


def test_partitions_are_all_there_and_the_best_is_the_best():
    for n, k, count in ((4, 2, 8), (5, 3, 41), (5, 5, 52), (3, 1, 1)):
        found = partitions(n, k)
        assert len(found) == count == len({tuple(row) for row in found.tolist()})
    rows = column(0, 1, 8, 9, 20)
    assert best_labels(rows, 3).tolist() == [0, 0, 1, 1, 2]
    assert least_cost(rows, 3) == pytest.approx(1.0)
    assert least_cost(column(1, 1, 2), 2) == 0.0


def test_the_proved_end_of_a_ratio_is_never_passed():
    """Random centres, in two columns: no ratio is below it."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        some, others = rng.standard_normal((5, 2)), rng.standard_normal((7, 2))
        owner = ((others[:, None] - some) ** 2).sum(axis=2).argmin(axis=1)
        found = least_ratio(some, others, owner, 2)
        centers = rng.standard_normal((200, 2, 2)) * rng.choice([0.5, 1.0, 3.0], (200, 1, 1))
        assert found.low <= found.high <= min(potential(some, C) / potential(others, C) for C in centers)


def test_the_numbers_of_theorem_10():
    assert theorem_10_g(10_000, 1, 1, 1.0) == pytest.approx(4 / 1000 + 64 / 10_000)
    assert theorem_10_g(16, 2, 2, 3.0) == pytest.approx(4 / 16 ** (1 / 4 + 1 / 3) + 32**2 * 3 / 16)
    assert theorem_10_delta(10_000, 4) == pytest.approx(0.4)
    k, delta, m, r = 3, theorem_10_delta(5000, 3, 1.5), 5000, 1.5
    assert k == pytest.approx(delta**2 / (4 * r) * sqrt(m))  # condition (15), met with equality
