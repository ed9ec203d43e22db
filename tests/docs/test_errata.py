"""Every number in docs/errata.md, computed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from kveil import PrivateKMeans
from kveil.collect.hashing import signs
from kveil.collect.lae import collision_chance
from kveil.collect.marker import guesses
from kveil.collect.oracles import variance
from kveil.collect.plan import plan
from kveil.collect.vector import codebook, signed_sums
from kveil.kernel.grid import Ball
from kveil.kernel.loss import response_weights
from kveil.partition.cells import PublicMap, side
from kveil.partition.cubes import Cubes
from kveil.partition.lsh import Buckets, RotatedGrid
from kveil.partition.projection import random_axes
from kveil.summary.frame import Frame
from kveil.summary.swaps import Loss


def test_the_sum_moves_by_the_square_root_of_d_and_the_printed_budget_is_overspent():
    for d, spent in [(100, 1.125), (784, 1.875)]:
        record = np.full((1, d), 1 / math.sqrt(d))
        assert np.linalg.norm(record) == pytest.approx(1)
        assert np.abs(record).sum() == pytest.approx(math.sqrt(d))
        assert (17 + math.sqrt(d)) / 24 == pytest.approx(spent)
    grid = Ball(np.zeros(784), 1.0)
    codes = grid.encode(record).astype(np.int64)
    assert np.abs(codes).sum() > 27 * grid.l2_sensitivity  # Laplace noise would need 28 times the radius
    assert (codes**2).sum() <= grid.l2_sensitivity**2  # K-norm noise needs the radius


def coin(m: int, epsilon: float, cut: float) -> float:
    """P(m + Laplace(1/epsilon) > cut)."""
    gap = epsilon * (cut - m)
    return 0.5 * math.exp(-gap) if gap > 0 else 1 - 0.5 * math.exp(gap)


def test_skipping_empty_cells_has_an_infinite_ratio_and_counting_them_has_not():
    epsilon, cut = 0.5, 3.0
    with_record, without_if_counted, without_if_skipped = coin(1, epsilon, cut), coin(0, epsilon, cut), 0.0
    assert with_record > 0 == without_if_skipped
    assert math.log(with_record / without_if_counted) <= epsilon + 1e-12


def test_a_depth_of_log_n_differs_between_neighbours():
    assert math.floor(math.log(20)) != math.floor(math.log(21))


def kept_share(p, n=400_000):
    """How many points of the unit ball a cube [-1, 1]^p with a random shift of up to 1 holds: each axis with 1 - |x|/2."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n, p))
    points *= rng.random((n, 1)) ** (1 / p) / np.linalg.norm(points, axis=1, keepdims=True)
    return (1 - np.abs(points) / 2).prod(axis=1).mean()


def test_a_shifted_cube_of_the_size_of_the_ball_misses_points_and_one_twice_as_large_does_not():
    record, shift = np.array([-0.5, 0.0]), np.array([1.0, 1.0])
    assert np.abs(record - shift).max() > 1
    assert kept_share(2) == pytest.approx(0.61, abs=0.01)
    assert kept_share(5) == pytest.approx(0.42, abs=0.01)
    for v in (-7, 0, 7):
        cubes = Cubes(np.array([v - 14]), 29, 7, (), np.zeros((1, 1), dtype=np.int64))
        assert cubes.low[0] <= -7 < 7 < cubes.low[0] + cubes.side


def test_a_projection_shrinks_by_one_scale_and_leaves_the_ball_by_the_other():
    p, d = 5, 784
    assert math.sqrt(p / d) == pytest.approx(0.08, abs=5e-4)
    assert round(d / p) == 157
    assert stats.chi2.sf(p, p) == pytest.approx(0.42, abs=5e-3)
    rows = np.full((1, d), 1000)
    axes = random_axes(d, p, np.random.default_rng(1), stretch=math.sqrt(d / p))
    axes[:, 0] = 2**14  # a direction that the record lies in
    frame = Frame(None, np.zeros(d, dtype=np.int64), 28_000, axes, 28_000)
    centred = frame.centred(rows)
    assert np.linalg.norm(centred @ axes / 2**14) > 28_000
    assert np.linalg.norm(frame.projected(centred)) <= 28_000


def test_a_middle_outside_the_ball_moves_the_odds_by_more_than_the_exponent_says():
    p = 9
    record, inside, outside = np.full(p, -1 / 3), np.full(p, -1 / 3), np.full(p, 2.0)
    assert np.linalg.norm(record) == pytest.approx(1)
    assert np.linalg.norm(outside) == pytest.approx(2 * math.sqrt(p)) == pytest.approx(6)
    rises = [((record - place) ** 2).sum() for place in (inside, outside)]
    assert rises == pytest.approx([0, 49])
    assert (rises[1] - rises[0]) / 8 == pytest.approx(49 / 8)
    loss = Loss.within(1000, "k-means", 2**20)
    assert loss.highest == 4 * 1000**2 + 1  # ours, for candidates that were clipped: 1/(4 radius^2) in the exponent


def test_three_released_levels_cost_three_times_one_and_the_printed_constants_leave_slack():
    ratio = coin(1, 0.7, 5.0) / coin(0, 0.7, 5.0)
    assert 3 * math.log(ratio) == pytest.approx(2.1)
    printed = {"candidates": 1 / 6, "swaps": 1 / 6, "sizes": 1 / 24, "choice": 1 / 3}
    d = 784
    assert sum(printed.values()) + math.sqrt(d) / 24 == pytest.approx((17 + math.sqrt(d)) / 24) == pytest.approx(1.875)
    halved = {name: part / (1 if name == "sizes" else 2) for name, part in printed.items()}
    assert sum(halved.values()) + math.sqrt(d) / 24 == pytest.approx((9 + math.sqrt(d)) / 24) == pytest.approx(1.54, abs=5e-3)


@pytest.mark.parametrize("d", [2, 100, 784])
def test_our_whole_run_spends_its_budget_and_no_more(d):
    """The regression: by the printed constants it would be (17 + sqrt(d))/24, which is above 1 for d > 49."""
    rows = np.random.default_rng(0).random((300, d))
    model = PrivateKMeans(3, epsilon=1.0, bounds=(0, 1), method="candidates").fit(rows)
    assert ((17 + math.sqrt(d)) / 24 > 1) is (d > 49)
    assert model.guarantee_.epsilon == 1
    losses = [float(note.split("epsilon ")[1]) for note in model.release_.notes if note.startswith("drawn")]
    assert sum(losses) == pytest.approx(1, abs=1e-4)


def test_the_mean_of_a_record_moves_where_another_does_not_touch_it():
    alone, both = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    assert (alone.mean(axis=0)[0], both.mean(axis=0)[0]) == (1.0, 0.5)
    assert alone.sum(axis=0)[0] == both.sum(axis=0)[0]


def test_a_scale_from_the_secret_gives_an_unbounded_ratio():
    b, other = 0.748584, 0.746806

    def log_ratio(x):
        return abs(math.log(other / b) + x * (1 / other - 1 / b))

    assert log_ratio(200) == pytest.approx(0.634, abs=5e-4)
    assert log_ratio(2000) == pytest.approx(6.36, abs=5e-3)
    assert log_ratio(10**6) > 1000


def test_the_accountant_drops_the_count_of_randomised_responses():
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    event, relation = dp_accounting.RandomizedResponseDpEvent(0.5, 2), dp_accounting.NeighboringRelation.REPLACE_ONE
    one, fifty = (PLDAccountant(neighboring_relation=relation) for _ in range(2))
    one.compose(event)
    fifty.compose(event, 50)
    assert fifty.get_epsilon(1e-6) == pytest.approx(one.get_epsilon(1e-6))


def test_steps_and_blocks_by_the_exact_n_differ_between_neighbours():
    k, d, epsilon = 15, 2, 1.0
    c = (4 * d * 0.225**2) ** (1 / 3)

    def steps(n):
        return int(min(7, max(2, epsilon / (math.sqrt(500 * k**3 * (d + c) ** 3) / n))))

    assert (steps(17674), steps(17675)) == (2, 3)
    assert (round(107**0.4), round(108**0.4)) == (6, 7)


def test_blocks_by_place_let_one_row_move_several():
    rows = [0, 0, 1, 1, 0, 0, 1, 1]

    def results(table):
        return [min(table[i : i + 2]) for i in range(0, 8, 2)]

    assert results(rows) == [0, 1, 0, 1]
    assert results([0, *rows]) == [0, 0, 0, 0]


def test_one_sum_for_all_clusters_is_not_the_sum_of_each():
    points = np.repeat([-1.0, 1.0], 50)
    assert points.sum() == 0
    assert [points[points < 0].sum(), points[points > 0].sum()] == [-50, 50]
    seeds, keys = np.arange(4000, dtype=np.uint64), np.repeat([0, 1], 2000).astype(np.uint64)
    words = (signs(seeds, keys) * np.where(keys == 0, -1, 1))[:, None].astype(np.int64)  # what devices without noise would send
    told = signed_sums(seeds, words, np.array([0, 1], dtype=np.uint64)).sums[:, 0]
    assert abs(told - [-2000, 2000]).max() < 6 * math.sqrt(2000)


def test_the_printed_rounds_add_up_to_thousands_of_releases():
    n, k, d = 10**6, 8, 4
    levels = math.ceil(math.log2(n))
    scales = 1 + math.ceil(math.log2(d**1.5 * math.sqrt(levels)))
    repeats = math.ceil(math.log(k * levels**2 / 0.1) / collision_chance(d, 4.0))
    assert (len(guesses(n, k)), levels, scales, repeats) == (7, 20, 7, 17)
    families = 7 * levels * scales * repeats
    assert families == 16_660
    releases = levels + 2 * families + 3
    assert releases == 33_343
    each = variance("hrr", 2, Fraction(1, releases)) ** 0.5  # the best order for so small an epsilon: 2/epsilon
    assert each == pytest.approx(66_686, rel=1e-3)
    assert each**2 == pytest.approx(4.4e9, rel=0.02)  # n at which the deviation is n itself
    one = variance("olh", 4, Fraction(1)) ** 0.5
    assert one == pytest.approx(1.92, abs=5e-3)
    needed = 2 * families * 3.5**2 * one**2 / 0.02**2 * 4
    assert needed > 1e10
    assert plan(n, k, d, 1, "lae", "paper").people_needed == pytest.approx(2.3e9, rel=0.03)


def test_silence_outside_of_medium_cells_has_an_infinite_ratio_and_a_report_has_not():
    here, there = 0.0, 1.0  # chances to answer
    assert max(here, there) > 0 == min(here, there)
    a, b = response_weights(Fraction(1))
    assert math.log(a / b) <= 1


def test_the_noise_of_a_release_is_longer_along_it():
    book = codebook(11, Fraction(4))
    assert book.dim * book.t2 == pytest.approx(2.94, abs=5e-3)
    assert math.sqrt(book.along / book.variance) == pytest.approx(1.71, abs=5e-3)
    across = (1 / book.m**2 - book.along) / 10
    assert (book.along + 10 * across) / 11 == pytest.approx(book.variance)


def test_a_shifted_ball_leaves_the_printed_roots_and_not_ours():
    point = np.array([0.5, 0.0]) + 0.5
    assert point.tolist() == [1.0, 0.5]
    assert not (point < 1).all()
    assert np.linalg.norm(point) > 1
    assert np.abs(np.array([1.0, 0.0]) + 0.5).max() <= side(0) / 2 == 1.5
    one = PublicMap(np.eye(2, dtype=np.float32), np.full(2, 0.5, dtype=np.float32))
    root, nothing = np.zeros(1, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    buckets = Buckets(one, 1, 1, root, nothing, RotatedGrid.drawn(2, 1.0, np.random.default_rng(0)))
    offset = one.image(np.array([[0.7, 0.7]])) - one.middles(root, 0)
    assert np.linalg.norm(offset) > 1.6 > 1
    assert np.linalg.norm(buckets.place(np.array([[0.7, 0.7]]))[1]) <= 1
